"""The names of accounts that a store keeps beside its ledger, under the ids that the ledger has in their place."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from contextlib import closing as closed
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from redis.asyncio import Redis

from budget_service.ledger.pseudonyms import KEY_BYTES, NameRow
from budget_service.stores.interface import Store, StoreDamagedError
from budget_service.stores.postgres.store import PostgresStore
from budget_service.stores.redis.store import RedisStore
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from tests.budget.conftest import closing
from tests.support.budget_samples import SteppedClock
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer

ROOT = "acme"
AT_ONCE = 1000
OTHER_KEY = "00" * KEY_BYTES
UNICODE = ("acme/zoë", "acme/zoe\u0308", "acme/研究 室/{a}:b~c", "acme/\\0'\"\\", "acme/🦭")


def row_of(name: str, seed: int = 0) -> NameRow:
    """Return a row of a name; another seed gives another key."""
    return NameRow.made(name, Random(f"{name} {seed}").randbytes(KEY_BYTES))


def rows_of(count: int) -> list[NameRow]:
    """Return rows of names of many lengths, in any order; of every other one nothing is to stay."""
    random = Random(1)
    kinds = ("stays", "goes")
    rows = [
        row_of(f"acme/{kinds[number % 2]}-{number:05}{'n' * random.randrange(60)}") for number in range(count)
    ]
    random.shuffle(rows)
    return rows


def same(expected: list[NameRow], found: list[NameRow]) -> bool:
    """Return whether these are the same rows, in any order."""
    return sorted(expected, key=attrgetter("name")) == sorted(found, key=attrgetter("name"))


async def test_a_name_is_found_by_itself_and_by_its_id_and_keeps_its_first_key(any_store: Store) -> None:
    """What is asked for and not there is left out; a second key of a name is never taken, nor another root's row."""
    ann, bob, again = row_of("acme/ann"), row_of("acme/bob"), row_of("acme/ann", seed=1)
    assert [ann] == await any_store.add_names(ROOT, [ann])
    assert same([ann, bob], await any_store.add_names(ROOT, [again, bob, again]))
    assert same([ann, bob], await any_store.named(ROOT, ["acme/ann", "acme/nobody", "acme/bob", "acme/ann"]))
    assert same([ann, bob], await any_store.names_of(ROOT, [bob.id, again.id, ann.id, bob.id]))
    assert [] == await any_store.named("other", [ann.name]) == await any_store.names_of("other", [ann.id])
    assert [again] == await any_store.add_names("other", [again])
    assert [] == await any_store.named(ROOT, []) == await any_store.add_names(ROOT, [])
    await any_store.drop_names(ROOT, [ann])
    assert ([], [again]) == (
        await any_store.named(ROOT, [ann.name]),
        await any_store.named("other", [ann.name]),
    )


async def test_a_name_that_was_dropped_is_gone_and_may_be_added_with_another_key(any_store: Store) -> None:
    """Also dropped twice; the other names stay."""
    ann, bob, again = row_of("acme/ann"), row_of("acme/bob"), row_of("acme/ann", seed=1)
    await any_store.add_names(ROOT, [ann, bob])
    for _ in range(2):
        await any_store.drop_names(ROOT, [ann, row_of("acme/nobody")])
        assert [] == await any_store.named(ROOT, [ann.name]) == await any_store.names_of(ROOT, [ann.id])
    assert [bob] == await any_store.names_of(ROOT, [bob.id])
    assert [again] == await any_store.add_names(ROOT, [again])
    # The row that came meanwhile is not the one that is to go.
    await any_store.drop_names(ROOT, [ann])
    assert [] == await any_store.names_of(ROOT, [ann.id])
    assert [again] == await any_store.names_of(ROOT, [again.id])


async def test_a_thousand_names_of_every_script_at_once(any_store: Store) -> None:
    """Names are compared exactly, in whichever normal form they are."""
    rows = [*rows_of(AT_ONCE - len(UNICODE)), *map(row_of, UNICODE)]
    assert same(rows, await any_store.add_names(ROOT, rows))
    assert same(rows, await any_store.named(ROOT, [each.name for each in rows]))
    assert same(rows, await any_store.names_of(ROOT, [each.id for each in rows]))
    await any_store.drop_names(ROOT, rows[1:])
    assert rows[:1] == await any_store.named(ROOT, [each.name for each in rows])


