"""Random histories of requests, for the model test and for the conformance of stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hypothesis import HealthCheck
from hypothesis import strategies as st
from msgspec.structs import replace

from budget_service.ledger.act import Act
from budget_service.ledger.acts.cancel import CancelReservation
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.clock import ResumeClock
from budget_service.ledger.acts.close import CloseAccount
from budget_service.ledger.acts.currency import ChangeCurrency
from budget_service.ledger.acts.give_back import ReturnLease
from budget_service.ledger.acts.refund import Refund
from budget_service.ledger.acts.reopen import ReopenAccount
from budget_service.ledger.acts.report import ReportCharge
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.acts.write_off import WriteOff
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits, StoredLimits
from budget_service.ledger.outcomes import Answer, LimitsSet
from budget_service.ledger.values import NOTHING, Account, Cost, LevelLimit, Limit, Mode
from budget_service.ledger.windows import DAY, SECOND, Period, WindowRule
from budget_service.server.refunds import without_charge
from budget_service.stores.interface import Store
from tests.support.budget_samples import (
    ANALYST,
    OTHER_UNIT,
    UNIT,
    Asked,
    SteppedClock,
    cancel,
    charge,
    limit,
    reserve,
)
from tests.unit.budget_service.root_acts import AccountAct, RootAct

# The company allows for a month what its two analysts have in two days; the third one only tracks.
OWN = limit(12, 6, period=Period.DAY)
ABOVE = limit(50, 25)
TRACKED = limit(5, 2, mode=Mode.TRACK, period=Period.DAY)
# The windows an analyst and the company may have instead.
RULES = (
    WindowRule(Period.DAY, "UTC"),
    WindowRule(Period.SLIDING, "UTC", 2),
    WindowRule(Period.SLIDING, "Asia/Kolkata", 4),
    WindowRule(Period.MONTH, "UTC"),
    WindowRule(Period.NEVER, "UTC"),
)
NAMES = ("ann", "bob", "{eve}")
# Who pays: everybody, one of two blocks, or both.
BLOCKS = ("0" * 16, "0123456789abcdef")
PAYING = ((), BLOCKS[:1], BLOCKS[1:], BLOCKS)
# What charges may say of their policy; none may change what is counted.
STATEMENTS = ("", '{"domains": ["ä"]}', "a\0b\\")


class Doing(Enum):
    """What a step of a history does."""

    RESERVE = "reserve"
    SETTLE = "settle"
    DEDUCT = "deduct"
    GIVE_BACK = "give back"
    REPEAT = "repeat"
    REUSE = "reuse"
    FOREIGN = "foreign currency"
    RELEVEL = "add or remove a level"
    REWINDOW = "change a window"
    RELIMIT = "set or remove a stored limit"
    CURRENCY = "plan another currency, or withdraw it"
    RESUME = "let time go on"
    LOSE = "write off what is left"
    REFUND = "give back what a release cost"
    CLOSE = "close an account, or all of them"
    REOPEN = "open what is closed"
    EVENING = "wait until just before midnight"
    WAIT = "wait"


@dataclass(frozen=True)
class Step:
    """One step; each act uses the numbers it needs, so that a failing history shrinks well."""

    act: Doing
    who: int
    cost: Cost
    pick: int
    name: int
    seconds: int
    paying: int = 0


# Most waits stay within a time to live; some cross a day, and some go back.
WAITS = st.one_of(st.integers(0, 40), st.integers(-100, 200), st.integers(40_000, 90_000))
COSTS = st.builds(Cost, st.integers(0, 7), st.integers(0, 3))
STEPS = st.builds(
    Step,
    st.sampled_from(Doing),
    st.integers(0, 2),
    COSTS,
    st.integers(0, 30),
    st.integers(0, 2),
    WAITS,
    st.sampled_from((0, 0, 1, 1, 2, 3)),
)


def _one_question(
    who: int, name: int, cost: Cost, paying: int, parts: list[tuple[Doing, int, int]]
) -> list[Step]:
    """Return steps about one question of one analyst, each after a change of the levels; the numbers are theirs."""
    acts = (
        (Doing.RELEVEL, levels) if again else (act, pick) for act, levels, pick in parts for again in (1, 0)
    )
    return [Step(act, who, cost, pick, name, 5, paying) for act, pick in acts]


# The numbers mean the last reservation, some minutes to live and one release; 105 settles in the common currency.
LEVELS = st.integers(0, 2)
HOLD = st.tuples(
    st.sampled_from([Doing.RESERVE, Doing.RESERVE, Doing.RESERVE, Doing.FOREIGN]), LEVELS, st.just(60)
)
SETTLE = st.tuples(st.just(Doing.SETTLE), LEVELS, st.sampled_from([15, 105]))
ASK = st.tuples(
    st.sampled_from([Doing.DEDUCT, Doing.RESERVE, Doing.REFUND, Doing.EVENING]), LEVELS, st.just(15)
)
# Steps that go together while levels come and go would rarely meet by chance.
QUESTIONS = st.builds(
    lambda who, name, cost, paying, first, second, more: _one_question(
        who, name, cost, paying, [first, second, *more]
    ),
    st.integers(0, 2),
    st.integers(1, 2),
    COSTS,
    st.integers(0, 3),
    st.one_of(HOLD, ASK),
    st.one_of(SETTLE, ASK),
    st.lists(ASK, max_size=3),
)
# A question that is paid for is asked again, and its payment given back before the free answer is shown.
REFUNDS = st.builds(
    lambda who, name, cost, paying, more: _one_question(
        who,
        name,
        cost,
        paying,
        [(Doing.DEDUCT, 0, 15), (Doing.RESERVE, 0, 15), (Doing.REFUND, 0, 0), (Doing.SETTLE, 0, 15), *more],
    ),
    st.integers(0, 2),
    st.integers(1, 2),
    COSTS,
    st.integers(0, 3),
    st.lists(st.one_of(ASK, SETTLE), max_size=3),
)
# Another currency is planned while something is open, and its moment comes: at midnight, or with the month.
SUCCESSIONS = st.builds(
    lambda who, before, hold, paying, days, after: [
        *before,
        Step(Doing.RESERVE, who, Cost(2, 1), hold, 1, 0, paying),
        Step(Doing.CURRENCY, who, NOTHING, 0, 0, 0),
        Step(Doing.EVENING, who, NOTHING, 0, 0, 0),
        Step(Doing.WAIT, who, NOTHING, 0, 0, days * 86_400 + 20),
        *after,
    ],
    st.integers(0, 2),
    st.lists(STEPS, max_size=2),
    st.integers(0, 30),
    st.integers(0, 3),
    st.sampled_from([0, 0, 1, 17]),
    st.lists(STEPS, min_size=2, max_size=5),
)
PARTS = st.lists(st.one_of(QUESTIONS, REFUNDS, STEPS.map(lambda step: [step])), min_size=2, max_size=10)
# One month at most ends in a history, so that every answer is still remembered at its end.
HISTORIES = st.builds(
    lambda before, succession, after: [step for part in (*before, succession, *after) for step in part],
    PARTS,
    st.one_of(st.just([]), SUCCESSIONS),
    PARTS,
)
# One store serves all of a test's histories, each in a root of its own.
ON_ONE_STORE: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}


@dataclass
class Player:
    """Turns steps into requests for the accounts of one root.

    `rules` are the windows of the company and of its analysts; they change if `rewindows`.
    """

    root: str
    clock: SteppedClock
    rules: tuple[WindowRule, WindowRule] = (ABOVE.window, OWN.window)
    rewindows: bool = False
    refunds: bool = False
    stored: dict[Account, Limit] = field(default_factory=dict)
    closed: set[Account] = field(default_factory=set)
    version: int = 0
    made: list[Asked[Act]] = field(default_factory=list)
    depths: tuple[int, ...] = (1, 2)

    def accounts(self) -> list[Account]:
        """Return the accounts a history speaks of."""
        return [Account((self.root, name)) for name in NAMES]

    def note(self, asked: Asked[Act], answer: Answer) -> None:
        """Take note of what has become of a request: what the next ones are decided by."""
        request = asked.request
        if answer.replayed or not isinstance(answer.outcome, LimitsSet):
            return
        self.version = answer.outcome.version
        if isinstance(request, AccountAct):
            is_closed = isinstance(request, CloseAccount)
            (self.closed.add if is_closed else self.closed.discard)(request.account)

    def levels(self, account: Account) -> tuple[LevelLimit, ...]:
        """Return the limits of an account as they are now."""
        own = replace(TRACKED if account.path[1] == NAMES[2] else OWN, window=self.rules[1])
        above = replace(ABOVE, window=self.rules[0])
        both = (
            LevelLimit(account.level(1), self.stored.get(account.level(1), above)),
            LevelLimit(account, self.stored.get(account, own)),
        )
        return tuple(each for each in both if each.level.depth in self.depths)

    def play(self, step: Step) -> Asked[Act] | None:
        """Return the request of a step; None if it is none, or has nothing to speak of yet."""
        match step.act:
            case Doing.WAIT:
                self.clock.step(seconds=step.seconds)
            case Doing.EVENING:
                self.clock.now += DAY - 10 * SECOND - self.clock.now % DAY
            case Doing.RELEVEL:
                self.depths = ((1, 2), (1,), (2,))[step.pick % 3]
            case Doing.REWINDOW:
                rule = RULES[step.pick % len(RULES)]
                rules = (rule, self.rules[1]) if step.who == 0 else (self.rules[0], rule)
                self.rules = rules if self.rewindows else self.rules
            case _:
                asked = self._versioned(self._request(step))
                self.made += [] if asked is None else [asked]
                return asked
        return None

    def _versioned(self, asked: Asked[Act] | None) -> Asked[Act] | None:
        if asked is None or isinstance(asked.request, SetLimits | ResumeClock | AccountAct):
            return asked
        if isinstance(asked.request, RootAct | WriteOff):
            return asked.by(replace(asked.limits, version=self.version))
        stored = StoredLimits(self.version, closed=frozenset(self.closed))
        return asked.by(stored.applied_to(asked.request.account, asked.limits.levels))

    def _set_limits(self, step: Step, id_: str) -> Asked[Act]:
        """Set one that is like the usual one but smaller or larger, with its window; or remove it."""
        account = self.accounts()[step.who]
        level = account.level(1 + step.pick % 2)
        usual = replace(OWN if level == account else ABOVE, window=self.rules[level.depth - 1])
        limit = replace(usual, maximum=step.cost + Cost(5, 3)) if step.name else None
        self.stored.pop(level, None)
        self.stored |= {} if limit is None else {level: limit}
        setting = SetLimits(actor="ops", account=account.level(1), request_id=id_, changes=((level, limit),))
        return Asked(setting, NO_LIMITS)

    def _change_account(self, step: Step, id_: str) -> Asked[Act]:
        account = self.accounts()[step.who]
        company = account.level(1)
        if step.act is Doing.CLOSE:
            level = account if step.pick % 8 else company
            return Asked(CloseAccount(actor="ops", account=level, request_id=id_, reason="left"), NO_LIMITS)
        level = company if company in self.closed else account
        return Asked(ReopenAccount(actor="ops", account=level, request_id=id_, reason="is back"), NO_LIMITS)

    def _administer(self, step: Step, id_: str) -> Asked[Act]:
        if step.act is Doing.LOSE:
            last = self.levels(self.accounts()[step.who])[-1]
            return Asked(WriteOff(actor="ops", account=last.level, request_id=id_), AppliedLimits((last,)))
        unit_id = (OTHER_UNIT, UNIT, OTHER_UNIT, "")[step.pick % 4]
        root = Account((self.root,))
        if step.act is Doing.RESUME:
            return Asked(
                ResumeClock(actor="ops", account=root, request_id=id_, true_time=self.clock.now), NO_LIMITS
            )
        change = ChangeCurrency(actor="ops", account=root, request_id=id_, unit_id=unit_id)
        return Asked(change, AppliedLimits(rules=self.rules))

    def _request(self, step: Step) -> Asked[Act] | None:  # noqa: PLR0911 - one for each kind
        account = self.accounts()[step.who]
        levels = self.levels(account)
        id_ = f"id {len(self.made)}"
        query_id = f"q{step.name}" if step.name else ""
        release_id = f"rel{step.name}" if step.pick % 5 else f"rel{step.pick % 30}"
        match step.act:
            case Doing.RESERVE:
                ttl = 1 + step.pick * 4
                forfeits = step.pick % 3 == 0
                asked = reserve(
                    id_, step.cost, account=account, on=levels, query_id=query_id, ttl_seconds=ttl
                )
                return asked.but(forfeits=forfeits, blocks=PAYING[step.paying])
            case Doing.RELIMIT:
                return self._set_limits(step, id_)
            case Doing.CLOSE | Doing.REOPEN:
                return self._change_account(step, id_)
            case Doing.CURRENCY | Doing.RESUME | Doing.LOSE:
                return self._administer(step, id_)
            case Doing.DEDUCT:
                ids = {"release_id": release_id if step.name else "", "query_id": query_id}
                direct = charge(id_, step.cost, account=account, on=levels, **ids)
                return _stated(direct.but(blocks=PAYING[step.paying]), step)
            case Doing.FOREIGN:
                return self._foreign(step, id_)
        return self._about_an_earlier_one(step, id_, release_id)

    def _foreign(self, step: Step, id_: str) -> Asked[Act]:
        account = self.accounts()[step.who]
        levels = self.levels(account)
        if step.pick % 2:
            return charge(id_, step.cost, account=account, on=levels, unit_id=OTHER_UNIT)
        foreign = reserve(id_, step.cost, account=account, on=levels, unit_id=OTHER_UNIT)
        return foreign.but(forfeits=step.name == 0)

    def _about_an_earlier_one(self, step: Step, id_: str, release_id: str) -> Asked[Act] | None:
        made = [each.request for each in self.made]
        paid = [each for each in made if isinstance(each, Charge) and each.release_id]
        if step.act is Doing.REFUND and self.refunds and paid:
            last = paid[-1 - step.pick % min(3, len(paid))]
            account = last.account
            asked = without_charge(account, last.release_id, "wrong", id_, actor="ops")
            return Asked(asked, AppliedLimits(self.levels(account)))
        if step.act in {Doing.REPEAT, Doing.REUSE} and self.made:
            earlier = self.made[-1 - step.pick % len(self.made)]
            if not isinstance(earlier.request, RootAct | WriteOff):
                earlier = earlier.by(AppliedLimits(self.levels(earlier.request.account)))
            if isinstance(earlier.request, Reserve):
                # The service draws the id of a reservation anew with each try.
                earlier = earlier.but(reservation_id=f"hold-{id_}")
            if step.act is Doing.REPEAT:
                return earlier
            return Asked(_with_other_content(earlier.request), earlier.limits)
        holds = [each for each in made if isinstance(each, Reserve)]
        if not holds or step.act not in {Doing.SETTLE, Doing.GIVE_BACK}:
            return None
        hold = holds[-1 - step.pick % 15 % min(5, len(holds))]
        account = hold.account
        levels = self.levels(account)
        if step.act is Doing.GIVE_BACK:
            ending = cancel(id_, ends=hold.request_id, account=account, on=levels)
            return ending.but(reservation_id=hold.reservation_id)
        # Mostly what was held or less, which can be settled.
        cost = step.cost if step.name == 0 else hold.max_cost if step.pick % 2 else NOTHING
        ids = {"settles": hold.request_id, "release_id": release_id}
        unit_id = hold.unit_id if step.pick % 7 else UNIT
        settling = charge(id_, cost, account=account, on=levels, unit_id=unit_id, **ids)
        blocks = hold.blocks if step.pick % 11 else PAYING[step.paying]
        return _stated(settling.but(reservation_id=hold.reservation_id, blocks=blocks), step)


def _stated(asked: Asked[Charge], step: Step) -> Asked[Charge]:
    # Whether levels above count worst cases is a replica's own configuration, which another one may not share.
    statement = STATEMENTS[step.pick % len(STATEMENTS)]
    return asked.but(policy_statement=statement, worst_case_above=step.seconds % 2 == 0)


def _with_other_content(request: Act) -> Act:  # noqa: PLR0911 - one for each kind
    match request:
        case Reserve():
            return replace(request, blocks=() if request.blocks else BLOCKS)
        case Charge():
            return replace(request, policy_statement=request.policy_statement + "'")
        case CancelReservation():
            return replace(request, reservation_id=request.reservation_id + "'")
        case SetLimits():
            return replace(request, changes=())
        case ReturnLease():
            # It says nothing else, and no history has one.
            return replace(request, account=Account((*request.account.path, "x")))
        case ReportCharge():
            return replace(request, release_id=request.release_id + "'")
        case Refund() | WriteOff() | ResumeClock():
            return replace(request, reason=request.reason + "'")
        case ChangeCurrency():
            return replace(request, unit_id=request.unit_id + "0")
        case CloseAccount() | ReopenAccount():
            return replace(request, reason=request.reason + "'")
    raise TypeError("an act that no history has")


async def play_all_kinds_of_charges(store: Store, clock: SteppedClock) -> None:
    """Make one entry of each kind in the journal: forfeited, settled, direct; and a free charge, which makes none."""
    both = (LevelLimit(Account(("acme",)), ABOVE), LevelLimit(ANALYST, OWN))
    await store.apply(*reserve("lapses", Cost(2, 1), on=both, forfeits=True, ttl_seconds=1))
    await store.apply(*reserve("r", Cost(4, 1), on=both, query_id="q"))
    clock.step(seconds=2)
    await store.apply(*charge("settles", Cost(3, 1), on=both, settles="r", release_id="rel"))
    await store.apply(*charge("direct", Cost(1, 1), on=both, release_id="rel2", query_id="q2"))
    await store.apply(*charge("free", Cost(1, 1), on=both, release_id="rel"))
