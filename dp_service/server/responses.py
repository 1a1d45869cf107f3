"""Releases and prices as messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from dp_service.mechanisms.parameters import Cost
from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.resolution import Resolution
from dp_service.releases.choosing import Chosen
from dp_service.releases.expected_accuracy import expected_accuracy
from dp_service.releases.keys import NoiseKey
from dp_service.releases.mechanism import count_noise_scale, two_looks_of
from dp_service.releases.plan import Plan
from dp_service.releases.release_ids import keyed_data_version, names_tag
from dp_service.releases.releasing import IntervalKind, Released, ReleaseView, Total
from dp_service.releases.sums import AnsweredAggregate
from dp_service.releases.ticket import charge_ticket
from dp_service.server.messages import cost_message, element_columns
from dp_service.server.parameter_messages import parameters_message
from dp_service.server.quantile_messages import chosen_cells, quantile_values
from dp_service.server.totals_messages import kept_totals_message, shown_totals_message, totals_parameters

CHUNK_BYTES = 2**20
# At most: a noisy count, its interval and the tags around them.
_ROW_OVERHEAD_BYTES = 40
# At most: a sum or an average with its interval, three quotients of numbers with up to 40 digits.
_AGGREGATE_BYTES = 256

_INTERVAL_KINDS = {
    IntervalKind.NONE: dp_pb2.INTERVAL_KIND_NONE,
    IntervalKind.PLAIN: dp_pb2.INTERVAL_KIND_PLAIN,
    IntervalKind.GIVEN_SHOWN: dp_pb2.INTERVAL_KIND_GIVEN_SHOWN,
    IntervalKind.SIMULTANEOUS: dp_pb2.INTERVAL_KIND_SIMULTANEOUS,
}


def element_chunks(plan: Plan, released: Released) -> Iterator[dp_pb2.ReleasedElements]:
    """Yield the released elements in messages of at most 1 MiB; one empty message if there are none."""
    rows = max(1, CHUNK_BYTES // _widest_row_bytes(released))
    for start in range(0, max(1, len(released.elements)), rows):
        yield _elements(plan, released, slice(start, start + rows))


def all_elements(plan: Plan, released: Released) -> dp_pb2.ReleasedElements:
    """Return the released elements in one message."""
    return _elements(plan, released, slice(None))


def accuracy(parameters: ReleaseParameters) -> dp_pb2.ExpectedAccuracy:
    """Return how exact an answer with these parameters can be expected to be."""
    # What is None stays unset.
    return dp_pb2.ExpectedAccuracy(**asdict(expected_accuracy(parameters)))


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
        parameters=plan_parameters(plan),
        confidence=confidence,
        interval_kind=_INTERVAL_KINDS[released.interval_kind],
        data_version=keyed_data_version(key, plan.table, plan.data_version),
        key_id=key.key_id,
        policy_statement=plan.policy_statement,
        shown_count=released.shown.count if released.whole else None,
        total=None if released.shown.total is None else _total(released.shown.total),
        shown_rows=released.shown.rows if released.whole else None,
        names_tag=_names_tag(plan, released, key),
        totals=shown_totals_message(plan, released.shown.totals),
        kept_totals=kept_totals_message(plan, released.totals) if released.whole else None,
    )


def plan_parameters(plan: Plan) -> dp_pb2.MechanismParameters:
    """Return the parameters of a plan in the form in which people read them."""
    return _parameters(plan.parameters, [name for name, _ in plan.columns])


def resolved_parameters(resolution: Resolution) -> dp_pb2.MechanismParameters:
    """Return the parameters of a resolved question in the form in which people read them."""
    return _parameters(resolution.parameters, [name for name, _ in resolution.columns])


def _parameters(parameters: ReleaseParameters, columns: Sequence[str]) -> dp_pb2.MechanismParameters:
    message = parameters_message(parameters, count_noise_scale(parameters))
    if (totals := totals_parameters(parameters, columns)) is not None:
        message.totals.CopyFrom(totals)
    return message


def _names_tag(plan: Plan, released: Released, key: NoiseKey) -> bytes:
    """Return what lets a look more be taken at the elements of two looks; empty where they are no names."""
    if plan.looks is None or not released.whole or plan.parameters.quantiles is not None:
        return b""
    return names_tag(key, released.release_id, released.elements)


def _total(total: Total) -> dp_pb2.NoisyTotal:
    lower, upper = total.interval
    return dp_pb2.NoisyTotal(count=total.noisy, interval_lower=lower, interval_upper=upper)


def unfinished_release(plan: Plan, key: NoiseKey) -> dp_pb2.UnfinishedRelease | None:
    """Return what to charge if the question ends between its two looks; None: it has one look."""
    mechanism = two_looks_of(plan.parameters)
    if mechanism is None:
        return None
    cost = mechanism.cost_of_names()
    ticket = charge_ticket(
        key,
        release_id="",
        query_id=plan.query_id,
        cost=cost,
        unit_id=plan.unit_id,
        policy_statement=plan.policy_statement,
    )
    return dp_pb2.UnfinishedRelease(
        cost=cost_message(cost, plan.unit_id), charge_ticket=ticket, policy_statement=plan.policy_statement
    )


def alternatives(chosen: Chosen) -> Iterator[dp_pb2.Alternative]:
    """Yield the ways of answering between which the service has chosen."""
    for each in chosen.among:
        parameters = each.resolution.parameters
        yield dp_pb2.Alternative(
            parameters=resolved_parameters(each.resolution),
            worst_case_cost=cost_message(each.worst, each.resolution.unit_id),
            chosen=parameters == chosen.resolution.parameters,
            finds_all=each.finds_all,  # type: ignore[arg-type]  # None leaves it unset
        )


def show_response(
    plan: Plan, kept: dp_pb2.Release, view: ReleaseView, confidence: float, key: NoiseKey
) -> dp_pb2.ShowReleaseResponse:
    """Return how a kept release is shown, with a ticket for the plan's policy statement."""
    release = dp_pb2.Release()
    release.CopyFrom(kept)
    release.shown_count = view.count
    release.shown_rows[:] = view.rows or ()
    release.parameters.CopyFrom(plan_parameters(plan))
    release.interval_kind = _INTERVAL_KINDS[view.interval_kind]
    release.confidence = confidence
    if view.total is not None:
        release.total.CopyFrom(_total(view.total))
    if (totals := shown_totals_message(plan, view.totals)) is not None:
        release.totals.CopyFrom(totals)
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
    response.aggregates.extend(_values(each, slice(None)) for each in view.aggregates)
    response.quantiles.extend(map(quantile_values, view.quantiles))
    if view.intervals is not None:
        response.interval_lower.extend(view.intervals.lower.tolist())
        response.interval_upper.extend(view.intervals.upper.tolist())
    return response


