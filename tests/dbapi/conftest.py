"""The services of the connector's tests, and connections to them over DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pinot_connector.dbapi import Connection
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.rings import needs
from tests.support.world import World, running_world

from .asking import connected


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
def connection(world: World, engine: DuckDBEngine) -> Iterator[Connection]:
    """A connection with an account of its own."""
    connection = connected(world, engine)
    yield connection
    connection.close()
