"""What dp_service says that a budget is worth, and which bounds it uses under which policy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import grpc
import pytest
from gris_api.dp.v1 import dp_pb2

from dp_service.accounting.composition import PublishedDomain, guarantee
from tests.support.dp_questions import error_of
from tests.support.dp_server import servicer_of, serving

DEFAULTS = "epsilon_per: 0.15\ndelta: 1e-10\n"
TABLES = "tables: {t: {member: m, measures: {distinct_members: true}, columns: {c: {type: string}}}}"
ZCDP = 33.78


async def described(policy: str = DEFAULTS + TABLES, **fields: Any) -> dp_pb2.BudgetWorth:
    """Return what the default budget is worth under a policy, with some fields changed."""
    request = dp_pb2.DescribeGuaranteeRequest(**({"information": 3000, "calls": 30} | fields))
    async with serving(servicer_of(policy)) as dp:
        response: dp_pb2.DescribeGuaranteeResponse = await dp.DescribeGuarantee(request)
        return response.worth


async def test_the_default_budget_is_worth_its_published_numbers() -> None:
    """zCDP gives 33.78, and delta is 2 calls delta + slack; one unit is worth what it is."""
    found = await described()
    assert found.delta == pytest.approx(7e-9)
    assert ZCDP == round(found.epsilon, 2)
    assert 0.15 == pytest.approx((await described(information=1, calls=0)).epsilon)


@pytest.mark.parametrize("information", [1, 3000])
async def test_gaussian_counts_are_accounted_by_zcdp(information: int) -> None:
    """Sums do not cover Gaussian noise, not even for few releases, where they are smaller."""
    gaussian = "count_noise: gaussian\n" + DEFAULTS + TABLES
    found = await described(gaussian, information=information)
    laplace = await described(information=information)
    assert found.epsilon >= laplace.epsilon
    assert (found.epsilon > laplace.epsilon) == (information == 1)


async def test_published_domains_count() -> None:
    """Each adds its rho and its delta."""
    domain = dp_pb2.PublishedDomain(rho="0.1", delta="1e-9")
    found = await described(domains=[domain, domain])
    expected = guarantee(
        Fraction("0.15"),
        Fraction("1e-10"),
        information=3000,
        calls=30,
        slack=Fraction("1e-9"),
        domains=[PublishedDomain(Fraction("0.1"), Fraction("1e-9"))] * 2,
    )
    assert (expected.epsilon, expected.delta) == (found.epsilon, found.delta)
    assert found.delta == pytest.approx(9e-9)


@pytest.mark.parametrize(
    ("domains", "named"),
    [
        ([("0", "1e-9")], "domains[0].rho"),
        ([("0.1", "1e-9"), ("0.1", "1")], "domains[1].delta"),
        ([("x", "1e-9")], "domains[0].rho"),
        ([("0.1", "1e-9")] * 1001, "domains"),
    ],
)
async def test_domains_that_cannot_be_are_refused_by_field(
    domains: list[tuple[str, str]], named: str
) -> None:
    """The error names the domain and what is wrong with it."""
    published = [dp_pb2.PublishedDomain(rho=rho, delta=delta) for rho, delta in domains]
    request = dp_pb2.DescribeGuaranteeRequest(information=1, calls=1, domains=published)
    async with serving(servicer_of(DEFAULTS + TABLES)) as dp:
        code, reason, metadata = await error_of(dp.DescribeGuarantee(request))
    assert (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT") == (code, reason)
    assert named == metadata["field"]


async def test_the_budget_may_be_named_with_its_currency() -> None:
    """The currency is the policy's own, by its short name; another is another budget."""
    async with serving(servicer_of(DEFAULTS + TABLES)) as dp:
        wrong = dp_pb2.DescribeGuaranteeRequest(unit_id="0" * 32, information=1, calls=1)
        code, reason, _ = await error_of(dp.DescribeGuarantee(wrong))
    assert (grpc.StatusCode.FAILED_PRECONDITION, "UNIT_MISMATCH") == (code, reason)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("information", -1),
        ("calls", -1),
        ("information", 2**53 + 1),
        ("calls", 2**63 - 1),
        ("slack", "0"),
        ("slack", "1"),
        ("slack", "-1e-9"),
        ("slack", "nan"),
        ("slack", "1/3"),
        ("slack", "1e-9999999"),
        ("slack", "\u0661"),
    ],
)
async def test_a_budget_that_cannot_be_is_refused_by_field(field: str, value: Any) -> None:
    """The error names the field."""
    request = dp_pb2.DescribeGuaranteeRequest(**({"information": 1, "calls": 1} | {field: value}))
    async with serving(servicer_of(DEFAULTS + TABLES)) as dp:
        code, reason, metadata = await error_of(dp.DescribeGuarantee(request))
    assert (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT") == (code, reason)
    assert field == metadata["field"]


async def solved(policy: str = DEFAULTS + TABLES, **fields: Any) -> dp_pb2.SolveParametersResponse:
    """Return the parameters for the default guarantee, with some fields changed."""
    request = dp_pb2.SolveParametersRequest(**({"epsilon": "34.9", "delta": "7e-9"} | fields))
    async with serving(servicer_of(policy)) as dp:
        response: dp_pb2.SolveParametersResponse = await dp.SolveParameters(request)
        return response


@pytest.mark.slow
@pytest.mark.parametrize("policy", [DEFAULTS + TABLES, "count_noise: gaussian\n" + DEFAULTS + TABLES])
@pytest.mark.parametrize(
    "given",
    [
        {"information": 3000, "calls": 30},
        {"information": 3000, "calls": 30, "d_bar": 1000},
        {"epsilon_per": "0.15", "calls": 30},
        {"epsilon_per": "0.15", "information": 3000},
        {"epsilon_per": "0.15", "information": 3000, "delta_per_call": "1e-12"},
    ],
)
async def test_what_is_found_is_worth_no_more_than_what_is_wanted(policy: str, given: dict[str, Any]) -> None:
    """Whatever is found, its own guarantee, described anew, is within the target, and one step more is not."""
    found = await solved(policy, **given)
    assert found.epsilon <= 34.9
    assert 2 * found.calls * Fraction(found.delta_per_call) + Fraction(found.slack) <= Fraction("7e-9")
    assert Fraction(found.epsilon_per) == Fraction(given.get("epsilon_per", found.epsilon_per))
    assert given.get("information", found.information) == found.information
    assert given.get("calls", found.calls) == found.calls
    worth = guarantee(
        Fraction(found.epsilon_per),
        Fraction(found.delta_per_call),
        information=found.information,
        calls=found.calls,
        slack=Fraction(found.slack),
        gaussian="gaussian" in policy,
    )
    assert (worth.epsilon, worth.delta) == (found.epsilon, found.delta)
    more = {} if "epsilon_per" not in given else {"calls" if "information" in given else "information": 1}
    larger = guarantee(
        Fraction(found.epsilon_per) * (1 if more else Fraction(100001, 100000)),
        Fraction(found.delta_per_call),
        information=found.information + more.get("information", 0),
        calls=found.calls + more.get("calls", 0),
        slack=Fraction(found.slack),
        gaussian="gaussian" in policy,
    )
    assert larger.epsilon > 34.9 or larger.delta > 7e-9


@pytest.mark.parametrize("given", [{"information": 2, "calls": 1}, {"epsilon_per": "0.15", "calls": 1}])
async def test_solving_for_a_small_budget_uses_zcdp_alone_where_counts_are_gaussian(
    given: dict[str, Any],
) -> None:
    """There the sum of the epsilons is smaller, but it does not cover Gaussian noise."""
    gaussian = "count_noise: gaussian\n" + DEFAULTS + TABLES
    found = await solved(gaussian, epsilon="0.6", delta="1e-9", **given)
    worth = guarantee(
        Fraction(found.epsilon_per),
        Fraction(found.delta_per_call),
        information=found.information,
        calls=found.calls,
        slack=Fraction(found.slack),
        gaussian=True,
    )
    assert worth.epsilon == found.epsilon <= 0.6
    by_sums = await solved(epsilon="0.6", delta="1e-9", **given)
    assert (Fraction(found.epsilon_per), found.information) < (
        Fraction(by_sums.epsilon_per),
        by_sums.information + 1,
    )


async def test_numbers_beyond_floats_are_solved_all_the_same() -> None:
    """A delta of 10^-300 and a d_bar of 2^53 meet in a logarithm."""
    found = await solved(epsilon="1e-9", delta="1e-300", information=3000, calls=30, d_bar=2**53)
    assert found.epsilon <= 1e-9


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "epsilon_per"),
        ({"information": 1}, "epsilon_per"),
        ({"information": 1, "calls": 1, "epsilon_per": "1"}, "epsilon_per"),
        ({"information": -1, "calls": 1}, "information"),
        ({"information": 1, "calls": -1}, "calls"),
        ({"information": 1, "calls": 2**62}, "calls"),
        ({"information": 1, "calls": 1, "d_bar": -1}, "d_bar"),
        ({"information": 1, "calls": 1, "epsilon": "x"}, "epsilon"),
        ({"information": 1, "calls": 1, "epsilon": "0"}, "epsilon"),
        ({"information": 1, "calls": 1, "delta": "1"}, "delta"),
        ({"calls": 1, "epsilon_per": "inf"}, "epsilon_per"),
        ({"calls": 1, "epsilon_per": "11"}, "epsilon_per"),
        ({"information": 1, "epsilon_per": "1", "delta_per_call": "2"}, "delta_per_call"),
        ({"information": 10**9, "epsilon_per": "1"}, "epsilon"),
        ({"information": 2**53, "calls": 1, "epsilon": "1e-30"}, "epsilon"),
    ],
)
async def test_parameters_that_cannot_be_found_are_refused_by_field(
    fields: dict[str, Any], named: str
) -> None:
    """Malformed, contradictory or out of reach: the error names what to change."""
    request = dp_pb2.SolveParametersRequest(**({"epsilon": "34.9", "delta": "7e-9"} | fields))
    async with serving(servicer_of(DEFAULTS + TABLES)) as dp:
        code, reason, metadata = await error_of(dp.SolveParameters(request))
    assert (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT") == (code, reason)
    assert named == metadata["field"]
