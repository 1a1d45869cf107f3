"""What a question in SQL asks that needs no release: the columns of an answer alone, or the values of listed domains.

All of it follows from the policy and the question. No data are read, nothing is drawn, and nothing is paid.
"""

from __future__ import annotations

from collections.abc import Sequence

from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from dp_service.mechanisms.parameters import Cost
from dp_service.queries.resolution import Resolution
from dp_service.queries.structured import Free, HistogramQuery
from dp_service.releases.saying import of_free
from dp_service.server.messages import cost_message, element_columns, statement_message
from dp_service.server.parameter_messages import parameters_message
from dp_service.terms import Element

_CONFIDENCE = 0.95
_FREE = Cost(0, 0)


def free_answer(
    query: HistogramQuery, resolution: Resolution, columns: Sequence[histogram_pb2.Column]
) -> dp_pb2.FreeAnswer | None:
    """Return the answer of a question that needs no release; None: it needs one.

    Args:
        query: The question.
        resolution: How it would be answered.
        columns: The columns of its elements, with the question's aliases.
    """
    if query.free is None:
        return None
    elements = _listed(query, resolution)
    has_counts = query.free is Free.COLUMNS and not (query.omit_counts or query.quantiles or query.probed)
    shown = dp_pb2.Shown(
        columns=columns,
        count_alias=query.count_alias,
        element_count=len(elements),
        parameters=parameters_message(resolution.parameters),
        interval_kind=dp_pb2.INTERVAL_KIND_PLAIN if has_counts else dp_pb2.INTERVAL_KIND_NONE,
        confidence=_CONFIDENCE,
        cost=cost_message(_FREE, resolution.paid_by),
        statements=[statement_message(of_free(query.free))],
        selected=query.shown,
    )
    values = element_columns(resolution.columns, elements) if elements else ()
    return dp_pb2.FreeAnswer(shown=shown, elements=dp_pb2.ShownElements(columns=values))


def free_estimate(free: Free, resolution: Resolution) -> dp_pb2.EstimateCostResponse:
    """Return the price of a question that needs no release: nothing."""
    estimate = dp_pb2.Estimate(
        worst_case_cost=cost_message(_FREE, resolution.paid_by),
        parameters=parameters_message(resolution.parameters),
        statements=[statement_message(of_free(free))],
    )
    return dp_pb2.EstimateCostResponse(estimate=estimate)


def _listed(query: HistogramQuery, resolution: Resolution) -> Sequence[Element]:
    if query.free is Free.COLUMNS:
        return ()
    return (resolution.parameters.domain or ())[: query.k]
