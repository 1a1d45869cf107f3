"""Each store has one schema: a ledger of another one is refused."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from budget_service.ledger.values import Cost
from budget_service.stores.interface import StoreUnusableError
from budget_service.stores.postgres import schema as postgres_schema
from budget_service.stores.redis import schema as redis_schema
from budget_service.stores.sqlite import file as sqlite_file
from tests.support.budget_samples import SteppedClock, charge
from tests.unit.budget_service.closed_ledgers import KINDS, ClosedLedger

MODULES: dict[str, Any] = {"sqlite": sqlite_file, "redis": redis_schema, "postgres": postgres_schema}


class Ledger(ClosedLedger):
    """A ledger whose schema can be read and stated while it is closed."""

    @property
    def own(self) -> int:
        """The schema of this program."""
        return int(MODULES[self.kind].SCHEMA_VERSION)

    async def has_schema(self, version: int) -> None:
        """Let the ledger say that it has another schema."""
        if self.kind == "redis":
            async with Redis.from_url(self._server.address) as client:
                await client.set("gris:schema", version)
        elif self.kind == "sqlite":
            with contextlib.closing(sqlite3.connect(self._path)) as file:
                file.execute(f"PRAGMA user_version = {version}")
        else:
            self._server.execute("UPDATE gris.schema SET version = %s", version)

    async def schema(self) -> int:
        """Return the schema that the ledger says it has."""
        if self.kind == "redis":
            async with Redis.from_url(self._server.address) as client:
                return int(await client.get("gris:schema") or 0)
        if self.kind == "sqlite":
            with contextlib.closing(sqlite3.connect(self._path)) as file:
                ((found,),) = file.execute("PRAGMA user_version")
        else:
            ((found,),) = self._server.execute("SELECT version FROM gris.schema")
        return int(found)


@pytest.fixture(params=KINDS)
def ledger(request: pytest.FixtureRequest, tmp_path: Path, clock: SteppedClock) -> Ledger:
    """Give the ledger of each store."""
    return Ledger(request.param, tmp_path, request, clock)


@pytest.mark.parametrize("by", [1, -1])
async def test_a_ledger_of_another_schema_is_refused_and_stays_as_it_is(ledger: Ledger, by: int) -> None:
    """The error names both schemas, and the program that knows it opens it as before."""
    await ledger.emptied()
    async with ledger.opened() as store:
        await store.apply(*charge("c", Cost(3, 1)))
    await ledger.has_schema(ledger.own + by)
    with pytest.raises(StoreUnusableError, match=f"schema {ledger.own + by}, .* schema {ledger.own} only"):
        async with ledger.opened():
            pass
    assert ledger.own + by == await ledger.schema()
    await ledger.has_schema(ledger.own)
    async with ledger.opened() as store:
        assert (await store.apply(*charge("c", Cost(3, 1)))).replayed
