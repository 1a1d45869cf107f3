"""Spend what is left of a level, in the place of charges that were lost."""

from __future__ import annotations

from budget_service.ledger.act import AdministrativeAct, Needs
from budget_service.ledger.case import Case
from budget_service.ledger.outcomes import Charged, Outcome
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import NOTHING, Fingerprint, Mode


class WriteOff(AdministrativeAct, frozen=True, gc=False, kw_only=True):
    """Spend what is left of one level, the `account`, because an unknown amount of charges was lost."""

    def fingerprint(self) -> Fingerprint:
        """Return a digest of the request."""
        return self.digest("write off")

    def needs(self) -> Needs:
        """Return the level."""
        return Needs(levels=(self.account,))

    def decide(self, case: Case) -> Outcome:
        """Spend what the level has left in the present window for a block that has paid nothing; none in mode track.

        Everybody pays it, so that nothing is left to any block, known or not. In a sliding window it counts as charged
        today, and so for at least as long as any lost charge.
        """
        (each,), (status,) = case.levels, case.statuses()
        rest = NOTHING if each.limit.mode is Mode.TRACK else status.remaining
        case.keep()
        if rest != NOTHING:
            unit_id = case.currency.unit_id
            case.spend(self.entry(EntryKind.LOST, case.now, cost=rest, unit_id=unit_id, holds=case.holds()))
        return Charged(rest, False, case.statuses())
