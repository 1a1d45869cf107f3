"""One client for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pinot_connector import AsyncPrivateClient
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.world import World, new_account


@pytest.fixture
async def client(world: World, engine: DuckDBEngine) -> AsyncIterator[AsyncPrivateClient]:
    """A client with an account of its own."""
    async with AsyncPrivateClient(
        dp=world.dp, budget=world.budget, account=new_account(), engine=engine
    ) as client:
        yield client
