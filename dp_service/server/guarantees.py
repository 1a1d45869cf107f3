"""What a budget is worth, and which budget is worth what is wanted, as messages."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from gris.dp.v1 import dp_pb2

from dp_service.accounting.checks import MAX_UNITS, require_probability
from dp_service.accounting.composition import Bound, PublishedDomain, guarantee, guarantees
from dp_service.accounting.solving import (
    Split,
    Target,
    UnreachableError,
    best_epsilon_per,
    calls_for,
    epsilon_per_for,
    information_for,
    papers_split,
)
from dp_service.queries.policy import CountNoise, Policy
from dp_service.queries.policy_schema import exact_decimal
from dp_service.server.errors import RequestError, UnitMismatchError
from dp_service.server.messages import COUNT_NOISES

DEFAULT_SLACK = "1e-9"
MAX_DOMAINS = 1000

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
    slack = _decimal("slack", request.slack or DEFAULT_SLACK)
    if not 0 < slack < 1:
        raise RequestError("slack", "expected a decimal number strictly between 0 and 1, such as 1e-9")
    found = guarantees(
        currency.epsilon_per,
        currency.delta,
        information=request.information,
        calls=request.calls,
        slack=slack,
        gaussian=policy.count_noise is CountNoise.GAUSSIAN,
        domains=_domains(request),
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


def _domains(request: dp_pb2.DescribeGuaranteeRequest) -> list[PublishedDomain]:
    if len(request.domains) > MAX_DOMAINS:
        raise RequestError("domains", f"expected at most {MAX_DOMAINS} published domains")
    return [_domain(each, f"domains[{i}]") for i, each in enumerate(request.domains)]


def _domain(message: dp_pb2.PublishedDomain, field: str) -> PublishedDomain:
    rho, delta = _decimal(f"{field}.rho", message.rho), _decimal(f"{field}.delta", message.delta)
    try:
        return PublishedDomain(rho, delta)
    except ValueError as error:
        raise RequestError(f"{field}.{str(error).partition(' ')[0]}", str(error)) from None


def solve_parameters(
    request: dp_pb2.SolveParametersRequest, policy: Policy
) -> dp_pb2.SolveParametersResponse:
    """Return parameters whose guarantee is within the wanted one; what was found is rounded to the private side.

    Raises RequestError naming the field, also where nothing reaches what is wanted.
    """
    missing = [request.epsilon_per == "", request.information == 0, request.calls == 0]
    if sum(missing) != 1:
        raise RequestError(
            "epsilon_per", "expected exactly one of epsilon_per, information, calls to be left out"
        )
    try:
        solved = _solved(request, policy)
        worth = guarantee(
            solved.epsilon_per,
            solved.split.delta,
            information=solved.information,
            calls=solved.calls,
            slack=solved.split.slack,
            gaussian=policy.count_noise is CountNoise.GAUSSIAN,
        )
    except ValueError as error:
        # Every check of the accounting begins with the name of what it checks.
        raise RequestError(str(error).partition(" ")[0], str(error)) from None
    return dp_pb2.SolveParametersResponse(
        epsilon_per=str(solved.epsilon_per),
        information=solved.information,
        calls=solved.calls,
        delta_per_call=str(solved.split.delta),
        slack=str(solved.split.slack),
        epsilon=worth.epsilon,
        delta=worth.delta,
        bound=_BOUNDS[worth.bound],
    )


@dataclass(frozen=True)
class _Solved:
    epsilon_per: Fraction
    information: int
    calls: int
    split: Split


def _solved(request: dp_pb2.SolveParametersRequest, policy: Policy) -> _Solved:
    target = Target(
        _decimal("epsilon", request.epsilon),
        _decimal("delta", request.delta),
        gaussian=policy.count_noise is CountNoise.GAUSSIAN,
    )
    if request.calls == 0:
        return _solved_for_calls(request, target, policy)
    split = papers_split(target, request.calls)
    if request.information == 0:
        epsilon_per = _decimal("epsilon_per", request.epsilon_per)
        information = information_for(target, split, epsilon_per=epsilon_per)
        return _Solved(epsilon_per, information, request.calls, split)
    if request.d_bar:
        best = best_epsilon_per(
            target, information=request.information, calls=request.calls, d_bar=request.d_bar
        )
        return _Solved(best.epsilon_per, request.information, request.calls, best.split)
    epsilon_per = epsilon_per_for(target, split, information=request.information)
    return _Solved(epsilon_per, request.information, request.calls, split)


def _solved_for_calls(request: dp_pb2.SolveParametersRequest, target: Target, policy: Policy) -> _Solved:
    given = request.delta_per_call
    per_call = _decimal("delta_per_call", given) if given else policy.currency.delta
    require_probability("delta_per_call", per_call)
    split = Split(delta=per_call, slack=target.delta / 2)
    epsilon_per = _decimal("epsilon_per", request.epsilon_per)
    if information_for(target, split, epsilon_per=epsilon_per) < request.information:
        raise UnreachableError(
            "epsilon must be larger for this epsilon_per and information, whatever the calls"
        )
    return _Solved(epsilon_per, request.information, calls_for(target, split), split)


def _decimal(field: str, text: str) -> Fraction:
    try:
        return exact_decimal(text)
    except ValueError as error:
        raise RequestError(field, str(error)) from None
