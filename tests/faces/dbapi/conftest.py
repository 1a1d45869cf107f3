"""Connections to the services over DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pinot_connector.dbapi import Connection
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.world import World

from .questions import connected


@pytest.fixture
def connection(world: World, engine: DuckDBEngine) -> Iterator[Connection]:
    """A connection with an account of its own."""
    connection = connected(world, engine)
    yield connection
    connection.close()
