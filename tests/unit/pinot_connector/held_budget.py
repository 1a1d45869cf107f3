"""An account whose budget somebody else holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from gris_api.budget.v1 import budget_pb2
from gris_api.common.v1 import cost_pb2

from pinot_connector import AsyncPrivateClient
from pinot_connector.budget_service_client import BudgetServiceClient
from tests.support.clients import SHORT
from tests.support.world import World

# Of one analyst of POOR, who may spend 5 units and one call.
POOR = "poor"
WAITING = replace(SHORT, budget_attempt=5.0, budget=10.0, budget_held=20.0)


@dataclass
class Holder:
    """Somebody else, in another process as far as the connector knows, who holds all that an account has."""

    calls: BudgetServiceClient
    reservations: list[budget_pb2.ReserveBudgetResponse] = field(default_factory=list)

    async def hold(self, unit_id: str) -> None:
        """Reserves all of an analyst of POOR."""
        cost = cost_pb2.Cost(information=5, calls=1, unit_id=unit_id)
        self.reservations.append(await self.calls.reserve(cost, "somebody else's question"))

    async def free(self) -> None:
        """Cancels what is held."""
        while self.reservations:
            await self.calls.cancel(self.reservations.pop().reservation_id)


@asynccontextmanager
async def held_account(world: World, client: AsyncPrivateClient, account: str) -> AsyncIterator[Holder]:
    """Gives the holder of all that an account has, until it frees it or the block ends."""
    explanation = await client.explain(
        "SELECT cohort, COUNT(DISTINCT member_id) FROM feedback GROUP BY cohort"
    )
    # It is held until it is freed, however long a busy machine takes: what has lapsed cannot be freed.
    holding = replace(WAITING, reservation=600)
    holder = Holder(BudgetServiceClient(world.budget, account.split("/"), holding))
    try:
        await holder.hold(explanation.worst_case_cost.unit_id)
        yield holder
    finally:
        await holder.free()
        await holder.calls.close()
