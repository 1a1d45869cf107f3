"""Plan the currency that follows, or withdraw the plan."""

from __future__ import annotations

from budget_service.ledger.act import AdministrativeAct, Needs
from budget_service.ledger.case import Case
from budget_service.ledger.currency import window_before
from budget_service.ledger.outcomes import CurrencyChanged, Outcome, Reason, Refused
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Fingerprint, Hold
from budget_service.ledger.windows import Microseconds


class ChangeCurrency(AdministrativeAct, frozen=True, gc=False, kw_only=True):
    """Plan the currency that follows in a root, the `account`, or plan none any more if `unit_id` is empty."""

    unit_id: str

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator sent."""
        return self.digest("change currency", self.unit_id)

    def needs(self) -> Needs:
        """Return nothing: a reservation that has lapsed and is forfeited is a charge, which fixes the currency."""
        return Needs()

    def decide(self, case: Case) -> Outcome | None:
        """Plan the next currency, or withdraw the plan if the currency has not begun."""
        if case.snapshot.due_further:
            return None
        if case.currency.next_unit_id:
            return Refused(Reason.CURRENCY_PLANNED) if self.unit_id else self._planned(case, 0)
        if not self.unit_id:
            return Refused(Reason.NO_CURRENCY_PLANNED)
        if self.unit_id == case.currency.unit_id:
            return Refused(Reason.UNIT_UNCHANGED)
        begins_at = window_before(case.limits.rules, case.now).end
        return Refused(Reason.WINDOW_NEVER_ENDS) if begins_at is None else self._planned(case, begins_at)

    def _planned(self, case: Case, begins_at: Microseconds) -> CurrencyChanged:
        case.currency = case.currency.followed_by(self.unit_id, begins_at)
        holds = (Hold(self.account.depth, begins_at),)
        case.journal.append(self.entry(EntryKind.CURRENCY, case.now, unit_id=self.unit_id, holds=holds))
        case.keep()
        return CurrencyChanged(self.unit_id, begins_at)
