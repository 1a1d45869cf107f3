"""One client for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from pinot_connector import AsyncPrivateClient
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support import two_looks
from tests.support.clients import client_of
from tests.support.embedded import embedded
from tests.support.rings import needs
from tests.support.world import BUDGET, POLICY, World


@pytest.fixture
@needs("process")
def not_started(tmp_path: Path) -> EmbeddedServices:
    """Services that are not started yet."""
    return embedded(tmp_path, POLICY, BUDGET)


@pytest.fixture(scope="module")
@needs("process")
def services(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServices]:
    """Both services under the policy that the module calls POLICY."""
    with embedded(tmp_path_factory.mktemp("services"), request.module.POLICY) as running:
        yield running


@pytest.fixture
async def client(world: World, engine: DuckDBEngine) -> AsyncIterator[AsyncPrivateClient]:
    """A client with an account of its own."""
    async with client_of(world, engine) as client:
        yield client


@pytest.fixture(scope="module")
@needs("process")
def looking_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Both services under the policy of `tests.support.two_looks`; the ledger demands tickets."""
    folder = tmp_path_factory.mktemp("two looks")
    with embedded(folder, two_looks.POLICY, two_looks.BUDGET) as services:
        yield World(services.dp_address, services.budget_address, folder)
