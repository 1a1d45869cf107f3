"""What a home ledger lends, and what it takes from those who say that they have borrowed."""

from __future__ import annotations

import pytest
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.server.home_client import HomeStatusError
from tests.budget.regions.home import ANN, Home, cost

LEASE, OTHER = "a" * 32, "b" * 32


async def test_a_region_is_lent_only_what_the_home_holds() -> None:
    """A question that was paid for and has the region's name makes no lease free."""
    home = Home()
    charge = pb.UpdateBudgetRequest(
        account=ANN, cost=cost(10), request_id="first", query_id="eu", release_id="r"
    )
    await home.call("UpdateBudget", charge)
    granted = await home.borrow(LEASE)
    assert granted.share.information > 0
    assert await home.counted() == (10, granted.share.information)
    await home.report(LEASE, cost(90))
    assert await home.counted() == (100, granted.share.information - 90)
