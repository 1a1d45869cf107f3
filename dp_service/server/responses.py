"""Releases and prices as messages."""

from __future__ import annotations

from collections.abc import Iterator

from gris_api.dp.v1 import dp_pb2

from dp_service.mechanisms.parameters import Cost
from dp_service.releases.identity import keyed_data_version
from dp_service.releases.keys import NoiseKey
from dp_service.releases.mechanism import count_noise_scale
from dp_service.releases.plan import Plan
from dp_service.releases.releasing import IntervalKind, Released, Shown
from dp_service.releases.ticket import charge_ticket
from dp_service.server.messages import cost_message, element_columns, parameters_message

CHUNK_BYTES = 2**20
# At most: a noisy count, its interval and the tags around them.
_ROW_OVERHEAD_BYTES = 40

_INTERVAL_KINDS = {
    IntervalKind.NONE: dp_pb2.INTERVAL_KIND_NONE,
    IntervalKind.PLAIN: dp_pb2.INTERVAL_KIND_PLAIN,
    IntervalKind.GIVEN_SHOWN: dp_pb2.INTERVAL_KIND_GIVEN_SHOWN,
}


def element_chunks(plan: Plan, released: Released) -> Iterator[dp_pb2.ReleasedElements]:
    """Yield the released elements in messages of at most 1 MiB; one empty message if there are none."""
    rows = max(1, CHUNK_BYTES // _widest_row_bytes(released))
    for start in range(0, max(1, len(released.elements)), rows):
        yield _elements(plan, released, slice(start, start + rows))


def all_elements(plan: Plan, released: Released) -> dp_pb2.ReleasedElements:
    """Return the released elements in one message."""
    return _elements(plan, released, slice(None))


def release_message(plan: Plan, released: Released, confidence: float, key: NoiseKey) -> dp_pb2.Release:
    """Return the part of a response that describes the release as a whole, with its charge ticket."""
    ticket = charge_ticket(
        key,
        release_id=released.release_id,
        query_id=plan.query_id,
        cost=released.cost,
        unit_id=plan.unit_id,
        policy_statement=plan.policy_statement,
    )
    return dp_pb2.Release(
        element_count=len(released.elements),
        ended_in_bottom=released.ended_in_bottom,
        bottom=released.bottom,
        cost=cost_message(released.cost, plan.unit_id),
        release_id=released.release_id,
        query_id=plan.query_id,
        charge_ticket=ticket,
        parameters=parameters_message(plan.parameters, count_noise_scale(plan.parameters)),
        confidence=confidence,
        interval_kind=_INTERVAL_KINDS[released.interval_kind],
        data_version=keyed_data_version(key, plan.table, plan.data_version),
        key_id=key.key_id,
        policy_statement=plan.policy_statement,
        shown_count=released.shown.count if released.whole else None,
    )


def show_response(
    plan: Plan, kept: dp_pb2.Release, view: Shown, confidence: float, key: NoiseKey
) -> dp_pb2.ShowReleaseResponse:
    """Return how a kept release is shown, with a ticket for the plan's policy statement."""
    release = dp_pb2.Release()
    release.CopyFrom(kept)
    release.shown_count = view.count
    release.parameters.CopyFrom(parameters_message(plan.parameters, count_noise_scale(plan.parameters)))
    release.interval_kind = _INTERVAL_KINDS[view.interval_kind]
    release.confidence = confidence
    release.policy_statement = plan.policy_statement
    release.charge_ticket = charge_ticket(
        key,
        release_id=kept.release_id,
        query_id=plan.query_id,
        cost=Cost(kept.cost.information, kept.cost.calls),
        unit_id=plan.unit_id,
        policy_statement=plan.policy_statement,
    )
    response = dp_pb2.ShowReleaseResponse(release=release)
    if view.intervals is not None:
        response.interval_lower.extend(view.intervals.lower.tolist())
        response.interval_upper.extend(view.intervals.upper.tolist())
    return response


def _elements(plan: Plan, released: Released, rows: slice) -> dp_pb2.ReleasedElements:
    message = dp_pb2.ReleasedElements(columns=element_columns(plan.columns, released.elements[rows]))
    if released.noisy_counts is not None:
        message.noisy_counts.extend(released.noisy_counts[rows].tolist())
    if released.intervals is not None:
        message.interval_lower.extend(released.intervals.lower[rows].tolist())
        message.interval_upper.extend(released.intervals.upper[rows].tolist())
    return message


def _widest_row_bytes(released: Released) -> int:
    widths = (
        sum(len(value.encode()) if isinstance(value, str) else 10 for value in element)
        for element in released.elements
    )
    return _ROW_OVERHEAD_BYTES + max(widths, default=0)
