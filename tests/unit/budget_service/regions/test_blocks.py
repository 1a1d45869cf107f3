"""What a region charges: it counts for everybody, and one charge at a time."""

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


async def test_a_region_takes_one_charge_at_a_time() -> None:
    """Several, which may be in part its own and in part the home's, are refused, and nothing is charged."""
    home = Home()
    region = await RegionMachine(home).start()
    asked = pb.UpdateBudgetRequest(account=ANN, cost=cost(1), request_id="a", release_id="r", query_id="q")
    asked.further.add(cost=cost(1), release_id="s", query_id="p")
    assert await region.asked("UpdateBudget", asked) == "INVALID_FIELD"
    assert (await home.counted())[0] == 0
