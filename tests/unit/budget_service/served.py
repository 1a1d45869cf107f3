"""A ledger for the tests of the service, served as it is: its accounts, and a store in a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from gris_api.budget.v1 import budget_pb2_grpc

from budget_service.configuration.budget_file import Configuration
from budget_service.server.hosting import serving
from budget_service.server.ledger import Ledger
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.sqlite.store import SqliteStore
from tests.support.budget_client import connected
from tests.support.budget_samples import SteppedClock

Stub: TypeAlias = "budget_pb2_grpc.BudgetServiceAsyncStub"

CONFIGURATION = Configuration.model_validate(
    {
        "accounts": [
            {"path": ["acme"], "limit": {"information": 15, "calls": 9}, "window": "never"},
            {"path": ["acme", "*"], "limit": {"information": 10, "calls": 5}},
            {"path": ["watched"], "limit": {"information": 1, "calls": 1}, "mode": "track", "window": "day"},
        ],
    }
)
SETTINGS = LiveSettings(Settings(CONFIGURATION))


@asynccontextmanager
async def served(folder: Path, clock: SteppedClock) -> AsyncIterator[Stub]:
    """Serve a ledger in SQLite."""
    store = SqliteStore.open(folder / "ledger.db", clock)
    async with serving(Ledger(store), SETTINGS, "127.0.0.1:0") as address, connected(address) as stub:
        yield stub
    await store.close()
