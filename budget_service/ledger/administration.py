"""The rules for requests of administrators about a root account: its limits, its currency, its clock, and files."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from budget_service.ledger.currency import window_before
from budget_service.ledger.draft import Draft
from budget_service.ledger.limits import AppliedLimits, change_text
from budget_service.ledger.outcomes import (
    Answer,
    ClockResumed,
    CurrencyChanged,
    LimitsSet,
    Reason,
    Refused,
)
from budget_service.ledger.requests import (
    ChangeCurrency,
    Request,
    ResumeClock,
    RootRequest,
    SetLimits,
    WriteOff,
)
from budget_service.ledger.state import (
    Change,
    Decision,
    EntryKind,
    JournalEntry,
    RootRecord,
    Snapshot,
    StoredOutcome,
)
from budget_service.ledger.values import NOTHING, Account, Cost, Hold, Limit
from budget_service.ledger.windows import DAY, SECOND, Microseconds

# Granted requests and payments are kept for this long after their window: longer than any dispute should last.
RETENTION: Microseconds = 35 * DAY
# What takes no budget, and a reservation after it has lapsed, is kept only for longer than any client retries: requests
# that are sent in a loop must not fill the store.
SHORT_RETENTION: Microseconds = 3600 * SECOND
# How far apart two correct clocks may be, and how far ahead of its store a ledger's time may be without harm.
CLOCK_TOLERANCE: Microseconds = 60 * SECOND


def set_limits(snapshot: Snapshot, request: SetLimits, limits: AppliedLimits, now: Microseconds) -> Decision:
    """Set or remove stored limits, and record what each was."""
    outcome = _limits_outcome(snapshot, request, limits.most_stored, now)
    if isinstance(outcome, Refused):
        return refusal(snapshot, request, outcome, now)
    root = replace(snapshot.root, currency=snapshot.root.currency.at(now), last_time=now)
    root = replace(root, limits_version=outcome.version)
    journal = tuple(
        act_entry(EntryKind.LIMIT, request, now, level, change=change_text(snapshot.limits.get(level), limit))
        for level, limit in request.changes
    )
    return decision(root, request, outcome, journal=journal, limits=request.changes)


def change_currency(
    snapshot: Snapshot, request: ChangeCurrency, limits: AppliedLimits, now: Microseconds
) -> Decision:
    """Plan the next currency, or withdraw the plan if the currency has not begun."""
    # A reservation that has lapsed and is forfeited is a charge, and the first charge fixes the currency.
    draft = Draft(snapshot, (), now)
    root = replace(snapshot.root, currency=draft.currency, last_time=now)
    if snapshot.due_further:
        return Decision(None, _ending(draft, _change(root, None)))
    outcome = _currency_outcome(root, request, limits, now)
    if isinstance(outcome, Refused):
        return refusal(snapshot, request, outcome, now)
    root = replace(root, currency=root.currency.followed_by(outcome.unit_id, outcome.begins_at))
    holds = (Hold(request.account.depth, outcome.begins_at),)
    entry = act_entry(EntryKind.CURRENCY, request, now, unit_id=outcome.unit_id, holds=holds)
    return decision(root, request, outcome, journal=(entry,), draft=draft)


def resume_clock(snapshot: Snapshot, request: ResumeClock, now: Microseconds) -> Decision:
    """Let the time of a root continue from the last one recorded, at the speed of the store's clock.

    Time never goes back, so no window is opened again, and each window lasts as long as its rule says.
    """
    root = replace(snapshot.root, currency=snapshot.root.currency.at(now), last_time=now)
    outcome = _clock_outcome(root, snapshot.clock, request.true_time)
    if isinstance(outcome, Refused):
        return refusal(snapshot, request, outcome, now)
    root = replace(root, ahead=outcome.ahead)
    holds = (Hold(request.account.depth, outcome.ahead),)
    entry = act_entry(EntryKind.CLOCK, request, now, holds=holds)
    return decision(root, request, outcome, journal=(entry,))


def _limits_outcome(
    snapshot: Snapshot, request: SetLimits, most_stored: int, now: Microseconds
) -> LimitsSet | Refused:
    added = sum(limit is not None for _, limit in request.changes)
    if added and snapshot.stored_limits + added > most_stored:
        return Refused(Reason.TOO_MANY_LIMITS)
    return LimitsSet(snapshot.root.next_limits_version(now))


def _currency_outcome(
    root: RootRecord, request: ChangeCurrency, limits: AppliedLimits, now: Microseconds
) -> CurrencyChanged | Refused:
    is_planned = root.currency.next_unit_id != ""
    if not request.unit_id:
        return CurrencyChanged("", 0) if is_planned else Refused(Reason.NO_CURRENCY_PLANNED)
    if is_planned:
        return Refused(Reason.CURRENCY_PLANNED)
    if request.unit_id == root.currency.unit_id:
        return Refused(Reason.UNIT_UNCHANGED)
    begins_at = window_before(limits.rules, now).end
    return (
        Refused(Reason.WINDOW_NEVER_ENDS)
        if begins_at is None
        else CurrencyChanged(request.unit_id, begins_at)
    )


def _clock_outcome(root: RootRecord, clock: Microseconds, true_time: Microseconds) -> ClockResumed | Refused:
    # A clock that is wrong now may be corrected later, and time would jump ahead by as much.
    if abs(clock - true_time) > CLOCK_TOLERANCE:
        return Refused(Reason.CLOCKS_DISAGREE)
    if root.last_time - clock - root.ahead < CLOCK_TOLERANCE:
        return Refused(Reason.CLOCK_NOT_BEHIND)
    return ClockResumed(root.last_time - clock)


def act_entry(
    kind: EntryKind,
    request: RootRequest | WriteOff,
    now: Microseconds,
    account: Account | None = None,
    *,
    cost: Cost = NOTHING,
    unit_id: str = "",
    holds: tuple[Hold, ...] = (),
    change: str = "",
) -> JournalEntry:
    """Return the entry of what an administrator did to the request's account or another."""
    return JournalEntry(
        kind=kind,
        account=request.account if account is None else account,
        cost=cost,
        unit_id=unit_id,
        request_id=request.request_id,
        release_id="",
        query_id="",
        time=now,
        holds=holds,
        reason=request.reason,
        actor=request.actor,
        change=change,
    )


