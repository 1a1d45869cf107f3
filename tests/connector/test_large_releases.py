"""A release that is too large to be kept: shown once, and a repeat is refused alike whether or not rows changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest
from gris_api.app.v1 import app_pb2

from gris_gateway.kept_history import KeptHistory
from gris_gateway.messages import all_elements, result_message
from gris_gateway.rpc_errors import status_of_error
from pinot_connector import AsyncPrivateClient, shown_releases
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import ReleaseTooLarge
from pinot_connector.release_store import Found, KeptRelease, MemoryReleaseStore, ReleaseStore
from pinot_connector.release_store.interface import Account
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from tests.support.release_stores import KEYS
from tests.support.world import World, new_account, write_growing, write_small

MEMBERS = 1000


class Watched(DuckDBEngine):
    """DuckDB that counts what it is asked."""

    asked = 0

    def data_version(self, table: str) -> str:
        """Counts, and answers."""
        self.asked += 1
        return super().data_version(table)

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Counts, and answers."""
        self.asked += 1
        return super().run(query, data_version)


class BothDraw(MemoryReleaseStore):
    """Shows nothing until two releases were to be kept, as where two gateways draw at the same moment."""

    keeps = 0

    async def find(self, query_id: str, account: Account) -> Found | None:
        """Returns nothing at first."""
        return await super().find(query_id, account) if self.keeps > 1 else None

    async def keep(self, query_id: str, kept: KeptRelease) -> KeptRelease:
        """Counts, and keeps."""
        self.keeps += 1
        return await super().keep(query_id, kept)


@pytest.fixture(autouse=True)
def _everything_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_releases, "MAX_SHOWN_BYTES", 0)


def data(folder: Path, members: int, name: str = "growing") -> Path:
    """Writes a table whose version the policy fixes."""
    path = folder / f"{name}.parquet"
    write_growing(path, members=members)
    return path


def client_of(
    world: World, engine: DuckDBEngine, store: ReleaseStore, account: str = ""
) -> AsyncPrivateClient:
    """Returns a client."""
    return AsyncPrivateClient(
        dp=world.dp, budget=world.budget, account=account or new_account(), engine=engine, releases=store
    )


async def spent(client: AsyncPrivateClient) -> int:
    """Returns what the account of a client was charged."""
    return (await client.remaining())[-1].spent.information


@pytest.mark.parametrize(
    "members", [MEMBERS, MEMBERS - 1, 0], ids=["unchanged", "one deleted", "all deleted"]
)
async def test_a_repeat_of_what_was_not_kept_says_nothing_of_the_rows(
    world: World, tmp_path: Path, members: int
) -> None:
    """The first one is answered and pays; then nobody is answered or charged, and the engine is not asked."""
    engine = Watched({"growing": data(tmp_path, MEMBERS)})
    async with client_of(world, engine, MemoryReleaseStore()) as client:
        first = await client.histogram("growing", "element")
        assert (len(first.rows), first.charged.information) == (1, await spent(client))
        data(tmp_path, members)
        asked = engine.asked
        other = client.on_behalf_of(new_account().split("/"))
        for each in (client, client, other):
            before = await spent(each)
            with pytest.raises(ReleaseTooLarge, match="new data_version of the table"):
                await each.histogram("growing", "element")
            assert await spent(each) == before
        assert engine.asked == asked
    engine.close()


async def test_new_data_are_another_question_where_no_version_is_fixed(world: World, tmp_path: Path) -> None:
    """A repeat on the same data is refused there too; on others it is answered and paid for, as of every release."""
    store, account, path = MemoryReleaseStore(), new_account(), tmp_path / "small.parquet"
    paid = []
    for members in (MEMBERS, MEMBERS - 1):
        write_small(path, members)
        engine = DuckDBEngine({"small": path})
        async with client_of(world, engine, store, account) as client:
            paid.append((await client.histogram("small", "element")).charged.information)
            with pytest.raises(ReleaseTooLarge, match="so do new data where the policy fixes no version"):
                await client.histogram("small", "element")
            assert await spent(client) == sum(paid)
        engine.close()
    assert all(paid)


async def test_what_was_not_kept_stays_refused_by_another_process(world: World, tmp_path: Path) -> None:
    """Its name is on the disk, for the account that paid and for every other one."""
    account, file = new_account(), tmp_path / "releases.sqlite"
    engine = DuckDBEngine({"growing": data(tmp_path, MEMBERS)})
    store = SqliteReleaseStore(file, KEYS)
    async with client_of(world, engine, store, account) as client:
        await client.histogram("growing", "element")
    await store.close()
    store = SqliteReleaseStore(file, KEYS)
    for each in (account, new_account()):
        async with client_of(world, engine, store, each) as client:
            with pytest.raises(ReleaseTooLarge):
                await client.histogram("growing", "element")
    await store.close()
    engine.close()


@pytest.mark.parametrize("members", [MEMBERS, MEMBERS - 1], ids=["same rows", "one fewer"])
async def test_of_two_gateways_that_draw_at_once_one_shows_its_release(
    world: World, tmp_path: Path, members: int
) -> None:
    """Whether both have drawn the same does not decide whether the other one answers."""
    store = BothDraw()
    engines = [
        DuckDBEngine({"growing": data(tmp_path, each, f"growing-{number}")})
        for number, each in enumerate((MEMBERS, members))
    ]
    clients = [client_of(world, engine, store) for engine in engines]
    answers = await asyncio.gather(
        *(client.histogram("growing", "element") for client in clients), return_exceptions=True
    )
    refused = [isinstance(answer, ReleaseTooLarge) for answer in answers]
    assert sorted(refused) == [False, True]
    assert [await spent(client) == 0 for client in clients] == refused
    for client in clients:
        await client.close()
    for engine in engines:
        engine.close()


async def test_a_history_lists_all_that_was_shown_of_what_was_not_kept(world: World, tmp_path: Path) -> None:
    """Its elements are in the receipt, as there is no release to take them from."""
    engine, store, account = DuckDBEngine({"growing": data(tmp_path, MEMBERS)}), MemoryReleaseStore(), ("t",)
    async with client_of(world, engine, store) as client:
        result = await client.histogram("growing", "element")
    past = app_pb2.PastRelease(result=result_message(result), elements=all_elements(result))
    past.released_at.GetCurrentTime()
    await KeptHistory(store).add(account, past)
    (listed,) = (await KeptHistory(store).page(account, 1, None)).releases
    assert listed == past
    engine.close()


def test_a_gateway_says_that_a_release_was_too_large() -> None:
    """The message is the connector's own, which says what to do; no program tries again."""
    status = status_of_error(ReleaseTooLarge())
    assert (status.code, status.details) == (grpc.StatusCode.FAILED_PRECONDITION, str(ReleaseTooLarge()))
    assert any(
        b"RELEASE_TOO_LARGE" in value for _, value in status.trailing_metadata if isinstance(value, bytes)
    )
