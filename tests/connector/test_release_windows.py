"""One account in two windows of a real ledger, whose clock is moved: it has paid, and is given the same release."""

from __future__ import annotations

from pathlib import Path

from budget_service.server.hosting import serving
from budget_service.stores.sqlite.store import SqliteStore
from pinot_connector import AsyncPrivateClient, PrivateResult
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from tests.budget.served import SETTINGS
from tests.support.budget_samples import SteppedClock
from tests.support.clients import SHORT
from tests.support.release_stores import KEYS
from tests.support.world import World, write_growing


class Counted(DuckDBEngine):
    """DuckDB that counts its queries."""

    runs = 0

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Counts, and answers."""
        self.runs += 1
        return super().run(query, data_version)


async def test_what_an_account_has_paid_for_is_given_for_nothing_in_every_later_window(
    world: World, tmp_path: Path
) -> None:
    """Rows are deleted between them, the store is opened again for each question, and the engine is asked once.

    An account that has not paid pays for the same release in the last window.
    """
    clock, data = SteppedClock(), tmp_path / "growing.parquet"
    write_growing(data, members=1000)
    engine, ledger = Counted({"growing": data}), SqliteStore.open(tmp_path / "ledger.db", clock)

    async def asked(members: int, *, days: int, account: str = "acme/ann") -> PrivateResult:
        write_growing(data, members=members)
        clock.step(days=days)
        store = SqliteReleaseStore(tmp_path / "releases.db", KEYS)
        async with AsyncPrivateClient(
            dp=world.dp, budget=address, account=account, engine=engine, timeouts=SHORT, releases=store
        ) as client:
            result = await client.histogram("growing", "element")
        await store.close()
        return result

    async with serving(ledger, SETTINGS, "127.0.0.1:0") as address:
        results = [
            await asked(1000, days=0),
            await asked(999, days=1),
            # The next month, its second day, a year later, and a clock that jumps back.
            await asked(999, days=31),
            await asked(998, days=1),
            await asked(1, days=366),
            await asked(1, days=-400),
            await asked(1, days=0, account="acme/bob"),
        ]
    await ledger.close()
    engine.close()
    assert {(each.release_id, each.rows) for each in results} == {(results[0].release_id, results[0].rows)}
    assert [each.charged.information for each in results] == [1, 0, 0, 0, 0, 0, 1]
    assert engine.runs == 1