def refusal(snapshot: Snapshot, request: Request, outcome: Refused, now: Microseconds) -> Decision:
    """Return a refusal of a request that touches no balance.

    The root stays as it was: neither a balance nor the journal would show why its time went on.
    """
    remembered = StoredOutcome(request.fingerprint(), outcome, now + SHORT_RETENTION)
    return Decision(Answer(outcome, replayed=False), _change(snapshot.root, remembered))


def decision(
    root: RootRecord,
    request: Request,
    outcome: LimitsSet | CurrencyChanged | ClockResumed,
    *,
    journal: tuple[JournalEntry, ...] = (),
    limits: tuple[tuple[Account, Limit | None], ...] = (),
    closed: Mapping[Account, bool] = MappingProxyType({}),
    draft: Draft | None = None,
) -> Decision:
    """Return an outcome with the change that remembers it, and what else it writes."""
    remembered = StoredOutcome(request.fingerprint(), outcome, root.last_time + RETENTION)
    change = _change(root, remembered, journal=journal, limits=limits, closed=closed)
    change = change if draft is None else _ending(draft, change)
    return Decision(Answer(outcome, replayed=False), change)


def _change(
    root: RootRecord,
    remembered: StoredOutcome | None,
    *,
    journal: tuple[JournalEntry, ...] = (),
    limits: tuple[tuple[Account, Limit | None], ...] = (),
    closed: Mapping[Account, bool] = MappingProxyType({}),
) -> Change:
    return Change(
        root=root,
        remembered=remembered,
        balances={},
        opened=None,
        ended=(),
        journal=journal,
        payment=None,
        limits=limits,
        closed=closed,
    )


def _ending(draft: Draft, change: Change) -> Change:
    """Return a change that also ends the reservations which the draft has ended."""
    return replace(
        change,
        balances=draft.changed_balances,
        ended=tuple(draft.ended),
        journal=(*draft.journal, *change.journal),
        days=draft.days,
    )
