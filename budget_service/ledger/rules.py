"""The rules: what the ledger answers to a request, and what it writes.

Two promises hold for every sequence of decisions whose changes are written. In mode enforce, no allowed request raises
what is spent and reserved in a window above the limit. And a charge that was answered is in the journal.
"""

from __future__ import annotations

from itertools import chain

from msgspec.structs import replace

from budget_service.ledger.administration import (
    act_entry,
    change_currency,
    resume_clock,
    set_limits,
)
from budget_service.ledger.closing import change_account, is_closed_to, refuse_closed
from budget_service.ledger.counting import counting_levels
from budget_service.ledger.draft import Draft
from budget_service.ledger.lease_reports import record_report, return_lease
from budget_service.ledger.leases import is_lease
from budget_service.ledger.limits import AppliedLimits, LeaseBounds, LimitsChangedError
from budget_service.ledger.outcomes import (
    Answer,
    Cancelled,
    Charged,
    Exhausted,
    Held,
    Lent,
    LevelStatus,
    Outcome,
    Reason,
    Refused,
    Reserved,
)
from budget_service.ledger.records import change_of, entry_of, note_payment
from budget_service.ledger.requests import (
    AccountRequest,
    CancelReservation,
    ChangeCurrency,
    Charge,
    Refund,
    ReportCharge,
    Request,
    Reserve,
    ResumeClock,
    ReturnLease,
    SetLimits,
    WriteOff,
)
from budget_service.ledger.state import (
    Change,
    Decision,
    EntryKind,
    JournalEntry,
    Reservation,
    Snapshot,
    StoredOutcome,
)
from budget_service.ledger.values import NOTHING, Account, Cost, Mode, blocks_of
from budget_service.ledger.windows import Microseconds

# What a question about everybody reads of each level of a root at most. A policy has at most 1,001 blocks at a
# time, and each new one takes a balance for good.
MAX_BLOCKS_OF_ROOT = 10_000

_NOT_REMEMBERED = (Reason.LEASE_SPENT, Reason.LEASE_NOT_YOURS)


def decide(snapshot: Snapshot, request: Request, limits: AppliedLimits, now: Microseconds) -> Decision:
    """Answer a request by the limits that apply to it.

    The change must be written while all that the snapshot read is unchanged; only then may the answer be given.

    Args:
        snapshot: The state of the root account, as far as the request needs it.
        request: What is asked.
        limits: The limits of the request's account and the version of the root's stored limits they were found with.
        now: The ledger's time, `snapshot.root.now(clock)`.

    Returns:
        The answer, and what has to be written before it is given; without an answer, decide again then.

    Raises:
        LimitsChangedError: The root's stored limits have changed since the limits were found.
        HistoryNeededError: The snapshot needs the past days too.
    """
    remembered = snapshot.remembered
    if remembered is not None and now < remembered.keep_until:
        return Decision(_replay(remembered, request), None)
    if isinstance(request, SetLimits | ResumeClock | AccountRequest):
        return _administer(snapshot, request, limits, now)
    if limits.version != snapshot.root.limits_version:
        raise LimitsChangedError
    if isinstance(request, ChangeCurrency):
        return change_currency(snapshot, request, limits, now)
    if is_closed_to(request, limits):
        return refuse_closed(snapshot, request, now)
    draft = Draft(snapshot, limits.levels, now, counting_levels(request))
    if isinstance(request, ReportCharge):
        outcome = record_report(snapshot, draft, request, is_paid=_release_is_paid(snapshot, draft))
    elif isinstance(request, ReturnLease):
        outcome = return_lease(snapshot, draft, request)
    else:
        outcome = _outcome(snapshot, draft, request, limits)
    return _decided(snapshot, draft, outcome, change_of(snapshot, draft, request, outcome))


def _decided(snapshot: Snapshot, draft: Draft, outcome: Outcome, change: Change) -> Decision:
    answer = Answer(outcome, replayed=False)
    if isinstance(outcome, Refused) and outcome.reason in _NOT_REMEMBERED:
        # The home ledger may grant the same request, or its own region make it.
        return Decision(answer, replace(change, remembered=None) if draft.ended else None)
    if not isinstance(outcome, Exhausted | Held):
        return Decision(answer, change)
    if snapshot.due_further:
        # What more has lapsed is still counted as held: this is no refusal to be given, or remembered.
        return Decision(None, replace(change, remembered=None))
    if isinstance(outcome, Exhausted):
        return Decision(answer, change)
    # The same request may be granted as soon as a reservation ends. Only what has lapsed is worth writing.
    return Decision(answer, replace(change, remembered=None) if draft.ended else None)


def _replay(remembered: StoredOutcome, request: Request) -> Answer:
    if remembered.fingerprint != request.fingerprint():
        return Answer(Refused(Reason.REQUEST_ID_REUSED), replayed=False)
    return Answer(remembered.outcome, replayed=True)