@dataclass
class Kept:
    """A ledger that can be opened again and whose files can be searched; in SQLite it has no server."""

    clock: SteppedClock
    tuning: Tuning
    folder: Path
    server: Any = None

    async def open(self) -> Store:
        """Open it; a ledger on a server may be opened twice."""
        match self.server:
            case None:
                return SqliteStore.open(self.folder / "ledger.db", self.clock)
            case RedisServer():
                return await RedisStore.open(self.server.address, clock=self.clock, tuning=self.tuning)
            case _:
                return await PostgresStore.open(self.server.address, clock=self.clock, tuning=self.tuning)

    async def clean(self) -> None:
        """Do what an operator has to do after names were dropped."""
        match self.server:
            case RedisServer():
                async with Redis.from_url(self.server.address) as client, asyncio.timeout(60):
                    # Else what is searched for might be there compressed.
                    await client.config_set("rdbcompression", "no")
                    await client.bgrewriteaof()
                    while (await client.info("persistence"))["aof_rewrite_in_progress"]:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
            case PostgresServer():
                for command in ("VACUUM FULL gris.names", "CHECKPOINT"):
                    await asyncio.to_thread(self.server.execute, command)

    async def spoil(self, name: str) -> None:
        """Give a name the key of another one, while the ledger is not open."""
        match self.server:
            case None:
                with closed(sqlite3.connect(self.folder / "ledger.db", isolation_level=None)) as connection:
                    connection.execute("UPDATE names SET key = ? WHERE name = ?", (OTHER_KEY, name))
            case RedisServer():
                async with Redis.from_url(self.server.address) as client:
                    await client.hset("gris:{acme}:names", name, f"{row_of(name).id}:{OTHER_KEY}")
            case _:
                statement = "UPDATE gris.names SET key = %s WHERE name = %s"
                await asyncio.to_thread(self.server.execute, statement, OTHER_KEY, name)

    def holds(self, texts: list[str]) -> bool:
        """Return whether any of the files has any of the texts."""
        content = b"\n".join(each.read_bytes() for each in self.folder.rglob("*") if each.is_file())
        return any(each.encode() in content for each in texts)


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path, clock: SteppedClock, tuning: Tuning) -> Kept:
    """Give each ledger that has files."""
    if request.param == "sqlite":
        (tmp_path / "ledger").mkdir()
        return Kept(clock, tuning, tmp_path / "ledger")
    if request.param == "redis":
        redis: RedisServer = request.getfixturevalue("own_redis")
        return Kept(clock, tuning, redis.folder, redis)
    postgres: PostgresServer = request.getfixturevalue("shared_postgres")
    postgres.forget()
    return Kept(clock, tuning, postgres.folder / "base", postgres)


@asynccontextmanager
async def opened_by_two(kept: Kept) -> AsyncIterator[tuple[Store, Store]]:
    """Open a ledger twice if it may have two owners."""
    async with closing(await kept.open()) as one, AsyncExitStack() as stack:
        is_shared = kept.server is not None
        yield one, await stack.enter_async_context(closing(await kept.open())) if is_shared else one


async def test_names_outlast_the_store_that_has_added_them(kept: Kept) -> None:
    """Opened again, it has the same rows."""
    rows = rows_of(20)
    async with closing(await kept.open()) as store:
        await store.add_names(ROOT, rows)
    async with closing(await kept.open()) as store:
        assert same(rows, await store.named(ROOT, [each.name for each in rows]))
        assert same(rows, await store.names_of(ROOT, [each.id for each in rows]))


async def test_who_adds_the_same_names_at_once_gets_the_same_rows(kept: Kept) -> None:
    """In another order, with other keys, and by another process where a ledger has several."""
    names = [each.name for each in rows_of(100)]
    async with opened_by_two(kept) as (one, other):
        first, second = await asyncio.gather(
            one.add_names(ROOT, [row_of(each) for each in names]),
            other.add_names(ROOT, [row_of(each, seed=1) for each in reversed(names)]),
        )
        assert len(names) == len(first)
        assert same(first, second)
        assert same(first, await one.names_of(ROOT, [each.id for each in first]))


