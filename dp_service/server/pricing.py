"""What a question would cost and what to expect of it, as a message: from the policy and the question alone."""

from __future__ import annotations

from collections.abc import Iterable

from gris_api.dp.v1 import dp_pb2

from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.resolution import NAMES_TO_COME, Resolution, second_look
from dp_service.releases.kinds import kind_of
from dp_service.releases.saying import of_question
from dp_service.releases.usefulness import verdict
from dp_service.server import responses
from dp_service.server.free_answers import free_estimate
from dp_service.server.messages import cost_message, statement_message
from dp_service.server.parameter_messages import parameters_message
from dp_service.server.question_cache import CachedQuestion, engine_query, look_of


def priced(asked: CachedQuestion) -> dp_pb2.EstimateCostResponse:
    """Return the worst-case cost of a question, what is said of it, and the queries that it would need."""
    resolution = asked.resolution
    kind = kind_of(resolution.parameters)
    worst, expected = kind.mechanism.worst_case_cost(), kind.accuracy()
    if asked.query.free is not None:
        return free_estimate(asked.query.free, resolution)
    estimate = dp_pb2.Estimate(
        worst_case_cost=cost_message(worst, resolution.paid_by),
        parameters=parameters_message(resolution.parameters),
        statements=map(
            statement_message,
            (*verdict(asked.typical_errors), *of_question(resolution, worst, expected, asked.allowed)),
        ),
        requested_k=resolution.requested_k or 0,
        accuracy=responses.accuracy_message(expected),
    )
    return dp_pb2.EstimateCostResponse(estimate=estimate, engine_queries=_all_queries(resolution))


def engine_queries(resolution: Resolution, dialects: Iterable[str]) -> list[dp_pb2.EngineQuery]:
    """Return the query of a resolved question for each of these engines."""
    return [engine_query(resolution, dialect) for dialect in dialects]


def _all_queries(resolution: Resolution) -> list[dp_pb2.EngineQuery]:
    """Return all queries that a question would need, those of a second look without the names."""
    first = engine_queries(resolution, DIALECTS)
    if not look_of(resolution):
        return first
    return [*first, *engine_queries(second_look(resolution, NAMES_TO_COME), DIALECTS)]
