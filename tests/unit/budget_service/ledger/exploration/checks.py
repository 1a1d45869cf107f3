"""What holds in every state. What has to count is found from what callers were answered, not from the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple, cast

from msgspec.structs import replace

from budget_service.ledger.acts.cancel import CancelReservation
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.refund import Refund
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.acts.write_off import WriteOff
from budget_service.ledger.limits import LimitsChangedError
from budget_service.ledger.outcomes import Answer, Cancelled, Charged, Held, LimitsSet, Refused, Reserved
from budget_service.ledger.state import RootRecord
from budget_service.ledger.values import NOTHING, Account, Cost, Hold, Limit, Mode
from budget_service.ledger.verification import (
    Difference,
    Rebuilt,
    RebuiltStates,
    block_differences,
    held_by_level,
)
from budget_service.ledger.windows import DAY, Microseconds
from tests.support.budget_samples import COMPANY
from tests.unit.budget_service.ledger.exploration.states import Answered, State, Sums
from tests.unit.budget_service.ledger.exploration.worlds import BLOCKS, CLOSE, REOPEN, START, TICK, question
from tests.unit.budget_service.memory_store import MemoryStore

PROBE = replace(cast(Reserve, question("probe", "reserve")[0]), max_cost=Cost(1, 1))


class Counted(NamedTuple):
    """What counts on a day, of which `blocks` at each level; above the account it may be another cost."""

    account: Account
    day: Microseconds
    blocks: tuple[str, ...]
    own: Cost
    above: Cost


class Payment(NamedTuple):
    """A charge of a day that counted, as it was made, at the account's last level with a limit, its `leaf`."""

    account: Account
    day: Microseconds
    leaf: Account


def counting(request: Reserve | Charge) -> tuple[str, ...]:
    """Return for which blocks a request counts at each level, or for everybody."""
    return request.blocks or ("",)


class Heard:
    """What callers have by the answers in a state: reservations, and by release what is charged and not given back.

    `lost` is what was written off.
    """

    def __init__(self, state: State) -> None:
        self.held: dict[str, tuple[Counted, Reserve, Reserved]] = {}
        self.over: set[str] = set()
        self.paid: dict[str, list[Counted]] = defaultdict(list)
        self.payments: dict[str, list[Payment]] = defaultdict(list)
        self.lost: list[Counted] = []
        limits: dict[Account, Limit] = {}
        for request, outcome, time in state.answers.values():
            day = time - time % DAY
            match request, outcome:
                case SetLimits(), LimitsSet():
                    limits |= {level: limit for level, limit in request.changes if limit is not None}
                case Reserve(), Reserved():
                    blocks, held = counting(request), outcome.held
                    counted = Counted(request.account, day, blocks, held, held)
                    self.held[request.reservation_id] = counted, request, outcome
                case CancelReservation(), Cancelled():
                    self.over.add(request.reservation_id)
                case Charge(), Charged():
                    self.over.add(request.reservation_id)
                    if not outcome.already_paid:
                        charged = self._charged(request, outcome.charged, day)
                        self.paid[request.release_id].append(charged)
                        last = state.world.levels(request.account, limits)[-1]
                        if charged.day >= last.limit.window.around(time).counts_from:
                            payment = Payment(request.account, charged.day, last.level)
                            self.payments[request.release_id].append(payment)
                case Refund(), Cancelled():
                    self.paid[request.release_id].pop()
                    # Where it was no payment, a rule is wrong, and found by other checks.
                    del self.payments[request.release_id][-1:]
                case WriteOff(), Charged():
                    rest = outcome.charged
                    self.lost.append(Counted(request.account, day, ("",), rest, rest))

    def _charged(self, request: Charge, cost: Cost, day: Microseconds) -> Counted:
        if not request.reservation_id:
            return Counted(request.account, day, counting(request), cost, cost)
        held, *_ = self.held[request.reservation_id]
        return held._replace(own=cost, above=held.own if request.worst_case_above else cost)

    def is_paid(self, release_id: str, account: Account, state: State) -> bool:
        """Return whether an account has paid for a release in the present window of its last level with a limit."""
        last = state.limits(account).levels[-1]
        first = last.limit.window.around(state.now).counts_from
        return any(
            each.day >= first and each.account == account and each.leaf == last.level
            for each in self.payments[release_id]
        )

    def open(self, reservation_id: str, now: Microseconds) -> Counted | None:
        """Return what a reservation holds that is neither over nor has lapsed."""
        if reservation_id not in self.held or reservation_id in self.over:
            return None
        counted, _, outcome = self.held[reservation_id]
        return counted if now < outcome.expires_at else None

    def forfeited(self, state: State) -> Iterator[Counted]:
        """Return what has lapsed, is forfeited, and is no more among the open reservations of the ledger."""
        for id_, (counted, request, _) in self.held.items():
            if request.forfeits and id_ not in self.over and id_ not in state.store.reservations:
                yield counted


def broken_by(before: State, answered: Answered, after: State) -> Iterator[str]:
    """Say what is wrong with the answer to a request."""
    request, outcome, now = answered
    heard = Heard(before)
    match request, outcome:
        case Reserve(), Reserved():
            yield from _broken_by_beginning(before, after, request, is_free=outcome.already_paid)
            if outcome.already_paid != heard.is_paid(f"rel {request.query_id}", request.account, before):
                yield _wrongly("question", is_free=outcome.already_paid)
            if outcome.held != (NOTHING if outcome.already_paid else request.max_cost):
                yield "not what was asked for is held"
        case Charge(), Charged():
            yield from _broken_by_charge(before, after, request, outcome, heard)
        case CancelReservation(), Cancelled():
            held = heard.open(request.reservation_id, now)
            if held is None or held.own != outcome.returned:
                yield "what was cancelled was over, or did not hold what was returned"
        case WriteOff(), Charged():
            yield from _broken_by_writing_off(before, request, outcome)
        case Refund(), Cancelled():
            paid = heard.paid.get(request.release_id)
            if not paid or paid[-1].own != outcome.returned:
                yield "what was refunded is not what was charged"
    late = after.copied("", START + TICK * after.world.ticks - now)
    if not isinstance(outcome, Held) and late.ask(request) != Answer(outcome, replayed=True):
        yield f"a retry of {request.request_id!r} is answered otherwise"


