"""What a budget is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from gris.dp.v1 import dp_pb2

from pinot_connector.errors import IntegrityError


class Bound(Enum):
    """How the privacy losses of many releases were added up."""

    BASIC = "basic"
    DONG_DURFEE_ROGERS = "dong_durfee_rogers"
    DURFEE_ROGERS = "durfee_rogers"
    ZCDP = "zcdp"


@dataclass(frozen=True)
class Guarantee:
    """All that a budget pays for is (epsilon, delta)-differentially private for every member; both are rounded up.

    `bound` says how epsilon was found, `composed` what every way of adding up gives that holds for the deployment.
    """

    epsilon: float
    delta: float
    bound: Bound
    composed: Mapping[Bound, float]


_BOUNDS = {
    dp_pb2.COMPOSITION_BOUND_BASIC: Bound.BASIC,
    dp_pb2.COMPOSITION_BOUND_DONG_DURFEE_ROGERS: Bound.DONG_DURFEE_ROGERS,
    dp_pb2.COMPOSITION_BOUND_DURFEE_ROGERS: Bound.DURFEE_ROGERS,
    dp_pb2.COMPOSITION_BOUND_ZCDP: Bound.ZCDP,
}


def guarantee_of(message: dp_pb2.DescribeGuaranteeResponse) -> Guarantee:
    """Returns the guarantee in a message. A bound that this version does not know is left out of `composed`.

    Raises:
        IntegrityError: the numbers cannot be a guarantee.
    """
    composed = {_BOUNDS[each.bound]: each.epsilon for each in message.composed if each.bound in _BOUNDS}
    numbers = (message.epsilon, message.delta)
    if message.bound not in _BOUNDS or not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise IntegrityError("dp_service described a guarantee that cannot be one")
    return Guarantee(message.epsilon, message.delta, _BOUNDS[message.bound], MappingProxyType(composed))
