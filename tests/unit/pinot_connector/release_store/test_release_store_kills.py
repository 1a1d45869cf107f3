"""A process that is killed between keeping a release, charging for it and marking it paid; and two gateways at once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from pinot_connector import AsyncPrivateClient, PrivateResult
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import ChargedUnanswered, ReleaseStoreFailed
from pinot_connector.release_store import KeptRelease, MemoryReleaseStore, Payment, ReleaseStore
from pinot_connector.release_store.postgres import PostgresReleaseStore
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from tests.support.clients import SHORT, Counted, client_of
from tests.support.postgres_server import PostgresServer
from tests.support.release_stores import KEYS, new_database
from tests.support.some import some
from tests.support.world import World, new_account, write_growing

KILLED = """
import asyncio, os, signal, sys
from pinot_connector import AsyncPrivateClient
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from tests.support.release_stores import KEYS

dp, budget, account, data, file, when = sys.argv[1:]

def at(moment):
    if moment == when:
        os.kill(os.getpid(), signal.SIGKILL)

class Killing(SqliteReleaseStore):
    async def keep(self, query_id, kept):
        at("before it is kept")
        first = await super().keep(query_id, kept)
        at("before it is charged")
        return first

    async def mark_paid(self, query_id, account, payment):
        at("before it is marked")
        await super().mark_paid(query_id, account, payment)
        at("before it is shown")

async def ask():
    engine = DuckDBEngine({"growing": data})
    async with AsyncPrivateClient(
        dp=dp, budget=budget, account=account, engine=engine, releases=Killing(file, KEYS)
    ) as client:
        await client.histogram("growing", "element")

