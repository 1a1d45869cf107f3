"""A fail-over of a real Redis to a real replica: one that lost acknowledged charges is noticed, others are served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from budget_service.ledger.outcomes import Charged
from budget_service.ledger.values import Cost
from budget_service.stores.interface import (
    OutcomeUnknownError,
    StoreUnavailableError,
    StoreUnusableError,
)
from budget_service.stores.opening import confirm_restored, open_store
from budget_service.stores.redis.store import RedisStore
from tests.support.budget_samples import charge, levels, limit
from tests.support.ledger_stores import until_checked
from tests.support.proxy import Proxy
from tests.support.redis_server import DURABLE, RedisServer, redis_server

ON = levels(own=limit(100, 100))


@dataclass
class Pair:
    """A master, its replica, and the address at which services find whichever is the master."""

    master: RedisServer
    replica: RedisServer
    proxy: Proxy
    mark: Path

    @property
    def address(self) -> str:
        """The address of the store."""
        return f"redis://{self.proxy.address}/0"

    async def promote(self) -> None:
        """Make the replica a master."""
        await asked(self.replica, "REPLICAOF", "NO", "ONE")

    def switch(self) -> None:
        """Lead services to the replica, and end the old master."""
        self.proxy.upstream = f"127.0.0.1:{self.replica.port}"
        self.proxy.cut()
        self.master.kill()


async def asked(server: RedisServer, *command: str) -> Any:
    """Send a command to a server."""
    client: Any = Redis.from_url(server.address, decode_responses=True)
    try:
        return await client.execute_command(*command)
    finally:
        await client.aclose()


@contextmanager
def replica_of(master: RedisServer, folder: Path) -> Iterator[RedisServer]:
    """Run a replica."""
    options = (*DURABLE, "--replicaof", f"127.0.0.1 {master.port}", "--repl-diskless-sync-delay", "0")
    with redis_server(folder, options) as server:
        yield server


@pytest_asyncio.fixture
async def pair(own_redis: RedisServer, tmp_path: Path) -> AsyncIterator[Pair]:
    """Run a master and a replica that has all it has."""
    folder = tmp_path / "replica"
    folder.mkdir()
    await asked(own_redis, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
    with replica_of(own_redis, folder) as replica:
        proxy = Proxy(f"127.0.0.1:{own_redis.port}")
        async with proxy.listening():
            await in_step(own_redis)
            yield Pair(own_redis, replica, proxy, tmp_path / "mark")


async def in_step(master: RedisServer) -> None:
    """Wait until the replica has all that the master has."""
    assert await asked(master, "WAIT", "1", "20000") == 1


@asynccontextmanager
async def opened(pair: Pair, *, mark: bool = True) -> AsyncIterator[RedisStore]:
    """Open the store."""
    store = await open_store(pair.address, allow_volatile=False, mark=pair.mark if mark else None)
    assert isinstance(store, RedisStore)
    try:
        yield store
    finally:
        await store.close()


async def charged(store: RedisStore, request_id: str) -> None:
    """Charge, again while connections break."""
    async with asyncio.timeout(20):
        while True:
            try:
                answer = await store.apply(*charge(request_id, Cost(1, 1), on=ON))
            except (StoreUnavailableError, OutcomeUnknownError):
                await asyncio.sleep(0.05)
            else:
                assert isinstance(answer.outcome, Charged)
                return


async def lost_something(pair: Pair, store: RedisStore) -> None:
    """Charge, promote the replica, charge the old master once more and lead the store to the new one; all at once."""
    await charged(store, "kept")
    await in_step(pair.master)
    await pair.promote()
    await charged(store, "lost")
    pair.switch()


@pytest.mark.parametrize("is_idle", [True, False])
async def test_a_fail_over_that_lost_a_charge_is_noticed_at_once(pair: Pair, *, is_idle: bool) -> None:
    """Nothing is acknowledged after it, also if no check came before; every service refuses until it is confirmed."""
    other = pair.mark.with_name("other")
    async with opened(pair) as store:
        await store.check()
        other.write_bytes(pair.mark.read_bytes())
        await lost_something(pair, store)
        if not is_idle:
            # First the connection breaks, then the new master answers.
            for _ in range(5):
                with pytest.raises((StoreUnavailableError, OutcomeUnknownError)):
                    await store.apply(*charge("next", Cost(1, 1), on=ON))
        for _ in range(2):
            with pytest.raises(StoreUnusableError, match="--confirm-restored"):
                await until_checked(store)
        with pytest.raises((StoreUnavailableError, OutcomeUnknownError)):
            await store.apply(*charge("late", Cost(1, 1), on=ON))
        for mark in (pair.mark, other):
            with pytest.raises(StoreUnusableError, match="behind its mark"):
                await open_store(pair.address, allow_volatile=False, mark=mark)
        assert (
            await confirm_restored(pair.address, lambda _: ON[0].limit, [], mark=pair.mark, actor="ops") > 0
        )
        await until_checked(store)


async def test_a_fail_over_that_lost_nothing_is_served_on(pair: Pair) -> None:
    """The replica had all that was acknowledged; and so with the next one."""
    async with opened(pair) as store:
        await store.check()
        await charged(store, "kept")
        await in_step(pair.master)
        await pair.promote()
        # What others write, Redis' own pings to its replicas among them, and what is only read, is no loss.
        await asked(pair.master, "SET", "unrelated", "1")
        await store.open_reservations(["acme"])
        pair.switch()
        await charged(store, "next")
        await until_checked(store)
        await charged(store, "last")
        status = (await store.read(ON[0].level, ON)).levels[-1]
        assert status.spent == Cost(3, 3)


async def test_without_a_mark_the_process_that_noticed_refuses(pair: Pair) -> None:
    """As long as it runs."""
    async with opened(pair, mark=False) as store:
        await store.check()
        await lost_something(pair, store)
        for _ in range(2):
            with pytest.raises(StoreUnusableError, match="lost charges that were acknowledged"):
                await until_checked(store)


async def test_a_master_that_starts_again_is_served(pair: Pair) -> None:
    """It has another history then, and all that is in its append-only file."""
    async with opened(pair) as store:
        await store.check()
        await charged(store, "kept")
        pair.master.kill()
        pair.master.start()
        await charged(store, "next")
        await until_checked(store)