def _broken_by_charge(
    before: State, after: State, request: Charge, outcome: Charged, heard: Heard
) -> Iterator[str]:
    held = heard.open(request.reservation_id, after.now)
    if not request.reservation_id:
        yield from _broken_by_beginning(before, after, request, is_free=outcome.already_paid)
    elif held is None:
        yield "what was settled was over"
    elif not outcome.charged.within(held.own):
        yield "more was charged than was held"
    if outcome.charged != (NOTHING if outcome.already_paid else request.cost):
        yield "not what was asked for is charged"
    if held is not None and held.own == NOTHING:
        # What was free as it began stays free, unless it was refunded since.
        is_paid = bool(heard.payments[request.release_id])
    else:
        is_paid = heard.is_paid(request.release_id, request.account, before)
    if outcome.already_paid != is_paid:
        yield _wrongly("release", is_free=outcome.already_paid)


def _wrongly(what: str, *, is_free: bool) -> str:
    return f"a {what} is {'free, and was not paid for in the window' if is_free else 'charged twice in one window'}"


def _taken(state: State) -> Sums:
    """Add up what is charged and what is reserved."""
    taken = state.journaled()
    for each in state.store.reservations.values():
        state.add(taken, each.account, each.holds, own=each.held, above=each.held)
    return taken


def _is_closed(state: State) -> bool:
    return CLOSE.request_id in state.answers and REOPEN.request_id not in state.answers


def _broken_by_writing_off(before: State, request: WriteOff, outcome: Charged) -> Iterator[str]:
    """Nothing may be left to a block that has paid nothing."""
    ((level, limit),) = ((each.level, each.limit) for each in before.limits(request.account).levels)
    first, left = (
        limit.window.around(before.now).counts_from,
        [limit.maximum.information, limit.maximum.calls],
    )
    for (counted, start, unit), amount in _taken(before).items():
        if counted == level and start >= first:
            left[unit] -= amount
    if outcome.charged != Cost(*[max(0, each) for each in left]):
        yield f"{outcome.charged} are written off, where {left} are left"


def _broken_by_beginning(
    before: State, after: State, request: Reserve | Charge, *, is_free: bool
) -> Iterator[str]:
    """Compare what counts, reservations included, with each limit, for each block that pays."""
    if _is_closed(before) and request.account == CLOSE.account:
        yield "what is closed is granted"
    if is_free:
        return
    taken = _taken(after)
    for level, limit in ((each.level, each.limit) for each in before.limits(request.account).levels):
        if limit.mode is Mode.TRACK:
            continue
        first = limit.window.around(after.now).counts_from
        most = limit.maximum
        for block in request.blocks or ("", *BLOCKS):
            found = [0, 0]
            for (counted, start, unit), amount in taken.items():
                if counted.path == level.path and counted.block in ("", block) and start >= first:
                    found[unit] += amount
            if found[0] > most.information or found[1] > most.calls:
                yield f"{found} count at {level.text} for block {block!r}, above {most}"


def broken(state: State) -> Iterator[str]:
    """Say what is wrong with a state."""
    store, heard = state.store, Heard(state)
    now = store.records[COMPANY.root].last_time if store.records else START
    still = {id_ for id_ in heard.held if heard.open(id_, now)}
    if not still <= store.reservations.keys() <= heard.held.keys() - heard.over:
        yield "other reservations are open than callers have"
    sums = state.journaled()
    charged = (each for paid in heard.paid.values() for each in paid)
    for each in (*heard.forfeited(state), *charged, *heard.lost):
        depths = range(1, each.account.depth + 1)
        holds = tuple(Hold(depth, each.day, block) for depth in depths for block in each.blocks)
        state.add(sums, each.account, holds, own=each.own, above=each.above, sign=-1)
    if any(sums.values()):
        yield "the journal is not what callers were charged"
    yield from map(str, differences(store))
    yield from _broken_by_limits(state)


def differences(store: MemoryStore) -> Iterator[Difference]:
    """Verify as the service does, without its pauses."""
    rebuilt, states, root = Rebuilt(), RebuiltStates(set()), store.records.get(COMPANY.root, RootRecord())
    for entry in store.entries:
        rebuilt.add(entry)
        states.add(entry)
    held = held_by_level(store.reservations.values())
    for level, balance in store.kept.items():
        past = store.past.get(level, {}).values()
        yield from rebuilt.differences(level, balance, past, held.get(level, ()), root.currency.since)
        yield from block_differences(level, balance, store.rows)
    for level in rebuilt.spent.keys() - store.kept.keys():
        yield from rebuilt.missing(level)
    yield from rebuilt.currency_differences(COMPANY, root.currency)
    yield from rebuilt.time_differences(COMPANY, root, 0)
    yield from states.differences(store.closed)


def _broken_by_limits(state: State) -> Iterator[str]:
    """Ask by limits that were changed, and under a name that is closed."""
    limits = state.limits(PROBE.account)
    if not limits.version:
        return
    if limits.closed and not isinstance(state.copied("").ask(PROBE).outcome, Refused):
        yield "what is closed is granted"
    try:
        state.ask(PROBE, replace(limits, version=0, closed=None))
    except LimitsChangedError:
        return
    yield "limits that were changed are applied"
