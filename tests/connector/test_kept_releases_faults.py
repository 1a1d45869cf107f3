"""Releases that are kept: what they add up to is paid for, whoever leaves, waits or is closed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pinot_connector import AsyncPrivateClient
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import KeptRelease, MemoryReleaseStore
from tests.connector.test_held_budget import POOR, WAITING, held_account
from tests.connector.test_repeats import Watched
from tests.support.clients import SHORT
from tests.support.world import World, new_account, write_growing


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


async def test_an_account_does_not_wait_for_the_budget_of_another_one(
    world: World, engine: DuckDBEngine
) -> None:
    """Both ask the same question; the budget of the first is held, that of the second is free."""
    account = new_account(POOR)
    async with AsyncPrivateClient(
        dp=world.dp,
        budget=world.budget,
        account=account,
        engine=engine,
        timeouts=replace(WAITING, budget_held=6.0),
    ) as first:
        second = first.on_behalf_of(new_account().split("/"))
        async with held_account(world, first, account) as holder:
            waits = asyncio.ensure_future(first.histogram("feedback", "cohort", where={"score": 1}))
            await asyncio.sleep(1)
            began = time.monotonic()
            result = await second.histogram("feedback", "cohort", where={"score": 1})
            took = time.monotonic() - began
            assert took < 2, f"the second account waited {took:.1f} s for budget that the first one lacks"
            assert not waits.done()
            await holder.free()
            late = await waits
        levels = [(await each.remaining())[-1] for each in (first, second)]
    assert (result.rows, result.release_id) == (late.rows, late.release_id)
    assert [(1, 0), (1, 0)] == [(each.spent.information, each.reserved.information) for each in levels]


@pytest.mark.parametrize("others", [0, 1, 5])
async def test_those_who_waited_for_budget_ask_the_engine_only_for_what_nobody_has_kept(
    world: World, tmp_path: Path, others: int
) -> None:
    """Five accounts ask while the budget of one is held: all are given one release, and one query was in vain."""
    write_growing(tmp_path / "growing.parquet", members=1000)
    engine = Watched({"growing": tmp_path / "growing.parquet"})
    account = new_account(POOR)
    async with (
        AsyncPrivateClient(
            dp=world.dp, budget=world.budget, account=account, engine=engine, timeouts=WAITING
        ) as first,
        held_account(world, first, account) as holder,
    ):
        asking = [asyncio.ensure_future(first.histogram("growing", "element"))]
        await asyncio.sleep(0.5)
        asking += [
            asyncio.ensure_future(
                first.on_behalf_of(new_account().split("/")).histogram("growing", "element")
            )
            for _ in range(others)
        ]
        await asyncio.wait(asking[1:] or asking, timeout=0.5)
        await holder.free()
        results = await asyncio.gather(*asking)
    engine.close()
    assert len({each.release_id for each in results}) == 1
    assert engine.asked.count("run") == 2
