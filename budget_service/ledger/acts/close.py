"""Close an account.

No budget is made by it. What was spent, reserved and paid for stays where it counts.
"""

from __future__ import annotations

from msgspec.structs import replace

from budget_service.ledger.act import AdministrativeAct, Needs
from budget_service.ledger.case import Case
from budget_service.ledger.outcomes import LimitsSet, Outcome, Reason, Refused
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Fingerprint


class CloseAccount(AdministrativeAct, frozen=True, gc=False, kw_only=True):
    """Close an account, and with it all accounts below."""

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator sent."""
        return self.digest("close")

    def needs(self) -> Needs:
        """Return whether the account is closed, and how many are."""
        return Needs(is_limited=False, stored=True, closed=(self.account,))

    def decide(self, case: Case) -> Outcome:
        """Close the account."""
        if self.account in case.snapshot.closed:
            return Refused(Reason.ACCOUNT_CLOSED)
        if case.snapshot.stored_limits >= case.limits.most_stored:
            return Refused(Reason.TOO_MANY_LIMITS)
        return changed(case, self, EntryKind.CLOSE, is_closed=True)


def changed(case: Case, act: AdministrativeAct, kind: EntryKind, *, is_closed: bool) -> LimitsSet:
    """Close or open the account of an act."""
    # A request that comes with older limits is not decided: they are looked up again, and the account is closed.
    case.root = replace(case.root, limits_version=case.root.next_limits_version(case.now))
    case.closed = {act.account: is_closed}
    case.journal.append(act.entry(kind, case.now))
    case.keep()
    return LimitsSet(case.root.limits_version)