def _administer(
    snapshot: Snapshot,
    request: SetLimits | ResumeClock | AccountRequest,
    limits: AppliedLimits,
    now: Microseconds,
) -> Decision:
    """Decide what depends on no limit."""
    if isinstance(request, SetLimits):
        return set_limits(snapshot, request, limits, now)
    if isinstance(request, ResumeClock):
        return resume_clock(snapshot, request, now)
    return change_account(snapshot, request, limits, now)


def _outcome(
    snapshot: Snapshot,
    draft: Draft,
    request: Reserve | Charge | CancelReservation | WriteOff | Refund,
    limits: AppliedLimits,
) -> Outcome:
    if isinstance(request, CancelReservation):
        return _cancel(snapshot, draft, request)
    if isinstance(request, WriteOff):
        return _write_off(draft, request, limits)
    if isinstance(request, Refund):
        # Payments are in the root's currency.
        return _refund(snapshot, draft, request)
    if draft.currency.unit_id not in ("", request.unit_id):
        return Refused(Reason.UNIT_MISMATCH)
    if isinstance(request, Reserve):
        return _reserve(snapshot, draft, request, limits.lease)
    return _charge(snapshot, draft, request, limits.lease)


def _reserve(snapshot: Snapshot, draft: Draft, request: Reserve, lease: LeaseBounds | None) -> Outcome:
    recorded = _recorded_release(snapshot, draft)
    if not recorded and lease is not None and draft.now + request.ttl > lease.ends_at:
        return Refused(Reason.LEASE_SPENT)
    if not recorded and (refusal := _admission(snapshot, draft, request, request.max_cost)):
        return refusal if lease is None else Refused(Reason.LEASE_SPENT)
    reservation = Reservation(
        reservation_id=request.reservation_id,
        account=request.account,
        request_id=request.request_id,
        query_id=request.query_id,
        held=NOTHING if recorded else request.max_cost,
        unit_id=request.unit_id,
        expires_at=draft.now + request.ttl,
        paid_release_id=recorded,
        forfeits=request.forfeits,
        holds=() if recorded else draft.holds(request.blocks),
    )
    draft.reserve(reservation)
    if request.is_lease:
        # What a region charges from it cannot be refused, and must not be added to amounts of another currency.
        draft.fix_currency(request.unit_id)
    outcome = Reserved(request.reservation_id, reservation.held, reservation.expires_at, bool(recorded))
    if not request.is_lease:
        return outcome
    lent = Lent(request.account, request.query_id, snapshot.root.limits_version, reservation.holds)
    return replace(outcome, lent=lent)


def _charge(snapshot: Snapshot, draft: Draft, request: Charge, lease: LeaseBounds | None) -> Outcome:
    if request.reservation_id:
        return _settle(snapshot, draft, request, lease)
    if _contradicts(request, _recorded_release(snapshot, draft)):
        return Refused(Reason.RELEASE_MISMATCH)
    if _release_is_paid(snapshot, draft):
        return Charged(NOTHING, True, draft.statuses())
    if lease is not None and draft.now >= lease.ends_at:
        return Refused(Reason.LEASE_SPENT)
    if refusal := _admission(snapshot, draft, request, request.cost):
        return refusal if lease is None else Refused(Reason.LEASE_SPENT)
    holds = draft.holds(request.blocks)
    if draft.spend(entry_of(EntryKind.DIRECT, draft, request, request.query_id, holds=holds)):
        note_payment(draft, request, request.query_id, draft.leaf.day.start, lease)
    return Charged(request.cost, False, draft.statuses())


def _settle(snapshot: Snapshot, draft: Draft, request: Charge, lease: LeaseBounds | None) -> Outcome:
    reservation = _open_reservation(snapshot, draft)
    if reservation is None:
        return Refused(Reason.RESERVATION_OVER)
    if (refusal := _mismatch(snapshot, draft, request, reservation)) is not None:
        return refusal
    # The payment made the question free, however old it is. Only a refund withdraws it.
    if reservation.paid_release_id and snapshot.release_paid_in is None:
        return Refused(Reason.RESERVATION_OVER)
    if reservation.paid_release_id or _release_is_paid(snapshot, draft):
        draft.end(reservation)
        return Charged(NOTHING, True, draft.statuses())
    if not request.cost.within(reservation.held):
        return Refused(Reason.COST_ABOVE_RESERVATION)
    draft.end(reservation)
    # The charge counts on the days that admitted the reservation, even if new ones have begun since.
    entry = entry_of(EntryKind.SETTLED, draft, request, reservation.query_id, holds=reservation.holds)
    # What was held fits into the levels above: it was just returned there.
    entry = replace(entry, shared_cost=reservation.held) if request.worst_case_above else entry
    span = draft.payment_span(reservation.account, reservation.holds)
    if draft.spend(entry) and span is not None:
        note_payment(draft, request, reservation.query_id, span, lease)
    return Charged(request.cost, False, draft.statuses())


