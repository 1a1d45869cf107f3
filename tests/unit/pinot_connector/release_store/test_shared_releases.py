"""Which clients are given what others had kept, while rows change under one version of the data."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pinot_connector.embedded import RELEASES_FILE, RELEASES_KEY_FILE
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import MemoryReleaseStore, ReleaseFile, ReleaseStore
from pinot_connector.results import Row
from tests.support.clients import Place, blocking_client_of, client_of
from tests.support.embedded import embedded
from tests.support.rings import needs
from tests.support.world import BUDGET, POLICY, World, new_account, write_small

SQL = "SELECT element, COUNT(DISTINCT member_id) AS c FROM pinned GROUP BY element"
Rows = tuple[Row, ...]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table whose policy promises that its rows never change."""
    path = tmp_path / "pinned.parquet"
    write_small(path, 1000)
    return path


@pytest.fixture
def pinned(table: Path) -> Iterator[DuckDBEngine]:
    """An engine over it."""
    engine = DuckDBEngine({"pinned": table})
    yield engine
    engine.close()


def rows(place: Place, engine: DuckDBEngine, account: str = "", releases: ReleaseStore | None = None) -> Rows:
    """Returns the answer to the question for a client of its own."""
    with blocking_client_of(place, engine, account=account, releases=releases) as client:
        return client.sql(SQL).rows


def test_clients_of_one_program_share_what_is_kept(world: World, table: Path, pinned: DuckDBEngine) -> None:
    """Two accounts of one application, each with a client of its own; a member is deleted between."""
    mine, other = new_account(), new_account()
    paid = rows(world, pinned, mine)
    write_small(table, 900)
    assert [rows(world, pinned, mine), rows(world, pinned, other)] == [paid, paid]


async def test_clients_in_other_loops_share_it_too(world: World, table: Path, pinned: DuckDBEngine) -> None:
    """A client of this loop, and one with a loop of its own."""
    async with client_of(world, pinned) as client:
        result = await client.sql(SQL)
    write_small(table, 900)
    assert result.rows == await asyncio.to_thread(rows, world, pinned)


def test_a_file_is_shared_by_clients_of_several_programs(
    world: World, table: Path, pinned: DuckDBEngine, tmp_path: Path, stores_of_this_test: None
) -> None:
    """What is kept in a file is given to everybody who opens it; a store of another kind makes its own release."""
    key = tmp_path / "releases.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)

    def asked() -> Rows:
        store = ReleaseFile(tmp_path / "releases.sqlite", key).opened()
        with ExitStack() as closing:
            closing.callback(store.close_now)
            return rows(world, pinned, releases=store)

    paid = asked()
    write_small(table, 900)
    assert asked() == paid
    assert rows(world, pinned, releases=MemoryReleaseStore()) != paid


@needs("process")
def test_embedded_services_keep_releases_beside_their_ledger(
    table: Path, pinned: DuckDBEngine, tmp_path: Path, starts_processes: None
) -> None:
    """The services are started anew each time, as each `gris ask --embedded` does."""

    def asked(account: str) -> Rows:
        with embedded(tmp_path, POLICY, BUDGET) as services:
            return rows(services, pinned, account)

    paid = asked("t/eve")
    write_small(table, 900)
    assert [asked("t/eve"), asked("t/adam")] == [paid, paid]
    for name in (RELEASES_FILE, RELEASES_KEY_FILE):
        assert stat.S_IMODE((tmp_path / "state" / name).stat().st_mode) == 0o600
