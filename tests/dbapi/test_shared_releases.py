"""Which connections are given what others had kept, while rows change under one version of the data."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pinot_connector import dbapi
from pinot_connector.dbapi import ReleaseFile
from pinot_connector.embedded import RELEASES_FILE, RELEASES_KEY_FILE
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import MemoryReleaseStore
from tests.support.clients import client_of
from tests.support.rings import needs
from tests.support.world import BUDGET, POLICY, World, new_account, write_small

SQL = "SELECT element, COUNT(DISTINCT member_id) AS c FROM pinned GROUP BY element"
Rows = list[tuple[object, ...]]


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


def rows(connection: dbapi.Connection) -> Rows:
    """Returns the answer to the question."""
    with closing(connection):
        cursor = connection.cursor()
        cursor.execute(SQL)
        return list(cursor.fetchall())


def test_connections_of_one_program_share_what_is_kept(
    world: World, table: Path, pinned: DuckDBEngine
) -> None:
    """Two accounts of one application, each with a connection of its own; a member is deleted between."""

    def asked(account: str) -> Rows:
        return rows(dbapi.connect(engine=pinned, dp=world.dp, budget=world.budget, account=account))

    mine, other = new_account(), new_account()
    paid = asked(mine)
    write_small(table, 900)
    assert [asked(mine), asked(other)] == [paid, paid]


async def test_clients_in_other_loops_share_it_too(world: World, table: Path, pinned: DuckDBEngine) -> None:
    """A client of this loop, and connections with loops of their own."""
    async with client_of(world, pinned) as client:
        result = await client.sql(SQL)
    write_small(table, 900)
    other = await asyncio.to_thread(
        lambda: rows(
            dbapi.connect(
                engine=pinned, dp=world.dp, budget=world.budget, account=new_account(), intervals=False
            )
        )
    )
    assert [(row.element[0], row.noisy_count) for row in result.rows] == other


def test_a_file_is_shared_by_connections_of_several_programs(
    world: World, table: Path, pinned: DuckDBEngine, tmp_path: Path, stores_of_this_test: None
) -> None:
    """What is kept in a file is given to everybody who opens it; a store of another kind makes its own release."""
    key = tmp_path / "releases.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    file = ReleaseFile(tmp_path / "releases.sqlite", key)

    def asked(releases: ReleaseFile | MemoryReleaseStore) -> Rows:
        return rows(
            dbapi.connect(
                engine=pinned, dp=world.dp, budget=world.budget, account=new_account(), releases=releases
            )
        )

    paid = asked(file)
    write_small(table, 900)
    assert asked(file) == paid
    assert asked(MemoryReleaseStore()) != paid


def test_a_file_whose_key_others_may_read_is_refused(
    world: World, pinned: DuckDBEngine, tmp_path: Path
) -> None:
    """An application that cannot keep releases does not ask."""
    key = tmp_path / "releases.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o644)
    with pytest.raises(dbapi.OperationalError, match="others may read it"):
        dbapi.connect(
            engine=pinned,
            dp=world.dp,
            budget=world.budget,
            account=new_account(),
            releases=ReleaseFile(tmp_path / "releases.sqlite", key),
        )


@needs("process")
def test_embedded_services_keep_releases_beside_their_ledger(
    table: Path, tmp_path: Path, starts_processes: None
) -> None:
    """Each connection starts the services anew, as each `gris ask --embedded` does."""
    policy, budget, state = tmp_path / "policy.yaml", tmp_path / "budget.yaml", tmp_path / "state"
    policy.write_text(POLICY)
    budget.write_text(BUDGET)

    def asked(account: str) -> Rows:
        return rows(
            dbapi.connect_embedded(
                {"pinned": table}, policy=policy, budget_config=budget, directory=state, account=account
            )
        )

    paid = asked("t/eve")
    write_small(table, 900)
    assert [asked("t/eve"), asked("t/adam")] == [paid, paid]
    for name in (RELEASES_FILE, RELEASES_KEY_FILE):
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o600