def _elements(plan: Plan, released: Released, rows: slice) -> dp_pb2.ReleasedElements:
    message = dp_pb2.ReleasedElements(columns=element_columns(plan.columns, released.elements[rows]))
    if released.noisy_counts is not None:
        noisy = released.noisy_counts[rows].tolist()
        if released.denominator == 1:
            message.noisy_counts.extend(noisy)
        else:
            message.noisy_numerators.extend(noisy)
            message.noisy_denominator = released.denominator
    if released.intervals is not None:
        message.interval_lower.extend(released.intervals.lower[rows].tolist())
        message.interval_upper.extend(released.intervals.upper[rows].tolist())
    message.sums.extend(
        histogram_pb2.CentredSums(values=column[rows].tolist())
        for column in (released.sums if released.whole else ())
    )
    message.aggregates.extend(_values(each, rows) for each in released.shown.aggregates)
    message.cells.extend(chosen_cells(released.cells if released.whole else (), rows))
    message.quantiles.extend(quantile_values(each, rows) for each in released.shown.quantiles)
    return message


def _values(aggregate: AnsweredAggregate, rows: slice) -> dp_pb2.AggregateValues:
    """Return a sum or an average of some rows; what is not shown is an empty text."""
    ends = [
        ("", "", "") if each is None else (str(each.value), str(each.lower), str(each.upper))
        for each in aggregate.answers[rows]
    ]
    values, lower, upper = zip(*ends, strict=True) if ends else ((), (), ())
    return dp_pb2.AggregateValues(values=values, lower=lower, upper=upper)


def _widest_row_bytes(released: Released) -> int:
    widths = (
        sum(len(value.encode()) if isinstance(value, str) else 10 for value in element)
        for element in released.elements
    )
    shown = (*released.shown.aggregates, *released.shown.quantiles)
    return _ROW_OVERHEAD_BYTES + _AGGREGATE_BYTES * (len(released.sums) + len(shown)) + max(widths, default=0)