asyncio.run(ask())
"""

# A hundred reloads on a busy machine are no sign of a dead ledger.
UNHURRIED = replace(SHORT, budget_attempt=5.0, budget=10.0)


async def asked(world: World, account: str, engine: DuckDBEngine, store: ReleaseStore) -> PrivateResult:
    """Ask once, with a client that then ends."""
    async with gateway_client(world, account, engine, store) as client:
        return await client.histogram("growing", "element")


def gateway_client(
    world: World, account: str, engine: DuckDBEngine, store: ReleaseStore
) -> AsyncPrivateClient:
    """Make a client."""
    return client_of(world, engine, account=account, timeouts=UNHURRIED, releases=store)


async def spent(world: World, account: str, engine: DuckDBEngine) -> int:
    """Return what an account has spent."""
    async with gateway_client(world, account, engine, MemoryReleaseStore()) as client:
        return (await client.remaining())[-1].spent.information


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(
    ("when", "was_kept", "was_charged"),
    [
        ("before it is kept", False, False),
        ("before it is charged", True, False),
        ("before it is marked", True, True),
        ("before it is shown", True, True),
    ],
)
async def test_a_process_that_is_killed_leaves_one_release_and_one_charge(
    world: World, tmp_path: Path, when: str, was_kept: bool, was_charged: bool
) -> None:
    """Rows are deleted meanwhile: what was kept is given, to another account too, and nobody pays twice."""
    data, file, account = tmp_path / "growing.parquet", tmp_path / "releases.db", new_account()
    write_growing(data, members=1000)
    words = [world.dp, world.budget, account, str(data), str(file), when]
    process = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", KILLED, *words], timeout=60, check=False
    )
    assert -signal.SIGKILL == process.returncode
    write_growing(data, members=999)
    engine = Counted({"growing": data})
    store = SqliteReleaseStore(file, KEYS)
    assert (1 if was_kept else 0) == (await store.statistics()).releases
    other = await asked(world, new_account(), engine, store)
    again = await asked(world, account, engine, store)
    assert (other.release_id, other.rows) == (again.release_id, again.rows)
    assert (0 if was_kept else 1) == engine.runs
    assert (0 if was_charged else 1) == again.charged.information
    assert 1 == await spent(world, account, engine)
    await store.close()
    engine.close()


async def test_two_gateways_with_one_question_at_the_same_moment_give_one_release(
    world: World, tmp_path: Path, release_postgres: PostgresServer
) -> None:
    """Each sees other rows, and both show the same; afterwards neither asks the engine again."""
    database, accounts = new_database(release_postgres), [new_account(), new_account()]
    engines = []
    for number, members in enumerate((1000, 700)):
        data = tmp_path / f"growing-{number}.parquet"
        write_growing(data, members=members)
        engines.append(Counted({"growing": data}))
    stores = [PostgresReleaseStore(database, KEYS) for _ in engines]
    async with AsyncExitStack() as opened:
        clients = [
            await opened.enter_async_context(gateway_client(world, *each))
            for each in zip(accounts, engines, stores, strict=True)
        ]
        first = await asyncio.gather(*(client.histogram("growing", "element") for client in clients))
        again = await asyncio.gather(*(client.histogram("growing", "element") for client in clients))
    assert 1 == len({(each.release_id, each.rows) for each in (*first, *again)})
    assert [1, 1, 0, 0] == [each.charged.information for each in (*first, *again)]
    assert all(engine.runs <= 1 for engine in some(engines))
    for store in stores:
        await store.close()
    for engine in engines:
        engine.close()


async def test_a_hundred_reloads_cost_one_query_and_one_charge(world: World, tmp_path: Path) -> None:
    """At once and one after the other, and from ten accounts: one query, and one charge each."""
    data = tmp_path / "growing.parquet"
    write_growing(data, members=1000)
    engine, account = Counted({"growing": data}), new_account()
    async with gateway_client(world, account, engine, MemoryReleaseStore()) as client:
        at_once = await asyncio.gather(*(client.histogram("growing", "element") for _ in range(50)))
        later = [await client.histogram("growing", "element") for _ in range(50)]
        others = [client.on_behalf_of(new_account().split("/")) for _ in range(10)]
        paid = await asyncio.gather(*(each.histogram("growing", "element") for each in others))
    assert 1 == engine.runs
    assert 1 == sum(each.charged.information for each in (*at_once, *later))
    assert 1 == await spent(world, account, engine)
    assert [1] * 10 == [each.charged.information for each in paid]
    assert 1 == len({(each.release_id, each.rows) for each in (*at_once, *later, *paid)})
    engine.close()


@pytest.mark.parametrize(
    ("step", "error", "spent"), [("find", ReleaseStoreFailed, 0), ("keep", ChargedUnanswered, 1)]
)
async def test_a_store_that_fails_refuses_and_is_charged_only_for_what_was_drawn(
    world: World, tmp_path: Path, step: str, error: type[Exception], spent: int
) -> None:
    """To draw again instead would tell whether the rows changed."""

    class Failing(MemoryReleaseStore):
        async def find(self, query_id: str, account: tuple[str, ...]) -> None:
            if step == "find":
                raise ReleaseStoreFailed("the release store cannot be used")

        async def keep(self, query_id: str, kept: KeptRelease) -> KeptRelease:
            raise ReleaseStoreFailed("the release store cannot be used")

    data, account = tmp_path / "growing.parquet", new_account()
    write_growing(data, members=1000)
    engine = Counted({"growing": data})
    with pytest.raises(error):
        await asked(world, account, engine, Failing())
    async with gateway_client(world, account, engine, MemoryReleaseStore()) as client:
        level = (await client.remaining())[-1]
    assert (spent, 0) == (level.spent.information, level.reserved.information)
    engine.close()


async def test_a_mark_that_is_lost_does_not_lose_the_result(world: World, tmp_path: Path) -> None:
    """It was charged, so it is shown; the next time the ledger knows that it is paid for."""

    class Forgetting(MemoryReleaseStore):
        async def mark_paid(self, query_id: str, account: tuple[str, ...], payment: Payment) -> None:
            raise ReleaseStoreFailed("the release store cannot be used")

    data, account, store = tmp_path / "growing.parquet", new_account(), Forgetting()
    write_growing(data, members=1000)
    engine = Counted({"growing": data})
    first, second = [await asked(world, account, engine, store) for _ in range(2)]
    assert (first.rows, 1, 0) == (second.rows, first.charged.information, second.charged.information)
    engine.close()
