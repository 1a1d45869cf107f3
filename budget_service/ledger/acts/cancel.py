"""Give a reservation back: the query failed, and nothing was released."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from budget_service.ledger.act import Needs, levels_of
from budget_service.ledger.case import Case
from budget_service.ledger.fingerprints import fingerprint_of
from budget_service.ledger.leases import is_lease
from budget_service.ledger.outcomes import Cancelled, Outcome, Reason, Refused
from budget_service.ledger.values import Account, Fingerprint


class CancelReservation(Struct, frozen=True, gc=False, kw_only=True):
    """Cancel a reservation. `asked_by` as in `Reserve`."""

    account: Account
    request_id: str
    reservation_id: str
    asked_by: str = ""

    def in_region(self, account: Account, _reservation_id: str) -> CancelReservation:
        """Return the same of an account in a region's ledger."""
        return replace(self, account=account, asked_by=self.account.text)

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the client sent."""
        return fingerprint_of(self.account, ("release", self.reservation_id), self.asked_by)

    def needs(self) -> Needs:
        """Return the reservation."""
        return Needs(levels=levels_of(self.account), reservation_id=self.reservation_id)

    def decide(self, case: Case) -> Outcome:
        """Return what it held."""
        reservation = case.reservation
        if reservation is None:
            return Refused(Reason.RESERVATION_OVER)
        if is_lease(reservation.reservation_id):
            return Refused(Reason.LEASE_NOT_YOURS)
        case.end(reservation)
        return Cancelled(reservation.held, reservation.unit_id)
