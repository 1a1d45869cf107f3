"""Releases that are kept: what they add up to is paid for, whoever leaves, waits or is closed."""

from __future__ import annotations

import asyncio

from pinot_connector import AsyncPrivateClient
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import KeptRelease, MemoryReleaseStore
from tests.connector.test_held_budget import POOR
from tests.support.clients import SHORT
from tests.support.world import World, new_account


class SlowStore(MemoryReleaseStore):
    """As a database whose write takes a moment."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()

    async def keep(self, query_id: str, kept: KeptRelease) -> KeptRelease:
        """Keeps it as the threads of a stored release store do: a cancellation does not stop the write."""
        self.begun.set()
        writing = asyncio.ensure_future(super().keep(query_id, kept))
        await asyncio.shield(writing)
        await asyncio.sleep(0.2)
        return writing.result()


async def test_callers_who_leave_while_their_release_is_kept_have_paid_for_it(
    world: World, engine: DuckDBEngine
) -> None:
    """So what is kept is bounded by what budgets buy: of eight such callers, those without budget keep nothing."""
    store = SlowStore()
    async with AsyncPrivateClient(
        dp=world.dp,
        budget=world.budget,
        account=new_account(POOR),
        engine=engine,
        timeouts=SHORT,
        releases=store,
    ) as client:
        for number in range(8):
            where = {"article_id": f"no article {number}"}
            asking = asyncio.ensure_future(client.histogram("feedback", "cohort", where=where))
            begun = asyncio.ensure_future(store.begun.wait())
            await asyncio.wait((asking, begun), return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()
            store.begun.clear()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        (*_, level) = await client.remaining()
        kept = await store.statistics()
    assert (kept.unpaid, level.reserved.information) == (0, 0)
    assert 0 < kept.releases <= level.spent.calls + level.spent.information
