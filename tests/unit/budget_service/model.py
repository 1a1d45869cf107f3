"""The ledger in a few dozen lines: lists that are added up anew each time, for one root account."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from budget_service.ledger.currency import window_before
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.requests import (
    AccountRequest,
    BudgetRequest,
    ChangeCurrency,
    Charge,
    CloseAccount,
    Refund,
    Request,
    Reserve,
    ResumeClock,
    SetLimits,
    WriteOff,
)
from budget_service.ledger.values import Account, Cost, LevelLimit, Mode
from budget_service.ledger.windows import DAY, SECOND, Microseconds, Span, WindowRule

Reported = tuple[object, ...]
Sums = tuple[int, int]
# The days that something counts on: the start of one for each level of an account, from the widest.
Windows = dict[Account, Microseconds]
Levels = tuple[LevelLimit, ...]
# The blocks that alone pay; none: everybody.
Blocks = tuple[str, ...]

REFUSALS_LAST = 3600 * SECOND
ANSWERS_LAST = 35 * DAY


@dataclass(frozen=True)
class Held:
    """An open reservation."""

    request: Reserve
    windows: Windows
    cost: Cost
    paid_release_id: str
    ends_at: Microseconds


@dataclass
class Model:
    """`spent` is a list of (windows, cost, blocks); answers are short tuples.

    A charge counts on every level of its account, whether the level has a limit then or not.

    `currency` is (unit, since), `planned` too.
    """

    now: Microseconds = 0
    currency: tuple[str, Microseconds] = ("", 0)
    planned: tuple[str, Microseconds] = ("", 0)
    spent: list[tuple[Windows, Cost, Blocks]] = field(default_factory=list)
    held: dict[str, Held] = field(default_factory=dict)
    owners: dict[str, Account] = field(default_factory=dict)
    paid: dict[tuple[Account, Account, str, str], tuple[Microseconds, str]] = field(default_factory=dict)
    reported: dict[str, tuple[str, Reported, Microseconds]] = field(default_factory=dict)
    limits_version: int = 0
    ahead: Microseconds = 0
    # What `at` returns does not change: what it has added up is not added up again. None: it changes.
    added_up: dict[tuple[Account, WindowRule, Microseconds, str], tuple[Sums, Sums]] | None = None
    closed: set[Account] = field(default_factory=set)

    def tell(self, request: Request, limits: AppliedLimits, clock: Microseconds) -> Reported:
        """Answer a request."""
        content, reported, forgotten_at = self.reported.get(request.request_id, ("", (), 0))
        if max(self.now, clock + self.ahead) < forgotten_at:
            return reported if content == request.fingerprint() else ("REQUEST_ID_REUSED",)
        before = replace(self, held=dict(self.held), spent=list(self.spent))
        self.advance(clock)
        if isinstance(request, SetLimits):
            self.limits_version = max(self.limits_version + 1, self.now)
            reported = ("limits", self.limits_version)
            self.reported[request.request_id] = (request.fingerprint(), reported, self.now + ANSWERS_LAST)
            return reported
        if isinstance(request, ResumeClock):
            agrees = abs(clock - request.true_time) <= 60 * SECOND
            is_behind = agrees and self.now - clock - self.ahead >= 60 * SECOND
            self.ahead = self.now - clock if is_behind else self.ahead
            refusal = "CLOCK_NOT_BEHIND" if agrees else "CLOCKS_DISAGREE"
            reported = ("clock", self.ahead) if is_behind else (refusal,)
            lasts = ANSWERS_LAST if is_behind else REFUSALS_LAST
            self.reported[request.request_id] = (request.fingerprint(), reported, self.now + lasts)
            if not is_behind:
                self._return_to(before)
            return reported
        if isinstance(request, AccountRequest | ChangeCurrency):
            if isinstance(request, ChangeCurrency):
                reported = self._change_currency(request, limits)
            else:
                reported = self._change_account(request)
            is_done = reported[0] in {"limits", "currency"}
            lasts = ANSWERS_LAST if is_done else REFUSALS_LAST
            self.reported[request.request_id] = (request.fingerprint(), reported, self.now + lasts)
            if not is_done:
                self._return_to(before)
            return reported
        spent = len(self.spent)
        reported = self._decide(request, limits.levels)
        granted = reported[0] in {"reserved", "charged", "cancelled"}
        last = self._span(limits.levels[-1])
        end = last.leaves_at or last.window.end or self.now
        is_charged = isinstance(request, WriteOff) or (
            isinstance(request, Charge) and len(self.spent) > spent
        )
        forgotten_at = end + ANSWERS_LAST if granted and is_charged else self.now + REFUSALS_LAST
        if reported[0] == "reserved" and isinstance(request, Reserve):
            forgotten_at += request.ttl
        if reported != ("held",):
            self.reported[request.request_id] = (request.fingerprint(), reported, forgotten_at)
        if reported == ("ACCOUNT_CLOSED",) or (reported == ("held",) and self.held == before.held):
            self._return_to(before)
        return reported

    def _return_to(self, before: Model) -> None:
        """Leave nothing behind of a request but its answer: not even the time at which it was asked."""
        self.now, self.currency, self.planned = before.now, before.currency, before.planned
        self.held, self.spent = before.held, before.spent

    def at(self, clock: Microseconds) -> Model:
        """Return the ledger as a reader finds it, who writes nothing."""
        found = replace(self, spent=list(self.spent), held=dict(self.held))
        found.advance(clock)
        found.added_up = {}
        return found

    def advance(self, clock: Microseconds) -> None:
        """Let time pass and reservations lapse."""
        self.now = max(self.now, clock + self.ahead)
        if self.planned[0] and self.planned[1] <= self.now:
            self.currency, self.planned = self.planned, ("", 0)
        lapsed = [id_ for id_, hold in self.held.items() if hold.ends_at <= self.now]
        for id_ in sorted(lapsed, key=lambda id_: (self.held[id_].ends_at, id_)):
            hold = self.held.pop(id_)
            if hold.request.forfeits:
                self._spend(hold.windows, hold.cost, hold.request.unit_id, hold.request.blocks)

    def sums(self, each: LevelLimit, blocks: Blocks = ()) -> tuple[Sums, Sums]:
        """Return what is spent and what is held of what counts now at a level, for some blocks or for everybody."""
        if self._waits(each):
            return _sum([each.limit.maximum]), (0, 0)
        return self._worst(each, blocks or self._known())

    def _known(self) -> Blocks:
        names = {block for _, _, blocks in self.spent for block in blocks}
        return tuple(names | {block for hold in self.held.values() for block in hold.request.blocks})

    def _worst(self, each: LevelLimit, blocks: Blocks) -> tuple[Sums, Sums]:
        """Add what everybody has spent and held to what the block with most of it has."""
        since = self.currency[1]
        (spent, held), own = self._sums(each, since, ""), [self._sums(each, since, each_) for each_ in blocks]
        most = [max((paid[unit] for paid, _ in own), default=0) for unit in (0, 1)]
        both = [max((paid[unit] + kept[unit] for paid, kept in own), default=0) for unit in (0, 1)]
        reserved = (held[0] + both[0] - most[0], held[1] + both[1] - most[1])
        return (spent[0] + most[0], spent[1] + most[1]), reserved

    def _sums(self, each: LevelLimit, since: Microseconds, block: str) -> tuple[Sums, Sums]:
        if self.added_up is None:
            return self._added_up(each, since, block)
        key = (each.level, each.limit.window, since, block)
        if key not in self.added_up:
            self.added_up[key] = self._added_up(each, since, block)
        return self.added_up[key]

    def _added_up(self, each: LevelLimit, since: Microseconds, block: str) -> tuple[Sums, Sums]:
        first, level = max(since, self._first(each)), each.level
        spent = [
            cost
            for windows, cost, blocks in self.spent
            if windows.get(level, -1) >= first and block in (blocks or ("",))
        ]
        held = [
            hold.cost
            for hold in self.held.values()
            if hold.windows.get(level, -1) >= first and block in (hold.request.blocks or ("",))
        ]
        return _sum(spent), _sum(held)

    def _first(self, each: LevelLimit) -> Microseconds:
        return self._span(each).counts_from

    def _span(self, each: LevelLimit) -> Span:
        return each.limit.window.around(self.now)

    def _waits(self, each: LevelLimit) -> bool:
        """Tell whether something of the last currency counts at a level, which then has nothing left to any block."""
        return each.limit.mode is Mode.ENFORCE and any(
            self._sums(each, 0, block) != self._sums(each, self.currency[1], block)
            for block in ("", *self._known())
        )

    def _windows(self, account: Account, levels: Levels, widest: int = 1) -> Windows:
        zones = {each.level: each for each in levels}
        path = [account.level(depth) for depth in range(widest, account.depth + 1)]
        return {level: self._day(zones.get(level, levels[-1])) for level in path}

    def _day(self, each: LevelLimit) -> Microseconds:
        return max(self._span(each).day.start, self.currency[1])

    def _change_account(self, request: AccountRequest) -> Reported:
        account = request.account
        if isinstance(request, CloseAccount):
            if account in self.closed:
                return ("ACCOUNT_CLOSED",)
            self.closed.add(account)
        elif account not in self.closed:
            return ("ACCOUNT_NOT_CLOSED",)
        else:
            self.closed.remove(account)
        self.limits_version = max(self.limits_version + 1, self.now)
        return ("limits", self.limits_version)

    def _is_closed(self, account: Account) -> bool:
        return any(account.level(depth) in self.closed for depth in range(1, account.depth + 1))

    def _change_currency(self, request: ChangeCurrency, limits: AppliedLimits) -> Reported:
        if bool(request.unit_id) == bool(self.planned[0]):
            return ("CURRENCY_PLANNED" if request.unit_id else "NO_CURRENCY_PLANNED",)
        if request.unit_id == self.currency[0] != "":
            return ("UNIT_UNCHANGED",)
        timestamp = window_before(limits.rules, self.now).end if request.unit_id else 0
        if timestamp is None:
            return ("WINDOW_NEVER_ENDS",)
        self.planned = (request.unit_id, timestamp)
        return ("currency", *self.planned)

    def _decide(self, request: BudgetRequest, levels: Levels) -> Reported:  # noqa: PLR0911 - one for each kind
        account = request.account
        begins = isinstance(request, Reserve) or (isinstance(request, Charge) and not request.reservation_id)
        if begins and self._is_closed(account):
            return ("ACCOUNT_CLOSED",)
        if isinstance(request, Reserve | Charge) and self.currency[0] not in ("", request.unit_id):
            return ("UNIT_MISMATCH",)
        if isinstance(request, Reserve):
            return self._reserve(request, levels)
        if isinstance(request, WriteOff):
            return self._write_off(request.account, levels)
        if isinstance(request, Refund):
            raise TypeError("histories for the model have no refunds")
        owns = self.owners.get(request.reservation_id) == account
        hold = self.held.get(request.reservation_id) if owns else None
        if isinstance(request, Charge) and (hold or not request.reservation_id):
            return self._charge(request, levels, hold)
        if hold is None:
            return ("RESERVATION_OVER",)
        return ("cancelled", self.held.pop(request.reservation_id).cost, hold.request.unit_id)

    def _write_off(self, account: Account, levels: Levels) -> Reported:
        (each,) = levels
        # For a block that nobody has named, so that nothing is left to any.
        used = _sum([Cost(*sums) for sums in self.sums(each, ("none",))])
        left = [max(0, most - spent) for most, spent in zip(_sum([each.limit.maximum]), used, strict=True)]
        rest = Cost(*left) if each.limit.mode is Mode.ENFORCE else Cost(0, 0)
        if rest != Cost(0, 0):
            self._spend(self._windows(account, levels, account.depth), rest, self.currency[0], ())
        return ("charged", rest, False)

    def _reserve(self, request: Reserve, levels: Levels) -> Reported:
        recorded = self._paid(request, levels[-1], "query", request.query_id)
        if not recorded and (refusal := self._refusal(levels, request.max_cost, request)):
            return refusal
        cost = Cost(0, 0) if recorded else request.max_cost
        windows = {} if recorded else self._windows(request.account, levels)
        self.owners[request.reservation_id] = request.account
        self.held[request.reservation_id] = Held(request, windows, cost, recorded, self.now + request.ttl)
        return ("reserved", cost, bool(recorded))

    def _charge(self, request: Charge, levels: Levels, hold: Held | None) -> Reported:  # noqa: PLR0911 - one for each refusal
        query_id = hold.request.query_id if hold else request.query_id
        known = {self._paid(request, levels[-1], "query", query_id), hold.paid_release_id if hold else ""} - {
            ""
        }
        free = bool(hold and hold.paid_release_id) or bool(
            self._paid(request, levels[-1], "release", request.release_id)
        )
        if hold and hold.request.unit_id != request.unit_id:
            return ("UNIT_MISMATCH",)
        if hold and hold.windows and hold.request.blocks != request.blocks:
            return ("BLOCKS_MISMATCH",)
        if known - {request.release_id}:
            return ("RELEASE_MISMATCH",)
        if hold and hold.paid_release_id and not self._was_paid(request, levels[-1]):
            return ("RESERVATION_OVER",)
        if not free and hold and not request.cost.within(hold.cost):
            return ("COST_ABOVE_RESERVATION",)
        if not free and not hold and (refusal := self._refusal(levels, request.cost, request)):
            return refusal
        self.held.pop(request.reservation_id, None)
        if free:
            return ("charged", Cost(0, 0), True)
        windows = hold.windows if hold else self._windows(request.account, levels)
        above = hold.cost if hold and request.worst_case_above else request.cost
        if Cost(0, 0) == request.cost == above:
            return ("charged", Cost(0, 0), False)
        own = {level: start for level, start in windows.items() if level.path == request.account.path}
        others = {level: windows[level] for level in windows.keys() - own.keys()}
        self._spend(own, request.cost, request.unit_id, request.blocks)
        self._spend(others, above, request.unit_id, request.blocks)
        leaf = levels[-1].level
        start = windows[leaf]
        for kind, id_ in (("release", request.release_id), ("query", query_id)):
            if request.release_id and id_ and start >= self._first(levels[-1]):
                self.paid[request.account, leaf, kind, id_] = (start, request.release_id)
        return ("charged", request.cost, False)

    def _spend(self, windows: Windows, cost: Cost, unit_id: str, blocks: Blocks) -> None:
        if cost == Cost(0, 0):
            return
        self.spent.append((windows, cost, blocks))
        self.currency = (self.currency[0] or unit_id, self.currency[1])

    def _paid(self, request: Reserve | Charge, leaf: LevelLimit, kind: str, id_: str) -> str:
        start, release_id = self.paid.get((request.account, leaf.level, kind, id_), (-1, ""))
        return release_id if start >= max(self.currency[1], self._first(leaf)) else ""

    def _was_paid(self, request: Charge, leaf: LevelLimit) -> bool:
        return (request.account, leaf.level, "release", request.release_id) in self.paid

    def _refusal(self, levels: Levels, cost: Cost, request: Reserve | Charge) -> Reported:
        blocks = request.blocks
        enforced = [each for each in levels if each.limit.mode is Mode.ENFORCE]
        if all(_room(self.sums(each, blocks), each.limit.maximum, cost) for each in enforced):
            return ()
        spent = [(each.limit.maximum, self.sums(each, blocks)[0]) for each in enforced]
        unspent = all(_room((paid, (0, 0)), maximum, cost) for maximum, paid in spent)
        return ("held",) if unspent else ("exhausted",)


def _sum(costs: list[Cost]) -> Sums:
    return sum(cost.information for cost in costs), sum(cost.calls for cost in costs)


def _room(used: tuple[Sums, Sums], maximum: Cost, cost: Cost) -> bool:
    units = zip(_sum([maximum]), _sum([cost]), *used, strict=True)
    return all(asked == 0 or spent + held + asked <= most for most, asked, spent, held in units)
