"""A service that takes policy statements."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from budget_service.server.hosting import serving
from budget_service.server.ledger import Ledger
from budget_service.stores.interface import Store
from budget_service.tuning import DEFAULTS, Tuning
from tests.support.budget_client import connected
from tests.unit.budget_service.served import SETTINGS, Stub


@asynccontextmanager
async def stub_on(store: Store, tuning: Tuning = DEFAULTS) -> AsyncIterator[Stub]:
    """Serve a store."""
    async with (
        serving(Ledger(store), SETTINGS, "127.0.0.1:0", tuning=tuning) as address,
        connected(address) as stub,
    ):
        yield stub
