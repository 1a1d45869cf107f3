"""Fixtures: a clock that stands still, and every store on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from budget_service.stores.interface import Store, StoreUnavailableError
from budget_service.stores.postgres.store import PostgresStore
from budget_service.stores.redis.store import RedisStore
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from tests.support.budget_samples import SteppedClock
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.redis_server import RedisServer, redis_server
from tests.support.rings import needs
from tests.unit.budget_service.memory_store import MemoryStore

# A machine that does much else may take longer for an answer than a service waits for its store.
UNHURRIED = Tuning(
    redis_answer_seconds=30,
    postgres_answer_seconds=30,
    postgres_statement_seconds=25,
    postgres_lock_seconds=20,
    slow_disk_seconds=30,
    hanging_disk_seconds=30,
)


@pytest.fixture
def clock() -> SteppedClock:
    """Stand at noon of 14 October 2026."""
    return SteppedClock()


@pytest.fixture
def tuning() -> Tuning:
    """Give the bounds of the service and time-outs for a busy machine; a test overrides them by `parametrize`."""
    return UNHURRIED


@pytest.fixture(scope="package")
@needs("redis")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Run one Redis for all tests that leave it alive."""
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="package")
@needs("postgres")
def shared_postgres() -> Iterator[PostgresServer]:
    """Run one PostgreSQL for all tests that leave it alive."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="package")
@needs("postgres")
def private_postgres() -> Iterator[PostgresServer]:
    """Run one PostgreSQL for all tests that kill it or change its settings."""
    with postgres_server() as server:
        yield server


@pytest.fixture
@needs("redis")
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """Run a Redis without a ledger, for one test."""
    folder = tmp_path / "own-redis"
    folder.mkdir()
    with redis_server(folder) as server:
        yield server


@pytest.fixture
def own_postgres(private_postgres: PostgresServer) -> PostgresServer:
    """Give a PostgreSQL without a ledger, as it was first set."""
    private_postgres.restart()
    private_postgres.forget()
    return private_postgres


@pytest_asyncio.fixture(params=["memory", "sqlite", "redis", "postgres"])
async def any_store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: SteppedClock, tuning: Tuning
) -> AsyncIterator[Store]:
    """Open each store in turn, on the same clock."""
    if request.param == "memory":
        yield MemoryStore(clock, expired_at_once=tuning.expired_at_once)
    elif request.param == "sqlite":
        async with closing(SqliteStore.open(tmp_path / "ledger.db", clock, tuning=tuning)) as store:
            yield store
    elif request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("shared_postgres")
        server.forget()
        async with closing(await PostgresStore.open(server.address, clock=clock, tuning=tuning)) as store:
            yield store
    else:
        address = request.getfixturevalue("shared_redis").address
        await empty(address)
        async with closing(await RedisStore.open(address, clock=clock, tuning=tuning)) as store:
            yield store


async def until_checked(store: Store) -> None:
    """Check a store, again while its connections break."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await store.check()
            except StoreUnavailableError:
                await asyncio.sleep(0.05)


async def empty(address: str) -> None:
    """Forget everything that earlier tests have left."""
    client = Redis.from_url(address)
    await client.flushall()
    await client.aclose()


@asynccontextmanager
async def closing(store: Store) -> AsyncIterator[Store]:
    """Close a store in the end."""
    try:
        yield store
    finally:
        await store.close()