def _mismatch(snapshot: Snapshot, draft: Draft, request: Charge, reservation: Reservation) -> Refused | None:
    # Before the first charge, reservations of several currencies may be open.
    if request.unit_id != reservation.unit_id:
        return Refused(Reason.UNIT_MISMATCH)
    if request.query_id not in ("", reservation.query_id):
        return Refused(Reason.QUERY_MISMATCH)
    # One for a question that was paid for holds nothing, for nobody.
    if reservation.holds and request.blocks != (blocks := blocks_of(reservation.holds)):
        return Refused(Reason.BLOCKS_MISMATCH, blocks, request.blocks)
    recorded = (reservation.paid_release_id, _recorded_release(snapshot, draft))
    return Refused(Reason.RELEASE_MISMATCH) if any(_contradicts(request, each) for each in recorded) else None


def _cancel(snapshot: Snapshot, draft: Draft, request: CancelReservation) -> Outcome:
    reservation = _open_reservation(snapshot, draft)
    if reservation is None:
        return Refused(Reason.RESERVATION_OVER)
    if is_lease(reservation.reservation_id):
        return Refused(Reason.LEASE_NOT_YOURS)
    draft.end(reservation)
    return Cancelled(reservation.held, reservation.unit_id)


def _write_off(draft: Draft, request: WriteOff, limits: AppliedLimits) -> Outcome:
    """Spend what the level has left in the present window for a block that has paid nothing; nothing in mode track.

    Everybody pays it, so that nothing is left to any block, known or not. In a sliding window it counts as charged
    today, and so for at least as long as any lost charge.
    """
    (each,), (status,) = limits.levels, draft.statuses()
    rest = NOTHING if each.limit.mode is Mode.TRACK else status.remaining
    if rest != NOTHING:
        unit_id = draft.currency.unit_id
        draft.spend(
            act_entry(EntryKind.LOST, request, draft.now, cost=rest, unit_id=unit_id, holds=draft.holds())
        )
    return Charged(rest, False, draft.statuses())


def _refund(snapshot: Snapshot, draft: Draft, request: Refund) -> Outcome:
    """Subtract what a release cost from the days that it was charged on, once. It is then no longer paid for."""
    entry = JournalEntry(
        kind=EntryKind.REFUNDED,
        account=request.account,
        cost=request.cost,
        unit_id=request.unit_id,
        request_id=request.request_id,
        release_id=request.release_id,
        query_id=request.query_id,
        time=draft.now,
        holds=request.holds,
        shared_cost=request.shared_cost,
        reason=request.reason,
        actor=request.actor,
    )
    counts = _release_is_paid(snapshot, draft) and draft.counts_any(request.account, request.holds)
    if not (counts and draft.has_charged(entry)):
        return Refused(Reason.NOT_PAID)
    draft.refund(entry)
    draft.unpaid.append(("release", request.release_id))
    if _recorded_release(snapshot, draft) == request.release_id:
        draft.unpaid.append(("query", request.query_id))
    return Cancelled(request.cost, request.unit_id)


def _admission(
    snapshot: Snapshot, draft: Draft, request: Reserve | Charge, cost: Cost
) -> Exhausted | Held | Refused | None:
    """Return why `cost` may not be added to every level, or None if it may."""
    account = request.account
    added = sum(account.level(1).of_block(block) not in snapshot.balances for block in request.blocks)
    if added and snapshot.block_count + added > MAX_BLOCKS_OF_ROOT:
        return Refused(Reason.TOO_MANY_BLOCKS)
    fits = draft.can_count(cost)
    if not draft.has_room(cost):
        statuses = draft.statuses()
        if refusal := shortage(statuses, cost, account, draft.now):
            return refusal
        # Only the sum of a level in mode track may exceed 64 bits here.
        fits = fits and all(cost.fits_above(status.spent, status.reserved) for status in statuses)
    return None if fits else Refused(Reason.SUM_OVERFLOW)


def shortage(
    statuses: tuple[LevelStatus, ...], cost: Cost, account: Account, now: Microseconds
) -> Exhausted | Held | None:
    """Return what is missing to pay `cost`: each unit of each level, from the widest; None if nothing is.

    What does not fit even if nothing were reserved is exhausted, and then only that is reported; else it is held.
    """
    depth = account.depth
    spent = [each.shortfalls(cost, left=each.unspent, depth=depth) for each in statuses]
    if any(spent):
        return Exhausted(now, tuple(chain.from_iterable(spent)))
    held = [each.shortfalls(cost, left=each.remaining, depth=depth) for each in statuses]
    return Held(now, tuple(chain.from_iterable(held))) if any(held) else None


def _open_reservation(snapshot: Snapshot, draft: Draft) -> Reservation | None:
    reservation = snapshot.reservation
    return reservation if reservation is not None and draft.now < reservation.expires_at else None


def _recorded_release(snapshot: Snapshot, draft: Draft) -> str:
    """Return the release for which the question was paid in a span that counts; empty if there is none."""
    paid = snapshot.query_paid
    return paid.release_id if paid is not None and draft.is_paid_in(paid.window_start) else ""


def _release_is_paid(snapshot: Snapshot, draft: Draft) -> bool:
    return snapshot.release_paid_in is not None and draft.is_paid_in(snapshot.release_paid_in)


def _contradicts(request: Charge, recorded: str) -> bool:
    # One question over one version of the data has one release: another one means that the data changed in between.
    return recorded not in ("", request.release_id)
