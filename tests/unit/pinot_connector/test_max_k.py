"""LIMIT is an upper bound: what a BI tool asks for and what the policy shows, and what would fit a small budget."""

from __future__ import annotations

import pytest

from pinot_connector import AsyncPrivateClient
from pinot_connector.budgets import largest_k
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import BudgetExhausted, Shortfall
from tests.support.clients import blocking_client_of
from tests.support.world import World, new_account

TEXT = (
    "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY article_id ORDER BY 2 DESC LIMIT {}"
)


async def test_limits_of_bi_tools_are_one_release(client: AsyncPrivateClient) -> None:
    """One query, one release, one price; the account pays once, and each answer tells what it is of."""
    answers = [await client.sql(TEXT.format(limit)) for limit in (1000, 100, 50_000)]
    assert 1 == len({answer.query_id for answer in answers})
    assert 1 == len({answer.release_id for answer in answers})
    assert [201, 0, 0] == [answer.charged.information for answer in answers]
    assert [1000, None, 50_000] == [answer.requested_k for answer in answers]
    assert {100} == {answer.parameters.k for answer in answers}


async def test_explaining_tells_the_same(client: AsyncPrivateClient) -> None:
    """The price is that of what is shown, and a sentence says so."""
    explanation = await client.explain(TEXT.format(50_000))
    assert (201, 50_000) == (explanation.worst_case_cost.information, explanation.requested_k)
    assert "The question asks for 50000 elements; the policy shows at most 100." in explanation.sentences
    assert (await client.explain(TEXT.format(100))).requested_k is None


async def test_no_less_is_reserved_than_the_worst_case_of_what_is_shown(
    world: World, engine: DuckDBEngine
) -> None:
    """An account that holds the price of one element less is refused, however many were asked for."""
    # Of 5 units, two elements and bottom take all.
    account = new_account("poor")
    with blocking_client_of(world, engine, account=account) as poor:
        with pytest.raises(BudgetExhausted) as refused:
            poor.sql(TEXT.format(1000))
        assert (201, 5) == (refused.value.shortfalls[0].requested, refused.value.shortfalls[0].remaining)
        assert 2 == refused.value.largest_k
        assert "with LIMIT 2 (k) it would fit now" in str(refused.value)
        with pytest.raises(BudgetExhausted):
            poor.sql(TEXT.format(3))
        assert 2 == poor.sql(TEXT.format(2)).parameters.k
        with pytest.raises(BudgetExhausted) as spent:
            poor.sql(TEXT.format(1))
        assert spent.value.largest_k is None


def missing(requested: int, remaining: int, unit: str = "information") -> Shortfall:
    """Return that something is missing on some level."""
    return Shortfall(("t",), unit, requested, remaining, None)


@pytest.mark.parametrize(
    ("shortfalls", "k", "per_element", "expected"),
    [
        ((missing(201, 200),), 100, 2, 99),
        ((missing(201, 199),), 100, 2, 99),
        ((missing(201, 198),), 100, 2, 98),
        ((missing(201, 3),), 100, 2, 1),
        ((missing(201, 2),), 100, 2, None),
        # The level that is poorest decides.
        ((missing(201, 100), missing(201, 20)), 100, 2, 9),
        # A smaller k needs no fewer calls.
        ((missing(201, 100), missing(1, 0, "calls")), 100, 2, None),
        # One price for every k.
        ((missing(4, 1),), 100, 0, None),
        ((), 100, 2, None),
    ],
)
def test_the_largest_k_fits_and_the_next_does_not(
    shortfalls: tuple[Shortfall, ...], k: int, per_element: int, expected: int | None
) -> None:
    """The worst case grows by the same for each element."""
    assert expected == largest_k(shortfalls, k, per_element)
    if expected is not None:
        price = shortfalls[0].requested
        left = min(each.remaining for each in shortfalls)
        assert price - per_element * (k - expected) <= left < price - per_element * (k - expected - 1)
