"""Results and prices as the gateway's messages."""

from __future__ import annotations

from collections.abc import Iterator

from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from gris_api.common.v1 import cost_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.element_messages import cut
from pinot_connector.results import Explanation, PrivateResult, estimate_of, messages_of
from pinot_connector.views import message_of


def result_message(result: PrivateResult) -> app_pb2.Result:
    """Return everything about a result except its elements."""
    shown, _ = messages_of(result)
    return app_pb2.Result(
        shown=shown,
        charged=message_of(cost_pb2.Cost, result.charged),
        remaining=[message_of(budget_pb2.Level, each) for each in result.remaining],
        price=None if result.explanation is None else explanation_message(result.explanation),
    )


def element_chunks(result: PrivateResult) -> Iterator[dp_pb2.ShownElements]:
    """Yield the elements in messages of at most 1 MiB or one row; one empty message if there are none."""
    return cut(all_elements(result), len(result.rows))


def all_elements(result: PrivateResult) -> dp_pb2.ShownElements:
    """Return the elements in one message."""
    return messages_of(result)[1]


def explanation_message(explanation: Explanation) -> app_pb2.ExplainResponse:
    """Return what a question would cost; the engines' queries stay with the operator."""
    shares = [message_of(app_pb2.BudgetShare, each) for each in explanation.shares]
    return app_pb2.ExplainResponse(estimate=estimate_of(explanation), shares=shares)
