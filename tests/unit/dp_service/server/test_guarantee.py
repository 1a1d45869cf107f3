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
