"""Blocks in a region: whatever is charged from a lease counts for everybody."""

from __future__ import annotations

from gris_api.budget.v1 import budget_pb2 as pb

from tests.unit.budget_service.regions.home import ANN, Home, cost
from tests.unit.budget_service.regions.region_machine import RegionMachine

BLOCKS = ("0" * 16, "f" * 16)


async def test_a_charge_of_one_block_counts_for_all_of_them() -> None:
    """In the region, where it is settled for the blocks of its reservation, and at the home once it is reported."""
    home = Home()
    region = await RegionMachine(home).start()
    worst = cost(40)
    worst.blocks.extend(BLOCKS)
    reserving = pb.ReserveBudgetRequest(account=ANN, max_cost=worst, request_id="r", query_id="q")
    reserving.ttl.seconds = 5
    held = await region.asked("ReserveBudget", reserving)
    assert "ReserveBudget" not in region.trips
    paid = cost(30)
    paid.blocks.extend(BLOCKS)
    settling = pb.UpdateBudgetRequest(
        account=ANN, cost=paid, request_id="s", reservation_id=held.reservation_id, release_id="rel"
    )
    assert (await region.asked("UpdateBudget", settling)).charged.information == 30
    await region.maintenance.report()
    spent, _ = await home.counted()
    assert spent == 30
    (entry,) = home.ledger.disk.journal
    assert {hold.block for hold in entry.holds} == {""}
    assert not any(level.block for level in (*home.ledger.disk.balances, *region.disk.balances))
