"""Let the time of a root continue after its store's clock was wrong."""

from __future__ import annotations

from msgspec.structs import replace

from budget_service.ledger.act import AdministrativeAct, Needs
from budget_service.ledger.case import Case
from budget_service.ledger.outcomes import ClockResumed, Outcome, Reason, Refused
from budget_service.ledger.state import CLOCK_TOLERANCE, EntryKind
from budget_service.ledger.values import Fingerprint, Hold
from budget_service.ledger.windows import Microseconds


class ResumeClock(AdministrativeAct, frozen=True, gc=False, kw_only=True):
    """Let the time of a root, the `account`, continue after its store's clock was wrong.

    `true_time` is the present time by the administrator's clock.
    """

    true_time: Microseconds

    def fingerprint(self) -> Fingerprint:
        """Return a digest without the time: a retry is sent later, with another time."""
        return self.digest("resume clock")

    def needs(self) -> Needs:
        """Return nothing but the root."""
        return Needs(is_limited=False)

    def decide(self, case: Case) -> Outcome:
        """Let time continue from the last one recorded, at the speed of the store's clock.

        Time never goes back, so no window is opened again, and each window lasts as long as its rule says.
        """
        clock, ahead = case.snapshot.clock, case.now - case.snapshot.clock
        # A clock that is wrong now may be corrected later, and time would jump ahead by as much.
        if abs(clock - self.true_time) > CLOCK_TOLERANCE:
            return Refused(Reason.CLOCKS_DISAGREE)
        if ahead - case.root.ahead < CLOCK_TOLERANCE:
            return Refused(Reason.CLOCK_NOT_BEHIND)
        case.root = replace(case.root, ahead=ahead)
        holds = (Hold(self.account.depth, ahead),)
        case.journal.append(self.entry(EntryKind.CLOCK, case.now, holds=holds))
        case.keep()
        return ClockResumed(ahead)
