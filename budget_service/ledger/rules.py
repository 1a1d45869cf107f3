"""The rules: what the ledger answers to an act, and what it writes.

Two promises hold for every sequence of decisions whose changes are written. In mode enforce, no allowed request raises
what is spent and reserved in a window above the limit. And a charge that was answered is in the journal.
"""

from __future__ import annotations

from budget_service.ledger.act import Act
from budget_service.ledger.case import Case
from budget_service.ledger.limits import NO_VERSION, AppliedLimits, LimitsChangedError
from budget_service.ledger.outcomes import Answer, Reason, Refused
from budget_service.ledger.state import Decision, Snapshot
from budget_service.ledger.windows import Microseconds


def decide(snapshot: Snapshot, act: Act, limits: AppliedLimits, now: Microseconds) -> Decision:
    """Answer an act by the limits that apply to it.

    The change must be written while all that the snapshot read is unchanged; only then may the answer be given.

    Args:
        snapshot: The state of the root account, as far as the act needs it.
        act: What is asked.
        limits: The limits of the act's account and the version of the root's stored limits they were found with.
        now: The ledger's time, `snapshot.root.now(clock)`.

    Returns:
        The answer, and what has to be written before it is given; without an answer, decide again then.

    Raises:
        LimitsChangedError: The root's stored limits have changed since the limits were found, or these are none.
        HistoryNeededError: The snapshot needs the past days too.
        BlocksNeededError: It needs a page of blocks; decide again then.
    """
    remembered, fingerprint = snapshot.remembered, act.fingerprint()
    if remembered is not None and now < remembered.keep_until:
        is_same = remembered.fingerprint == fingerprint
        outcome = remembered.outcome if is_same else Refused(Reason.REQUEST_ID_REUSED)
        return Decision(Answer(outcome, replayed=is_same), None)
    needs = act.needs()
    is_versioned = needs.is_limited or limits.version == NO_VERSION
    if is_versioned and limits.version != snapshot.root.limits_version:
        raise LimitsChangedError
    case = Case(snapshot, limits, now, needs.levels)
    if snapshot.page is not None:
        case.read_blocks(snapshot.page)
        return case.to_be_continued()
    return case.decided(fingerprint, act.decide(case))