async def test_who_adds_names_gets_a_row_of_each_while_others_drop_them(kept: Kept) -> None:
    """However the two fall together."""
    names = [f"acme/{number}" for number in range(5)]
    async with opened_by_two(kept) as (one, other):
        dropped: list[NameRow] = []
        for turn in range(30):
            # Nobody draws a key twice.
            rows, others = ([row_of(each, seed=2 * turn + both) for each in names] for both in range(2))
            dropping = other.drop_names(ROOT, dropped[::-1])
            added, _, again = await asyncio.gather(
                one.add_names(ROOT, rows), dropping, one.add_names(ROOT, others)
            )
            for found in (added, again):
                assert names == sorted(each.name for each in found)
                assert {each.id for each in found} <= {each.id for each in (*rows, *others, *dropped)}
            dropped = await one.named(ROOT, names)


async def test_an_id_is_never_given_to_a_second_name(kept: Kept) -> None:
    """Such rows are refused, and those beside them are not kept either."""
    ann = row_of("acme/ann")
    async with closing(await kept.open()) as store:
        await store.add_names(ROOT, [ann])
        for first in (ann.id, row_of("acme/new").id):
            taken = [NameRow(name, first, ann.key) for name in ("acme/bob", "acme/cem")]
            with pytest.raises(StoreDamagedError):
                await store.add_names(ROOT, [row_of("acme/dan"), *taken])
        assert [ann] == await store.named(ROOT, ["acme/ann", "acme/bob", "acme/cem", "acme/dan"])
        assert [ann] == await store.names_of(ROOT, [ann.id, row_of("acme/new").id])


async def test_a_row_whose_key_does_not_lead_to_its_id_is_damage(kept: Kept) -> None:
    """Else a name would have another one's budget."""
    ann, bob = row_of("acme/ann"), row_of("acme/bob")
    async with closing(await kept.open()) as store:
        await store.add_names(ROOT, [ann, bob])
    await kept.spoil(ann.name)
    async with closing(await kept.open()) as store:
        assert [bob] == await store.named(ROOT, [bob.name])
        for reading in (store.named(ROOT, [ann.name]), store.names_of(ROOT, [ann.id])):
            with pytest.raises(StoreDamagedError) as caught:
                await reading
            assert ("names", ann.name) == (caught.value.table, caught.value.key)


async def test_names_that_were_dropped_are_in_no_file(kept: Kept) -> None:
    """Nor are their keys, once an operator has done what has to be done; the others are."""
    rows = rows_of(4000)
    gone = [each for each in rows if "goes" in each.name]
    # As many as all files can be searched for.
    keys = [each.key for each in gone[:200]]
    async with closing(await kept.open()) as store:
        for first in range(0, len(rows), 100):
            await store.add_names(ROOT, rows[first : first + 100])
        await kept.clean()
        assert kept.holds(["goes-"])
        assert kept.holds(keys[:1])
        for first in range(0, len(gone), AT_ONCE):
            await store.drop_names(ROOT, gone[first : first + AT_ONCE])
        await kept.clean()
        assert (False, False) == (kept.holds(["goes-"]), kept.holds(keys))
        assert kept.holds(["stays-"])
        await store.check()
    assert (False, False) == (kept.holds(["goes-"]), kept.holds(keys))


async def test_postgresql_takes_no_samples_of_names(
    shared_postgres: PostgresServer, clock: SteppedClock, tuning: Tuning
) -> None:
    """Of how often a root occurs it does."""
    shared_postgres.forget()
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=tuning)
    ) as store:
        await store.add_names(ROOT, rows_of(AT_ONCE))
        await asyncio.to_thread(shared_postgres.execute, "ANALYZE gris.names")
    query = "SELECT attname FROM pg_stats WHERE schemaname = 'gris' AND tablename LIKE 'names%'"
    assert [("root",)] == shared_postgres.execute(query)
