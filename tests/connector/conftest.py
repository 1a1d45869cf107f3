"""Fixtures: one world for all, one client for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from pinot_connector import AsyncPrivateClient
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.rings import needs
from tests.support.world import World, new_account, running_world


@pytest.fixture(scope="session")
@needs("process")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Both services as processes, once for all tests."""
    with running_world(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture(scope="session")
def engine(world: World) -> Iterator[DuckDBEngine]:
    """DuckDB over the world's files."""
    engine = DuckDBEngine(world.tables)
    yield engine
    engine.close()


@pytest.fixture
async def client(world: World, engine: DuckDBEngine) -> AsyncIterator[AsyncPrivateClient]:
    """A client with an account of its own."""
    async with AsyncPrivateClient(
        dp=world.dp, budget=world.budget, account=new_account(), engine=engine
    ) as client:
        yield client
