"""The rules for what an administrator asks of a root account: its limits and its currency."""

from __future__ import annotations

from dataclasses import replace

from budget_service.ledger.limits import MAX_STORED_LIMITS
from budget_service.ledger.outcomes import Answer, CurrencyChanged, LimitsSet, Outcome, Reason, Refused
from budget_service.ledger.requests import ChangeCurrency, RootRequest, SetLimits
from budget_service.ledger.state import (
    Change,
    Decision,
    EntryKind,
    Hold,
    JournalEntry,
    Remembered,
    RootRecord,
    Snapshot,
)
from budget_service.ledger.values import NOTHING, Account, Limit
from budget_service.ledger.windows import DAY, SECOND, Microseconds

# What was granted and paid for is kept so long after its window, which is longer than any dispute should last.
RETENTION: Microseconds = 35 * DAY
# A refusal changes nothing, so it is kept only for longer than any request is retried: whoever asks again and again
# after the budget is spent must not fill the store.
REFUSAL_RETENTION: Microseconds = 3600 * SECOND


def set_limits(snapshot: Snapshot, request: SetLimits, now: Microseconds) -> Decision:
    """Set or remove stored limits."""
    outcome = _limits_outcome(snapshot, request)
    root = replace(snapshot.root, currency=snapshot.root.currency.at(now), last_time=now)
    if isinstance(outcome, Refused):
        return _decision(root, request, outcome)
    root = replace(root, limits_version=outcome.version)
    return _decision(root, request, outcome, limits=request.changes)


def change_currency(snapshot: Snapshot, request: ChangeCurrency, now: Microseconds) -> Decision:
    """Plan the next currency, or withdraw the plan; once its moment has come there is nothing to withdraw."""
    root = replace(snapshot.root, currency=snapshot.root.currency.at(now), last_time=now)
    outcome = _currency_outcome(root, request, now)
    if isinstance(outcome, Refused):
        return _decision(root, request, outcome)
    root = replace(root, currency=root.currency.followed_by(outcome.unit_id, outcome.begins_at))
    return _decision(root, request, outcome, journal=(_currency_entry(request, outcome, now),))


def _limits_outcome(snapshot: Snapshot, request: SetLimits) -> LimitsSet | Refused:
    added = sum(limit is not None for _, limit in request.changes)
    if added and snapshot.stored_limits + added > MAX_STORED_LIMITS:
        return Refused(Reason.TOO_MANY_LIMITS)
    return LimitsSet(snapshot.root.limits_version + 1)


def _currency_outcome(
    root: RootRecord, request: ChangeCurrency, now: Microseconds
) -> CurrencyChanged | Refused:
    is_planned = root.currency.next_unit_id != ""
    if not request.unit_id:
        return CurrencyChanged("", 0) if is_planned else Refused(Reason.NO_CURRENCY_PLANNED)
    if is_planned:
        return Refused(Reason.CURRENCY_PLANNED)
    if request.unit_id == root.currency.unit_id:
        return Refused(Reason.UNIT_UNCHANGED)
    begins_at = request.window(now).end
    return (
        Refused(Reason.WINDOW_NEVER_ENDS)
        if begins_at is None
        else CurrencyChanged(request.unit_id, begins_at)
    )


def _currency_entry(request: ChangeCurrency, outcome: CurrencyChanged, now: Microseconds) -> JournalEntry:
    return JournalEntry(
        kind=EntryKind.CURRENCY,
        account=request.account,
        cost=NOTHING,
        unit_id=outcome.unit_id,
        request_id=request.request_id,
        release_id="",
        query_id="",
        time=now,
        holds=(Hold(request.account.depth, outcome.begins_at),),
    )


def _decision(
    root: RootRecord,
    request: RootRequest,
    outcome: Outcome,
    *,
    journal: tuple[JournalEntry, ...] = (),
    limits: tuple[tuple[Account, Limit | None], ...] = (),
) -> Decision:
    kept = REFUSAL_RETENTION if isinstance(outcome, Refused) else RETENTION
    change = Change(
        root=root,
        remembered=Remembered(request.fingerprint(), outcome, root.last_time + kept),
        balances={},
        opened=None,
        ended=(),
        journal=journal,
        payment=None,
        limits=limits,
    )
    return Decision(Answer(outcome, replayed=False), change)
