"""Replies that are lost on the line, through a real TCP proxy: charged once, shown once."""

from __future__ import annotations

from gris_api.budget.v1 import budget_pb2

from pinot_connector import AsyncPrivateClient, Timeouts
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.relay import Swallower, relayed
from tests.support.world import World, new_account


class _Arming(DuckDBEngine):
    """DuckDB that has the next replies swallowed once its answer is confirmed: the charge is the next call."""

    def __init__(self, world: World, swallower: Swallower, replies: int) -> None:
        super().__init__(world.tables)
        self._swallower = swallower
        self._replies = replies

    def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        super().confirm(query, answer)
        self._swallower.swallow(self._replies)


async def test_a_charge_whose_reply_is_lost_is_repeated_and_charged_once(world: World) -> None:
    """Twice the ledger has charged and the line breaks; the third time the same answer arrives."""
    async with relayed(world) as relay, Swallower(relay.address).listening() as swallower:
        engine = _Arming(world, swallower, replies=2)
        async with AsyncPrivateClient(
            dp=world.dp,
            budget=swallower.address,
            account=new_account(),
            engine=engine,
            timeouts=Timeouts(budget_attempt=1.0),
        ) as client:
            result = await client.top_k("feedback", "article_id", 5)
            levels = await client.remaining()
        engine.close()
        charges = [budget_pb2.UpdateBudgetRequest.FromString(each) for each in relay.requests("UpdateBudget")]
        assert swallower.swallowed == 2
        assert len(charges) == 3
        assert len({charge.request_id for charge in charges}) == 1
        assert result.cost == result.charged == levels[-1].spent
        assert (levels[-1].reserved.information, levels[-1].reserved.calls) == (0, 0)
