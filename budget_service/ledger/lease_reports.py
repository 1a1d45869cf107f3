"""The rules by which the home ledger records what a region has charged from a lease, and takes the rest back.

A lease is a reservation that is forfeited when it lapses: what its region has not reported by then counts as spent. So
every report is of something that has happened and that counts already, and none of its own region is refused.

What was forfeited and never granted is given back, once, on the days on which it was spent. No clock decides how much
that is: the region has ended the lease on its disk, nothing is reserved from it or under way, and it says all that it
has charged from it. Only the process that borrowed the lease and has run since says so: what a restored file or a copy
has forgotten is never said to be free.
"""

from __future__ import annotations

from msgspec.structs import replace

from budget_service.ledger.administration import RETENTION
from budget_service.ledger.draft import Draft
from budget_service.ledger.outcomes import Cancelled, Charged, Lent, Outcome, Reason, Refused, Reserved
from budget_service.ledger.requests import ReportCharge, ReturnLease
from budget_service.ledger.state import EntryKind, JournalEntry, Payment, Reservation, Snapshot
from budget_service.ledger.values import MAX_AMOUNT, NOTHING, Account, Cost, Hold


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
    if _is_of_another(snapshot, request.region):
        return Refused(Reason.LEASE_NOT_YOURS)
    reported = _with_earlier(snapshot, request.cost)
    if lease is not None:
        return replace(_from_lease(draft, request, lease, is_paid=is_paid), reported=reported)
    if _has_lapsed(snapshot, draft):
        if not is_paid:
            _record(draft, request, NOTHING, request.account, draft.holds())
        return Charged(NOTHING, is_paid, draft.statuses(), reported)
    holds = draft.holds()
    cost = _countable(draft, request.cost, request.account, holds)
    _record(draft, request, cost, request.account, holds)
    return Charged(cost, False, ())


def return_lease(snapshot: Snapshot, draft: Draft, request: ReturnLease) -> Outcome:
    """End a lease and return what it holds, or what was forfeited of it and never granted.

    What is returned after the lease has lapsed is a refund in the journal. It is the share without all that was charged
    from it, so that what is forfeited still covers every charge, whether it is reported or not.
    """
    lease = snapshot.reservation
    if _is_of_another(snapshot, request.region):
        return Refused(Reason.LEASE_NOT_YOURS)
    if lease is not None and draft.now < lease.expires_at:
        if request.is_written_off:
            # Remembered for an hour, and no lease lasts longer.
            return Refused(Reason.RESERVATION_OVER)
        draft.end(lease)
        return Cancelled(lease.held, lease.unit_id)
    if lease is not None and lease.reservation_id not in draft.ended:
        # More have lapsed than one step ends.
        draft.expire(lease)
    entry = _refund_of_lapsed(snapshot, draft, request)
    if entry is None or not draft.has_charged(entry):
        return Refused(Reason.RESERVATION_OVER)
    draft.refund(entry)
    return Cancelled(entry.cost, entry.unit_id)


def _refund_of_lapsed(snapshot: Snapshot, draft: Draft, request: ReturnLease) -> JournalEntry | None:
    granted, charged = _lapsed(snapshot, draft), request.charged
    if granted is None or granted.lent is None or charged is None or not charged.within(granted.held):
        return None
    rest, lent = granted.held - charged, granted.lent
    # No more than was forfeited: what is reported was not.
    if rest == NOTHING or not _with_earlier(snapshot).within(charged):
        return None
    if not _is_as_lent(snapshot, draft, request, lent) or not _is_last_report(snapshot, draft, request):
        return None
    return JournalEntry(
        kind=EntryKind.REFUNDED,
        account=request.account,
        cost=rest,
        unit_id=request.unit_id,
        request_id=request.request_id,
        release_id="",
        query_id=request.region,
        time=draft.now,
        holds=lent.holds,
        reason="a region has not used this of a share that had lapsed",
    )


def _is_as_lent(snapshot: Snapshot, draft: Draft, request: ReturnLease, lent: Lent) -> bool:
    """Return whether the account, its limits and its currency are those by which a lease was lent.

    What was left may have been written off, in the place of charges that were lost: it may be spent already. Then the
    limits have another version.
    """
    is_limited_so = lent.limits_version == snapshot.root.limits_version
    return is_limited_so and request.account == lent.account and draft.currency.unit_id == request.unit_id


def _is_of_another(snapshot: Snapshot, region: str) -> bool:
    """Return whether a lease was lent to another region; nothing is known of one that this ledger never granted."""
    lease, granted = snapshot.reservation, _granted(snapshot)
    if lease is not None:
        return lease.query_id != region
    return granted is not None and granted.lent is not None and granted.lent.region != region


def _with_earlier(snapshot: Snapshot, cost: Cost = NOTHING) -> Cost:
    """Return all that was reported of a lease, with the cost of a report that comes now."""
    before = None if snapshot.lease_before is None else snapshot.lease_before.outcome
    earlier = before.reported if isinstance(before, Charged) else NOTHING
    return Cost(
        min(MAX_AMOUNT, earlier.information + cost.information), min(MAX_AMOUNT, earlier.calls + cost.calls)
    )


def _granted(snapshot: Snapshot) -> Reserved | None:
    granted = None if snapshot.lease_granted is None else snapshot.lease_granted.outcome
    return granted if isinstance(granted, Reserved) else None


def _lapsed(snapshot: Snapshot, draft: Draft) -> Reserved | None:
    """Return how a lease was granted that is over, None if it is not or was not granted here."""
    granted = _granted(snapshot)
    return granted if granted is not None and granted.expires_at <= draft.now else None


def _is_last_report(snapshot: Snapshot, draft: Draft, request: ReturnLease) -> bool:
    """Return whether the lease had just these reports, and was not given back before one of them.

    Else the ledger of this home, or the region's, was set back or copied. What was given back is remembered as long as
    the grant.
    """
    granted, before = snapshot.lease_granted, snapshot.lease_before
    if granted is None or draft.now >= granted.keep_until:
        return False
    is_known = before is not None and isinstance(before.outcome, Charged) and bool(before.outcome.levels)
    return snapshot.lease_after is None and (request.number == 0 or is_known)


def _from_lease(draft: Draft, request: ReportCharge, lease: Reservation, *, is_paid: bool) -> Charged:
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
    return _lapsed(snapshot, draft) is not None and not _is_given_back(snapshot)


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
