"""The rule by which the home ledger records what a region has charged from a lease.

A lease is a reservation that is forfeited when it lapses: what its region has not reported by then counts as spent. So
every report is of something that has happened and that counts already, and none of its own region is refused.
"""

from __future__ import annotations

from msgspec.structs import replace

from budget_service.ledger.administration import RETENTION
from budget_service.ledger.draft import Draft
from budget_service.ledger.outcomes import Cancelled, Charged, Outcome, Reason, Refused, Reserved
from budget_service.ledger.requests import ReportCharge
from budget_service.ledger.state import EntryKind, JournalEntry, Payment, Reservation, Snapshot
from budget_service.ledger.values import NOTHING, Account, Cost, Hold


def record_report(snapshot: Snapshot, draft: Draft, request: ReportCharge, *, is_paid: bool) -> Outcome:
    """Record a charge of a region.

    Its cost comes out of the lease. After the lease has lapsed it costs nothing more, since all that was left of the
    lease was forfeited. After it was given back nothing is forfeited, so that the cost counts. A lease that this ledger
    never granted, or whose earlier reports it does not have, shows that the ledger was set back: then the cost counts
    as charged now, whatever the limit. Such a charge has no `levels`. What cannot be added to a sum of 64 bits is left
    out: nothing more is granted there then anyway.
    """
    lease = snapshot.reservation
    if lease is not None and draft.now >= lease.expires_at:
        lease = None
    if lease is not None and lease.query_id != request.region:
        return Refused(Reason.LEASE_NOT_YOURS)
    if lease is not None:
        return _from_lease(draft, request, lease, is_paid=is_paid)
    if _has_lapsed(snapshot, draft):
        if not is_paid:
            _record(draft, request, NOTHING, request.account, draft.holds())
        return Charged(NOTHING, is_paid, draft.statuses())
    holds = draft.holds()
    cost = _countable(draft, request.cost, request.account, holds)
    _record(draft, request, cost, request.account, holds)
    return Charged(cost, False, ())


def _from_lease(draft: Draft, request: ReportCharge, lease: Reservation, *, is_paid: bool) -> Outcome:
    cost = NOTHING if is_paid else request.cost
    draft.end(lease)
    is_within = cost.within(lease.held)
    if not is_within:
        cost = _countable(draft, cost, lease.account, lease.holds)
    if not is_paid:
        # It counts on the days that admitted the lease, even if new ones have begun since.
        _record(draft, request, cost, lease.account, lease.holds)
    rest = Cost(
        max(0, lease.held.information - cost.information),
        max(0, lease.held.calls - cost.calls),
    )
    draft.reserve(replace(lease, reservation_id=request.request_id, held=rest))
    # More than the lease held is counted, and said in the same way as a charge of an unknown lease.
    return Charged(cost, is_paid, draft.statuses() if is_within else ())


def _countable(draft: Draft, cost: Cost, account: Account, holds: tuple[Hold, ...]) -> Cost:
    """Return as much of a cost that no lease holds as every sum can take, and still what is held there."""
    most = draft.countable_on(account, holds)
    return Cost(min(cost.information, most.information), min(cost.calls, most.calls))


def _has_lapsed(snapshot: Snapshot, draft: Draft) -> bool:
    granted = snapshot.lease_granted
    if granted is None or not isinstance(granted.outcome, Reserved):
        return False
    if _is_given_back(snapshot):
        return False
    return draft.now >= granted.outcome.expires_at


def _is_given_back(snapshot: Snapshot) -> bool:
    """Return whether the lease was given back before this charge, or its region charged more than it held."""
    returned, before = snapshot.lease_returned, snapshot.lease_before
    if returned is not None and isinstance(returned.outcome, Cancelled):
        return True
    return before is not None and isinstance(before.outcome, Charged) and not before.outcome.levels


def _record(
    draft: Draft, request: ReportCharge, cost: Cost, account: Account, holds: tuple[Hold, ...]
) -> None:
    entry = JournalEntry(
        kind=EntryKind.SETTLED,
        account=account,
        cost=cost,
        unit_id=request.unit_id,
        request_id=request.request_id,
        release_id=request.release_id,
        query_id=request.query_id,
        time=draft.now,
        holds=holds,
        policy_statement=request.policy_statement,
    )
    if not draft.spend(entry):
        # It counts already, but the journal has every charge.
        draft.journal.append(entry)
    span = draft.payment_span(account, holds)
    if request.release_id and span is not None:
        end = draft.leaf.last_end
        keep_until = None if end is None else end + RETENTION
        draft.payment = Payment(request.release_id, request.query_id, span, keep_until)
