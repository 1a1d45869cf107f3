"""Each store has one schema: a ledger of another one is refused, unless there are steps that make it into this one."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from budget_service.ledger.values import Cost
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import StoreUnavailableError, StoreUnusableError
from budget_service.stores.postgres import schema as postgres_schema
from budget_service.stores.redis import schema as redis_schema
from budget_service.stores.schema_steps import steps_from
from budget_service.stores.sqlite import file as sqlite_file
from tests.budget.closed_ledgers import KINDS, ClosedLedger
from tests.support.budget_samples import SteppedClock, charge

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

    async def notes(self) -> list[int]:
        """Return what the made-up step has written."""
        if self.kind == "redis":
            async with Redis.from_url(self._server.address) as client:
                return [int(each) for each in await client.lrange("made-up", 0, -1)]
        if self.kind == "sqlite":
            with contextlib.closing(sqlite3.connect(self._path)) as file:
                return [number for (number,) in file.execute("SELECT * FROM made_up")]
        return [number for (number,) in self._server.execute("SELECT * FROM gris.made_up")]


@pytest.fixture(params=KINDS)
def ledger(request: pytest.FixtureRequest, tmp_path: Path, clock: SteppedClock) -> Ledger:
    """Give the ledger of each store."""
    return Ledger(request.param, tmp_path, request, clock)


async def _push(client: Any) -> None:
    await client.rpush("made-up", 1)


# They add a table or a key, and write into it.
MADE_UP: dict[str, Any] = {
    "sqlite": ("CREATE TABLE made_up (number INTEGER)", "INSERT INTO made_up VALUES (1)"),
    "postgres": b"CREATE TABLE gris.made_up (number integer); INSERT INTO gris.made_up VALUES (1)",
    "redis": _push,
}


@pytest.mark.parametrize(("by", "problem"), [(1, "newer than"), (-1, "older than")])
async def test_a_ledger_of_another_schema_is_refused_and_stays_as_it_is(
    ledger: Ledger, by: int, problem: str
) -> None:
    """The error names both schemas, and the program that knows it opens it as before."""
    await ledger.emptied()
    async with ledger.opened() as store:
        await store.apply(*charge("c", Cost(3, 1)))
    await ledger.has_schema(ledger.own + by)
    with pytest.raises(StoreUnusableError, match=f"schema {ledger.own + by}, {problem}.* {ledger.own}"):
        async with ledger.opened():
            pass
    assert ledger.own + by == await ledger.schema()
    await ledger.has_schema(ledger.own)
    async with ledger.opened() as store:
        assert (await store.apply(*charge("c", Cost(3, 1)))).replayed


async def test_a_ledger_of_the_schema_before_is_brought_up_once_and_all_it_holds_stays_good(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a step that is made up here."""
    await ledger.emptied()
    async with ledger.opened() as store:
        await store.apply(*charge("c", Cost(3, 1)))
    await ledger.has_schema(ledger.own - 1)
    monkeypatch.setitem(MODULES[ledger.kind].STEPS, ledger.own - 1, MADE_UP[ledger.kind])
    for _ in range(2):
        async with ledger.opened() as store:
            assert (await store.apply(*charge("c", Cost(3, 1)))).replayed
            await verify(store, "acme", found := Verification())
            assert found.differences == []
        assert (ledger.own, [1]) == (await ledger.schema(), await ledger.notes())


@pytest.mark.parametrize("ledger", ["redis"], indirect=True)
async def test_a_step_that_is_interrupted_is_done_by_the_next_start(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs of the schema before are refused meanwhile: Redis has no transaction that could take it back."""
    await ledger.emptied()
    async with ledger.opened() as store:
        await store.apply(*charge("c", Cost(3, 1)))
    await ledger.has_schema(ledger.own - 1)
    failing = [True]

    async def step(client: Any) -> None:
        if failing.pop():
            raise RedisError("it is gone")
        await _push(client)

    monkeypatch.setitem(redis_schema.STEPS, ledger.own - 1, step)
    with pytest.raises(StoreUnavailableError, match="it is gone"):
        async with ledger.opened():
            pass
    assert (ledger.own, []) == (await ledger.schema(), await ledger.notes())
    failing.append(False)
    async with ledger.opened() as store:
        assert (await store.apply(*charge("c", Cost(3, 1)))).replayed
    assert [1] == await ledger.notes()


def test_steps_follow_one_another() -> None:
    """From any schema that is linked with this one; a gap is refused."""
    steps = {2: "two", 4: "four", 5: "five"}
    assert ["four", "five"] == steps_from("this", 4, 6, steps)
    assert [] == steps_from("this", 6, 6, steps)
    with pytest.raises(StoreUnusableError, match=r"this has schema 2, older than this program's 6"):
        steps_from("this", 2, 6, steps)
