"""What is written of a decision: its entry in the journal, what was paid for, and for how long it is remembered."""

from __future__ import annotations

from msgspec.structs import replace

from budget_service.ledger.administration import (
    RETENTION,
    SHORT_RETENTION,
)
from budget_service.ledger.draft import Draft
from budget_service.ledger.limits import LeaseBounds
from budget_service.ledger.outcomes import (
    Cancelled,
    Exhausted,
    Outcome,
    Refused,
    Reserved,
)
from budget_service.ledger.requests import (
    BudgetRequest,
    Charge,
    Refund,
    ReportCharge,
    Reserve,
    ReturnLease,
    WriteOff,
)
from budget_service.ledger.state import (
    Change,
    EntryKind,
    JournalEntry,
    Payment,
    Snapshot,
    StoredOutcome,
)
from budget_service.ledger.values import Hold
from budget_service.ledger.windows import Microseconds


def entry_of(
    kind: EntryKind, draft: Draft, request: Charge, query_id: str, *, holds: tuple[Hold, ...]
) -> JournalEntry:
    """Return the entry of a charge, or of what it reserves."""
    return JournalEntry(
        kind=kind,
        account=request.account,
        cost=request.cost,
        unit_id=request.unit_id,
        request_id=request.request_id,
        release_id=request.release_id,
        query_id=query_id,
        time=draft.now,
        holds=holds,
        policy_statement=request.policy_statement,
    )


def note_payment(
    draft: Draft, request: Charge, query_id: str, span: Microseconds, lease: LeaseBounds | None
) -> None:
    """Note for how long the release counts as paid, so that it is not charged again."""
    if request.release_id:
        end = draft.leaf.last_end if lease is None else lease.window_end
        keep_until = None if end is None else end + RETENTION
        draft.payment = Payment(request.release_id, query_id, span, keep_until)


def change_of(snapshot: Snapshot, draft: Draft, request: BudgetRequest, outcome: Outcome) -> Change:
    """Return all that a decision changes, with the outcome that a retry is given."""
    return Change(
        root=replace(snapshot.root, currency=draft.currency, last_time=draft.now),
        remembered=StoredOutcome(
            request.fingerprint(), outcome, _kept_until(snapshot, draft, request, outcome)
        ),
        balances=draft.changed_balances,
        opened=draft.opened,
        ended=tuple(draft.ended),
        journal=tuple(draft.journal),
        days=draft.days,
        payment=draft.payment,
        unpaid=tuple(draft.unpaid),
    )


def _kept_until(snapshot: Snapshot, draft: Draft, request: BudgetRequest, outcome: Outcome) -> Microseconds:
    if isinstance(outcome, Reserved):
        is_lent = isinstance(request, Reserve) and request.is_lease
        return outcome.expires_at + (RETENTION if is_lent else SHORT_RETENTION)
    granted = snapshot.lease_granted
    if isinstance(request, ReturnLease) and isinstance(outcome, Cancelled) and granted is not None:
        # As long as the grant: what is reported later has to know that nothing is forfeited.
        return granted.keep_until
    if isinstance(outcome, Refused | Exhausted) or not _takes_budget(draft, request):
        return draft.now + SHORT_RETENTION
    # A budget that is never refreshed has no end of a window: the time counts from now.
    return (draft.leaf.last_end or draft.now) + RETENTION


def _takes_budget(draft: Draft, request: BudgetRequest) -> bool:
    """Return whether a budget bounds how many such requests there are; any number of others would fill the store."""
    if isinstance(request, WriteOff | Refund | ReportCharge):
        return True
    # What has lapsed may be in the journal too, but not as a charge by a client.
    return any(each.kind in (EntryKind.SETTLED, EntryKind.DIRECT) for each in draft.journal)
