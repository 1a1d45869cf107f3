"""What a budget in this deployment's currency is worth, as messages."""

from __future__ import annotations

from fractions import Fraction

from gris.dp.v1 import dp_pb2

from dp_service.accounting.checks import MAX_UNITS
from dp_service.accounting.composition import Bound, guarantees
from dp_service.queries.policy import CountNoise, Policy
from dp_service.queries.policy_schema import exact_decimal
from dp_service.server.errors import RequestError, UnitMismatchError
from dp_service.server.messages import COUNT_NOISES

DEFAULT_SLACK = "1e-9"

_BOUNDS = {
    Bound.BASIC: dp_pb2.COMPOSITION_BOUND_BASIC,
    Bound.DONG_DURFEE_ROGERS: dp_pb2.COMPOSITION_BOUND_DONG_DURFEE_ROGERS,
    Bound.DURFEE_ROGERS: dp_pb2.COMPOSITION_BOUND_DURFEE_ROGERS,
    Bound.ZCDP: dp_pb2.COMPOSITION_BOUND_ZCDP,
}


def describe_guarantee(
    request: dp_pb2.DescribeGuaranteeRequest, policy: Policy
) -> dp_pb2.DescribeGuaranteeResponse:
    """Return the guarantee of a budget by every bound that the policy leaves true, rounded up.

    Raises RequestError naming the field, or UnitMismatchError for a budget in another currency.
    """
    currency = policy.currency
    if request.unit_id not in ("", currency.unit_id):
        raise UnitMismatchError
    for field, units in (("information", request.information), ("calls", request.calls)):
        if not 0 <= units <= MAX_UNITS:
            raise RequestError(field, "expected 0 to 2^53 units")
    slack = _slack(request.slack or DEFAULT_SLACK)
    found = guarantees(
        currency.epsilon_per,
        currency.delta,
        information=request.information,
        calls=request.calls,
        slack=slack,
        gaussian=policy.count_noise is CountNoise.GAUSSIAN,
    )
    best = min(found, key=lambda each: each.epsilon)
    return dp_pb2.DescribeGuaranteeResponse(
        epsilon=best.epsilon,
        delta=best.delta,
        bound=_BOUNDS[best.bound],
        composed=[dp_pb2.ComposedEpsilon(bound=_BOUNDS[each.bound], epsilon=each.epsilon) for each in found],
        epsilon_per=str(currency.epsilon_per),
        delta_per_call=str(currency.delta),
        slack=str(slack),
        count_noise=COUNT_NOISES[policy.count_noise],
    )


def _slack(text: str) -> Fraction:
    try:
        slack = exact_decimal(text)
    except ValueError:
        slack = Fraction(0)
    if not 0 < slack < 1:
        raise RequestError("slack", "expected a decimal number strictly between 0 and 1, such as 1e-9")
    return slack
