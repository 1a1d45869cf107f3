"""Give back what an account was charged for a release."""

from __future__ import annotations

from budget_service.ledger.act import AdministrativeAct, Needs, levels_of
from budget_service.ledger.case import Case
from budget_service.ledger.outcomes import Cancelled, Outcome, Reason, Refused
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import NOTHING, Cost, Fingerprint, Hold, blocks_of


class Refund(AdministrativeAct, frozen=True, gc=False, kw_only=True):
    """Give back what an account was charged for a release in its present window; the release is then no longer paid.

    The fields that may be left out are those of the charge in the journal, with empty `holds` if none counts.
    """

    release_id: str
    query_id: str = ""
    cost: Cost = NOTHING
    shared_cost: Cost | None = None
    unit_id: str = ""
    holds: tuple[Hold, ...] = ()

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator sent."""
        return self.digest("refund", self.release_id)

    def needs(self) -> Needs:
        """Return the blocks that alone had paid, and what was paid for."""
        return Needs(
            levels=levels_of(self.account),
            blocks=blocks_of(self.holds),
            releases=(self.release_id,),
            questions=(self.query_id,),
        )

    def decide(self, case: Case) -> Outcome:
        """Subtract what the release cost from the days that it was charged on, once.

        Payments are in the root's currency.
        """
        entry = self.entry(
            EntryKind.REFUNDED,
            case.now,
            cost=self.cost,
            unit_id=self.unit_id,
            release_id=self.release_id,
            query_id=self.query_id,
            holds=self.holds,
            shared_cost=self.shared_cost,
        )
        counts = case.is_paid(self.release_id) and case.counts_any(self.account, self.holds)
        if not (counts and case.has_charged(entry)):
            return Refused(Reason.NOT_PAID)
        case.keep()
        case.refund(entry)
        case.unpaid.append(("release", self.release_id))
        if case.recorded_release(self.query_id) == self.release_id:
            case.unpaid.append(("query", self.query_id))
        return Cancelled(self.cost, self.unit_id)
