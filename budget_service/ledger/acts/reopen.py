"""Open a closed account again, with what it had spent."""

from __future__ import annotations

from budget_service.ledger.act import AdministrativeAct, Needs
from budget_service.ledger.acts.close import changed
from budget_service.ledger.case import Case
from budget_service.ledger.outcomes import Outcome, Reason, Refused
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Fingerprint


class ReopenAccount(AdministrativeAct, frozen=True, gc=False, kw_only=True):
    """Open a closed account again, with what it had spent."""

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator sent."""
        return self.digest("reopen")

    def needs(self) -> Needs:
        """Return whether the account is closed."""
        return Needs(is_limited=False, stored=True, closed=(self.account,))

    def decide(self, case: Case) -> Outcome:
        """Open the account."""
        if self.account not in case.snapshot.closed:
            return Refused(Reason.ACCOUNT_NOT_CLOSED)
        return changed(case, self, EntryKind.REOPEN, is_closed=False)
