"""Results and prices as the gateway's messages."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from google.protobuf.timestamp_pb2 import Timestamp
from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from gris_api.common.v1 import cost_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.budgets import Cost, Level, Mode, Share
from pinot_connector.element_messages import cut
from pinot_connector.guarantees import (
    BOUND_NUMBERS,
    SHARING_NUMBERS,
    AccountGuarantee,
    BudgetGuarantee,
    Guarantee,
)
from pinot_connector.results import Explanation, PrivateResult, estimate_of, messages_of

_MODES = {Mode.ENFORCE: budget_pb2.MODE_ENFORCE, Mode.TRACK: budget_pb2.MODE_TRACK}


def result_message(result: PrivateResult) -> app_pb2.Result:
    """Return everything about a result except its elements."""
    shown, _ = messages_of(result)
    return app_pb2.Result(
        shown=shown, charged=cost_message(result.charged), remaining=map(level_message, result.remaining)
    )


def element_chunks(result: PrivateResult) -> Iterator[dp_pb2.ShownElements]:
    """Yield the elements in messages of at most 1 MiB or one row; one empty message if there are none."""
    return cut(all_elements(result), len(result.rows))


def all_elements(result: PrivateResult) -> dp_pb2.ShownElements:
    """Return the elements in one message."""
    return messages_of(result)[1]


def explanation_message(explanation: Explanation) -> app_pb2.ExplainResponse:
    """Return what a question would cost; the engines' queries stay with the operator."""
    return app_pb2.ExplainResponse(
        estimate=estimate_of(explanation), shares=map(share_message, explanation.shares)
    )


def share_message(share: Share) -> app_pb2.BudgetShare:
    """Return the share of one level's budget that a question takes."""
    return app_pb2.BudgetShare(
        path=share.path,
        unit=share.unit,
        cost=share.cost,
        limit=share.limit,
        remaining=share.remaining,
        mode=_MODES[share.mode],
    )


def level_message(level: Level) -> budget_pb2.Level:
    """Return one level of a budget."""
    return budget_pb2.Level(
        path=level.path,
        limit=cost_message(level.limit),
        spent=cost_message(level.spent),
        reserved=cost_message(level.reserved),
        remaining=cost_message(level.remaining),
        mode=_MODES[level.mode],
        window_start=_timestamp(level.window_start),
        window_end=_timestamp(level.window_end),
        over_limit=level.over_limit,
    )


def guarantee_message(guarantee: AccountGuarantee) -> app_pb2.GetGuaranteeResponse:
    """Return the guarantee for what an account is shown."""
    return app_pb2.GetGuaranteeResponse(
        account=budget_pb2.Account(path=guarantee.account),
        own=_budget_guarantee(guarantee.own),
        shared=None if guarantee.shared is None else _budget_guarantee(guarantee.shared),
        sharing=SHARING_NUMBERS[guarantee.sharing],
    )


def _budget_guarantee(guarantee: BudgetGuarantee) -> app_pb2.BudgetGuarantee:
    return app_pb2.BudgetGuarantee(
        path=guarantee.path,
        limit=None if guarantee.limit is None else cost_message(guarantee.limit),
        worth=None if guarantee.guarantee is None else _worth(guarantee.guarantee),
    )


def _worth(guarantee: Guarantee) -> dp_pb2.BudgetWorth:
    return dp_pb2.BudgetWorth(
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        bound=BOUND_NUMBERS[guarantee.bound],
        composed=[
            dp_pb2.ComposedEpsilon(bound=BOUND_NUMBERS[bound], epsilon=epsilon)
            for bound, epsilon in guarantee.composed.items()
        ],
        domain_count=guarantee.domain_count,
    )


def cost_message(cost: Cost) -> cost_pb2.Cost:
    """Return a cost."""
    return cost_pb2.Cost(information=cost.information, calls=cost.calls, unit_id=cost.unit_id)


def _timestamp(timestamp: datetime.datetime | None) -> Timestamp | None:
    if timestamp is None:
        return None
    message = Timestamp()
    message.FromDatetime(timestamp)
    return message
