"""A ledger in any store that a test opens, closes, and changes behind the service's back in between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from budget_service.stores.interface import Store
from budget_service.stores.postgres.store import PostgresStore
from budget_service.stores.redis.store import RedisStore
from budget_service.stores.sqlite.store import SqliteStore
from tests.support.budget_samples import SteppedClock
from tests.support.ledger_stores import UNHURRIED, closing, empty
from tests.support.postgres_server import PostgresServer

KINDS = ("sqlite", "redis", "postgres")


class ClosedLedger:
    """A ledger of one of `KINDS`, at first closed."""

    def __init__(self, kind: str, folder: Path, request: pytest.FixtureRequest, clock: SteppedClock) -> None:
        self.kind = kind
        self._path = folder / "ledger.db"
        self._clock = clock
        self._server: Any = None if kind == "sqlite" else request.getfixturevalue(f"shared_{kind}")

    async def emptied(self) -> None:
        """Forget what other tests have left."""
        if self.kind == "redis":
            await empty(self._server.address)
        elif isinstance(self._server, PostgresServer):
            self._server.forget()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        """Open the store."""
        opening: Any
        if self.kind == "sqlite":
            opening = SqliteStore.open(self._path, self._clock)
        elif self.kind == "redis":
            opening = await RedisStore.open(self._server.address, clock=self._clock)
        else:
            opening = await PostgresStore.open(self._server.address, clock=self._clock, tuning=UNHURRIED)
        async with closing(opening) as store:
            yield store
