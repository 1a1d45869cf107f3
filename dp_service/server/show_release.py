"""Shows a kept release: how much of it a question shows, with which intervals, and the ticket to charge it with.

The release was drawn and returned before, as a whole. What happens here is post-processing: it needs neither data nor
noise. The ticket of the release proves that this deployment made it for the plan's question; its elements and counts
need no proof, because they only come back to the caller that sent them. A sharpening is shown with the looks before it,
whose ids are in its plan.
"""

from __future__ import annotations

import numpy as np
from gris_api.dp.v1 import dp_pb2
from numpy.typing import NDArray

from dp_service.mechanisms.parameters import Cost
from dp_service.mechanisms.selection import Selection
from dp_service.releases.keys import KeySet, NoiseKey
from dp_service.releases.kinds import kind_of
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.plan import Plan, signing_key, verify_plan
from dp_service.releases.releasing import shown
from dp_service.releases.ticket import is_ticket
from dp_service.server.errors import ReleaseNotAuthenticError, RequestError
from dp_service.server.responses import ReleaseMessages
from dp_service.server.stream_assembler import checked_confidence
from dp_service.server.totals_messages import kept_totals


def show_release(request: dp_pb2.ShowReleaseRequest, keys: KeySet, *, now: int) -> dp_pb2.ShowReleaseResponse:
    """Show a kept release under the plan of a question.

    Args:
        request: The plan and the whole release.
        keys: The live keys.
        now: Seconds since 1970 (UTC).

    Raises:
        PlanError: The plan is not authentic, or too old.
        ReleaseNotAuthenticError: This deployment did not make the release for the plan's question.
        RequestError: Ranks and counts do not belong together, or the confidence is out of range.
    """
    key = signing_key(request.plan, keys)
    plan = verify_plan(request.plan, key, now=now)
    confidence = checked_confidence("confidence", request.confidence)
    require_authentic(plan, request.kept.bill, key)
    drawn = _drawn(plan, request)
    try:
        if (before := _looks_before(plan, request)) is None:
            view, combined = shown(plan.parameters, drawn, confidence=confidence), None
        else:
            _require_counts(drawn)
            together = kind_of(plan.parameters).together(drawn, before, confidence=confidence)
            view, combined = together.view, together.counts
    except ValueError:
        # A ticket says what a release costs, and not what is in it.
        raise RequestError("kept", "expected the counts and sums as the release has them") from None
    messages = ReleaseMessages(plan, confidence, key)
    return dp_pb2.ShowReleaseResponse(release=messages.shown_again(request.kept, view, combined))


def _looks_before(plan: Plan, request: dp_pb2.ShowReleaseRequest) -> list[NDArray[np.int64]] | None:
    """Return the counts of the looks that a sharpening is combined with; None: the plan is of none."""
    stated = plan.parameters.contributions
    expected = () if stated is None or stated.before is None else stated.before.release_ids
    if [each.release_id for each in request.before] != list(expected):
        raise RequestError("before", "expected the looks before the plan's, in their order")
    rows = request.kept.element_count
    if any(len(each.noisy_counts) != rows for each in request.before):
        raise RequestError("before.noisy_counts", "expected one for each element")
    return [np.array(each.noisy_counts, dtype=np.int64) for each in request.before] or None


def _require_counts(drawn: MechanismOutput) -> None:
    counts = drawn.selection.noisy_counts
    if counts is None or counts.shape != drawn.selection.indices.shape:
        raise RequestError("kept.elements.noisy_counts", "expected one for each element")


def require_authentic(plan: Plan, bill: dp_pb2.Bill, key: NoiseKey) -> None:
    """Make sure that this deployment made a release for the question of a plan.

    Raises:
        ReleaseNotAuthenticError: It did not.
    """
    authentic = bill.query_id == plan.query_id and is_ticket(
        bill.charge_ticket,
        key,
        release_id=bill.release_id,
        query_id=bill.query_id,
        cost=Cost(bill.cost.information, bill.cost.calls),
        unit_id=bill.cost.unit_id,
        policy_statement=bill.policy_statement,
    )
    if not authentic or bill.cost.unit_id != plan.unit_id:
        raise ReleaseNotAuthenticError


def _drawn(plan: Plan, request: dp_pb2.ShowReleaseRequest) -> MechanismOutput:
    """Return the release as its mechanism returned it, with ranks in place of positions in the histogram."""
    kept, ranks, rows = request.kept, request.element_ranks, request.kept.element_count
    counts = kept.elements.noisy_counts or kept.elements.noisy_numerators
    if len(ranks) != rows or sorted(ranks) != list(range(rows)):
        raise RequestError("element_ranks", "expected each number from 0 to element_count - 1 once")
    if len(counts) not in (0, rows) or (rows and not counts and plan.parameters.with_counts):
        raise RequestError("kept.elements.noisy_counts", "expected one for each element")
    has_counts = len(counts) > 0 or plan.parameters.with_counts
    selection = Selection(
        np.array(ranks, dtype=np.int64),
        np.array(counts, dtype=np.int64) if has_counts else None,
        kept.ended_in_bottom,
        kept.bottom if kept.HasField("bottom") else None,
    )
    return MechanismOutput(
        selection,
        total=kept.total if kept.HasField("total") else None,
        sums=tuple(np.array(each.values, dtype=np.int64) for each in kept.elements.sums),
        cells=tuple(np.array(each.cells, dtype=np.int64) for each in kept.elements.cells),
        totals=kept_totals(kept),
    )
