"""Hold a worst-case cost before the query runs."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from budget_service.ledger.act import Needs, levels_of
from budget_service.ledger.case import RETENTION, SHORT_RETENTION, Case
from budget_service.ledger.fingerprints import cost_fields, fingerprint_of, payer_fields
from budget_service.ledger.outcomes import Lent, Outcome, Reason, Refused, Reserved
from budget_service.ledger.state import Reservation
from budget_service.ledger.values import NOTHING, Account, Cost, Fingerprint
from budget_service.ledger.windows import Microseconds


class Reserve(Struct, frozen=True, gc=False, kw_only=True):
    """Reserve a worst-case cost for `ttl`. The service draws `reservation_id`, which is not part of the fingerprint.

    `is_lease`: a region borrows the cost to grant it itself; it is remembered as long as a charge, and `query_id` is
    the region's name. In a region, where charges count under a lease, `asked_by` is the account that the client named.
    Of members only those of the `blocks` pay; without any, all of them do.
    """

    account: Account
    request_id: str
    max_cost: Cost
    unit_id: str
    query_id: str
    ttl: Microseconds
    reservation_id: str
    forfeits: bool
    is_lease: bool = False
    asked_by: str = ""
    blocks: tuple[str, ...] = ()

    @property
    def wanted(self) -> Cost:
        """What it takes at most."""
        return self.max_cost

    def in_region(self, account: Account, reservation_id: str) -> Reserve:
        """Return the same of an account in a region's ledger: a lease is lent to everybody, whoever pays."""
        return replace(
            self, account=account, asked_by=self.account.text, reservation_id=reservation_id, blocks=()
        )

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the client sent."""
        fields = ("reserve", *cost_fields(self.max_cost, self.unit_id), self.query_id, str(self.ttl))
        return fingerprint_of(self.account, (*fields, *payer_fields(self.blocks)), self.asked_by)

    def needs(self) -> Needs:
        """Return the blocks that pay, and what was paid for the question."""
        return Needs(
            levels=levels_of(self.account),
            blocks=self.blocks,
            every_block=not self.blocks,
            questions=() if self.is_lease else (self.query_id,),
        )

    def decide(self, case: Case) -> Outcome:
        """Hold the cost, or nothing for a question that was paid for."""
        if case.limits.closed is not None:
            return Refused(Reason.ACCOUNT_CLOSED)
        if case.currency.unit_id not in ("", self.unit_id):
            return Refused(Reason.UNIT_MISMATCH)
        recorded = case.recorded_release(self.query_id)
        lease, expires_at = case.limits.lease, case.now + self.ttl
        if not recorded and lease is not None and expires_at > lease.ends_at:
            return Refused(Reason.LEASE_SPENT)
        if not recorded and (refusal := case.refusal(self.account, self.blocks, self.max_cost)):
            return refusal
        reservation = Reservation(
            reservation_id=self.reservation_id,
            account=self.account,
            request_id=self.request_id,
            query_id=self.query_id,
            held=NOTHING if recorded else self.max_cost,
            unit_id=self.unit_id,
            expires_at=expires_at,
            paid_release_id=recorded,
            forfeits=self.forfeits,
            holds=() if recorded else case.holds(self.blocks),
        )
        case.reserve(reservation)
        case.kept_until = expires_at + (RETENTION if self.is_lease else SHORT_RETENTION)
        lent = None
        if self.is_lease:
            # What a region charges from it cannot be refused, and must not be added to amounts of another currency.
            case.fix_currency(self.unit_id)
            lent = Lent(self.account, self.query_id, case.root.limits_version, reservation.holds)
        return Reserved(self.reservation_id, reservation.held, expires_at, bool(recorded), lent)
