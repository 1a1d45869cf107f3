"""Charge what a release has cost: settle a reservation, or deduct directly."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from budget_service.ledger.act import Needs, levels_of
from budget_service.ledger.case import Case
from budget_service.ledger.fingerprints import cost_fields, fingerprint_of, payer_fields
from budget_service.ledger.outcomes import Charged, Outcome, Reason, Refused
from budget_service.ledger.state import EntryKind, JournalEntry, Reservation
from budget_service.ledger.values import NOTHING, Account, Cost, Fingerprint, Hold, blocks_of


class Charge(Struct, frozen=True, gc=False, kw_only=True):
    """Settle a reservation, or deduct directly if `reservation_id` is empty; ids that are not known are empty.

    `further` are charges of the same account, request, currency and payers, which are made with it, all or none; each
    deducts directly and names a release and a question of its own. `policy_statement` lists the publications of the
    release's policy; it is opaque here, and empty for none. With `worst_case_above`, which the service sets and which
    is not part of the fingerprint, the levels above the account count the reserved cost. `asked_by` and `blocks` as in
    `Reserve`.
    """

    account: Account
    request_id: str
    cost: Cost
    unit_id: str
    reservation_id: str
    release_id: str
    query_id: str
    charge_ticket: bytes = b""
    policy_statement: str = ""
    worst_case_above: bool = False
    asked_by: str = ""
    blocks: tuple[str, ...] = ()
    further: tuple[Charge, ...] = ()

    @property
    def wanted(self) -> Cost:
        """What it takes."""
        return _sum_of([self, *self.further])

    def in_region(self, account: Account, _reservation_id: str) -> Charge:
        """Return the same of an account in a region's ledger: a lease is lent to everybody, whoever pays."""
        return replace(self, account=account, asked_by=self.account.text, blocks=())

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the client sent."""
        further = [field for each in self.further for field in ("//further", *each._fields())]
        fields = ("charge", *self._fields(), *further, *payer_fields(self.blocks))
        return fingerprint_of(self.account, fields, self.asked_by)

    def needs(self) -> Needs:
        """Return the blocks that pay, the reservation, and what was paid for the release and the question."""
        return Needs(
            levels=levels_of(self.account),
            blocks=self.blocks,
            every_block=not self.blocks,
            reservation_id=self.reservation_id,
            releases=(self.release_id, *[each.release_id for each in self.further]),
            questions=(self.query_id, *[each.query_id for each in self.further]),
        )

    def decide(self, case: Case) -> Outcome:
        """Charge the cost, or nothing for a release that was paid for.

        What was reserved before its account was closed ends as it would.
        """
        if case.limits.closed is not None and not self.reservation_id:
            return Refused(Reason.ACCOUNT_CLOSED)
        if case.currency.unit_id not in ("", self.unit_id):
            return Refused(Reason.UNIT_MISMATCH)
        return self._settled(case) if self.reservation_id else self._deducted(case)

    def _deducted(self, case: Case) -> Outcome:
        charges = (self, *self.further)
        if any(each._contradicts(case.recorded_release(each.query_id)) for each in charges):
            return Refused(Reason.RELEASE_MISMATCH)
        due = [each for each in charges if not case.is_paid(each.release_id)]
        if not due:
            return Charged(
                NOTHING, True, case.statuses(), each=(NOTHING,) * len(charges) if self.further else ()
            )
        lease = case.limits.lease
        if lease is not None and case.now >= lease.ends_at:
            return Refused(Reason.LEASE_SPENT)
        total = _sum_of(due)
        if refusal := case.refusal(self.account, self.blocks, total):
            return refusal
        for each in due:
            entry = each._entry(case, EntryKind.DIRECT, each.query_id, case.holds(self.blocks))
            if case.spend(entry):
                case.keep()
                case.pay(each.release_id, each.query_id, case.leaf.day.start)
        taken = [NOTHING if case.is_paid(each.release_id) else each.cost for each in charges]
        return Charged(total, False, case.statuses(), each=tuple(taken) if self.further else ())

    def _settled(self, case: Case) -> Outcome:
        reservation = case.reservation
        if reservation is None:
            return Refused(Reason.RESERVATION_OVER)
        if (refusal := self._mismatch(case, reservation)) is not None:
            return refusal
        # The payment made the question free, however old it is. Only a refund withdraws it.
        if reservation.paid_release_id and self.release_id not in case.snapshot.paid_releases:
            return Refused(Reason.RESERVATION_OVER)
        if reservation.paid_release_id or case.is_paid(self.release_id):
            case.end(reservation)
            return Charged(NOTHING, True, case.statuses())
        if not self.cost.within(reservation.held):
            return Refused(Reason.COST_ABOVE_RESERVATION)
        case.end(reservation)
        # The charge counts on the days that admitted the reservation, even if new ones have begun since.
        entry = self._entry(case, EntryKind.SETTLED, reservation.query_id, reservation.holds)
        # What was held fits into the levels above: it was just returned there.
        entry = replace(entry, shared_cost=reservation.held) if self.worst_case_above else entry
        if case.spend(entry):
            case.keep()
            span = case.payment_span(reservation.account, entry.holds)
            case.pay(self.release_id, reservation.query_id, span)
        return Charged(self.cost, False, case.statuses())

    def _mismatch(self, case: Case, reservation: Reservation) -> Refused | None:
        # Before the first charge, reservations of several currencies may be open.
        if self.unit_id != reservation.unit_id:
            return Refused(Reason.UNIT_MISMATCH)
        if self.query_id not in ("", reservation.query_id):
            return Refused(Reason.QUERY_MISMATCH)
        # One for a question that was paid for holds nothing, for nobody.
        if reservation.holds and self.blocks != (blocks := blocks_of(reservation.holds)):
            return Refused(Reason.BLOCKS_MISMATCH, blocks, self.blocks)
        recorded = (reservation.paid_release_id, case.recorded_release(reservation.query_id))
        return Refused(Reason.RELEASE_MISMATCH) if any(map(self._contradicts, recorded)) else None

    def _fields(self) -> tuple[str, ...]:
        ids = (self.reservation_id, self.release_id, self.query_id, self.charge_ticket.hex())
        return (*cost_fields(self.cost, self.unit_id), *ids, self.policy_statement)

    def _contradicts(self, recorded: str) -> bool:
        # One question over one version of the data has one release: another one means that the data changed in between.
        return recorded not in ("", self.release_id)

    def _entry(self, case: Case, kind: EntryKind, query_id: str, holds: tuple[Hold, ...]) -> JournalEntry:
        return JournalEntry(
            kind=kind,
            account=self.account,
            cost=self.cost,
            unit_id=self.unit_id,
            request_id=self.request_id,
            release_id=self.release_id,
            query_id=query_id,
            time=case.now,
            holds=holds,
            policy_statement=self.policy_statement,
        )


def _sum_of(charges: Iterable[Charge]) -> Cost:
    return sum((each.cost for each in charges), start=NOTHING)
