"""Set or remove stored limits."""

from __future__ import annotations

from msgspec.structs import replace

from budget_service.ledger.act import AdministrativeAct, Needs
from budget_service.ledger.case import Case
from budget_service.ledger.limits import change_text, limit_text
from budget_service.ledger.outcomes import LimitsSet, Outcome, Reason, Refused
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Account, Fingerprint, Limit


class SetLimits(AdministrativeAct, frozen=True, gc=False, kw_only=True):
    """Set or remove (None) limits on levels of one root, which is the `account`; those levels need not be used yet."""

    changes: tuple[tuple[Account, Limit | None], ...]

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything the administrator sent."""
        changes = ((level.text, "" if limit is None else limit_text(limit)) for level, limit in self.changes)
        return self.digest("set limits", *[field for change in changes for field in change])

    def needs(self) -> Needs:
        """Return how many limits are stored, and those of the levels."""
        return Needs(is_limited=False, stored=True, limits=tuple([level for level, _ in self.changes]))

    def decide(self, case: Case) -> Outcome:
        """Set the limits, and record what each was."""
        added = sum(limit is not None for _, limit in self.changes)
        if added and case.snapshot.stored_limits + added > case.limits.most_stored:
            return Refused(Reason.TOO_MANY_LIMITS)
        case.root = replace(case.root, limits_version=case.root.next_limits_version(case.now))
        case.set_limits = self.changes
        for level, limit in self.changes:
            change = change_text(case.snapshot.limits.get(level), limit)
            case.journal.append(self.entry(EntryKind.LIMIT, case.now, account=level, change=change))
        case.keep()
        return LimitsSet(case.root.limits_version)
