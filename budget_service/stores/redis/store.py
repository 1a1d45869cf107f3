"""The Redis (or Valkey) store: it keeps the ledger's rows and compares revisions; the service decides.

What a crash of Redis can lose is decided by its persistence: `appendonly yes` is demanded, and only `appendfsync
always` also outlives the power.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from budget_service.stores.interface import (
    Clock,
    Committed,
    StoreUnavailableError,
    StoreUnusableError,
    uncounted,
)
from budget_service.stores.ledger_engine import LedgerEngine
from budget_service.stores.redis import layout
from budget_service.stores.redis.address import CONNECT_TIMEOUT_SECONDS, connection_pool
from budget_service.stores.redis.pipeline import PipelinedConnection
from budget_service.stores.redis.replication import LOST, Replication
from budget_service.stores.redis.rows import RedisRows, RedisTransaction
from budget_service.stores.redis.schema import install, require_schema
from budget_service.stores.redis.scripts import COUNT, DROP_TRIMMED, Scripts, reading
from budget_service.stores.rollback_guard import LOST_COUNT, WHAT_TO_DO, Position
from budget_service.stores.row_store import RowStore
from budget_service.stores.row_transactions import RowTransactions
from budget_service.stores.rows import BASES
from budget_service.tuning import DEFAULTS, Tuning

# One for the requests, the others for checks and listings.
MAX_CONNECTIONS = 4
# All of them are lost together if a connection is.
MAX_TOGETHER = 64

# What each `appendfsync` can lose of the charges that were acknowledged.
LOSSES = {
    "always": "",
    "everysec": (
        "appendfsync everysec: a power failure loses up to about a second of them; a killed Redis loses none, or up to "
        "two seconds if the disk was so slow that a write had to wait"
    ),
    "no": "appendfsync no: a power failure loses what the system has not written, often 30 seconds; a killed one none",
}


log = logging.getLogger(__name__)


class RedisStore(RowStore):
    """A Store in Redis. Nothing is tried twice behind the caller's back: the caller has the request id to do that.

    `clock` replaces Redis' own time, for tests.
    """

    def __init__(
        self,
        address: str,
        *,
        allow_volatile: bool,
        clock: Clock | None,
        committed: Committed,
        tuning: Tuning,
    ) -> None:
        answer_seconds = tuning.redis_answer_seconds
        self._client = Redis(connection_pool=connection_pool(address, MAX_CONNECTIONS, answer_seconds))
        # A connection that nothing else waits for.
        self._heartbeat = Redis(connection_pool=connection_pool(address, 1, answer_seconds))
        self._replication = Replication()
        self._pipeline, self._written = [
            PipelinedConnection(
                connection_pool(address, 1, answer_seconds, ends_silence=False),
                connect_seconds=CONNECT_TIMEOUT_SECONDS,
                answer_seconds=answer_seconds,
                replication=self._replication,
            )
            # What is read waits for no disk: with `appendfsync always` that comes with every write beside it.
            for _ in range(2)
        ]
        self._scripts = Scripts(self._pipeline)
        self._writing = Scripts(self._written)
        self._rows = RedisRows(
            self._scripts,
            self._writing,
            self._replication,
            clock=self._clock_argument,
            answer_seconds=answer_seconds,
        )
        transactions = RowTransactions(self._rows, tuning.expired_at_once)
        self._engine = LedgerEngine(transactions, by_root=True, most=MAX_TOGETHER, committed=committed)
        self._allow_volatile = allow_volatile
        # Whether the loss of charges was recorded in the ledger.
        self._is_disowned = False
        self._clock = clock

    @staticmethod
    def require_readable(address: str) -> None:
        """Return if an address can be read. Raises StoreUnusableError, which shows no part of it."""
        connection_pool(address, 1, DEFAULTS.redis_answer_seconds)

    @staticmethod
    async def open(
        address: str,
        *,
        allow_volatile: bool = False,
        clock: Clock | None = None,
        mark: Path | None = None,
        committed: Committed = uncounted,
        tuning: Tuning = DEFAULTS,
    ) -> RedisStore:
        """Connect, and check that Redis persists data and is not behind its high-water mark in the file `mark`.

        Raises StoreUnavailableError or StoreUnusableError.
        """
        store = RedisStore(
            address, allow_volatile=allow_volatile, clock=clock, committed=committed, tuning=tuning
        )
        try:
            await store._require_promises()
            await install(store._client)
            await store._warn_of_losses()
            await store._begin_guard(mark)
        except BaseException:
            await store.close()
            raise
        return store

    def reading(self) -> AbstractAsyncContextManager[RedisTransaction]:
        """Begin a transaction that commits nothing; see `RowMap`."""
        return self._rows.reading()

    def begin(self, roots: Collection[str]) -> AbstractAsyncContextManager[RedisTransaction]:
        """Begin a transaction on one root; see `RowMap`."""
        return self._rows.begin(roots)

    async def roots(self) -> list[str]:
        """Return every root that was ever used; see `Store`."""
        try:
            keys = [str(key) async for key in self._client.scan_iter(layout.ROOT_KEYS, count=1000)]
        except (RedisError, OSError) as error:
            raise StoreUnavailableError(str(error)) from error
        return sorted({layout.root_of(key) for key in keys if layout.name_in_root(key) == "row:roots"})

    async def entries(
        self, root: str, after: int, until: int, at_most: int, *, newest: bool = False
    ) -> list[tuple[int, str]]:
        """Return entries of a journal; see `RowStore`."""
        first, last = f"({after}", str(until)
        asked = ("XREVRANGE", last, first) if newest else ("XRANGE", first, last)
        command, *bounds = asked
        key = layout.key_of(root, "journal")
        found = await self._scripts.read(command, key, *bounds, "COUNT", str(at_most))
        return [(int(position.partition("-")[0]), text) for position, (_, text) in found]

    async def drop_trimmed(self, root: str, most: int) -> int:
        """Remove the oldest entries that the base stands for; see `Store`."""
        keys = [layout.row_key(root, BASES), layout.key_of(root, "journal")]
        return int(await self._writing.of_schema(DROP_TRIMMED, keys, str(most)))

    async def check(self) -> None:
        """Return if Redis answers, takes writes and keeps what it is given, by what it says of itself."""
        await self._require_promises()
        await require_schema(self._client)
        await self._require_nothing_lost()
        if self._guard is not None:
            await self._guard.check()
            if self._is_disowned:
                # Somebody has confirmed the ledger.
                self._replication.accepted()
                self._is_disowned = False
        # Keeps the heartbeat's connection open: opening one takes longer than a heartbeat may.
        await self.ping()

    async def ping(self) -> None:
        """Return as soon as Redis answers, on a connection that nothing else waits for; see `Store`."""
        try:
            await self._heartbeat.ping()
        except (RedisError, OSError) as error:
            raise StoreUnavailableError(str(error)) from error

    async def close(self) -> None:
        """Finish what was begun and close every connection."""
        await self._finish()
        await self._pipeline.close()
        await self._written.close()
        for pool in (self._heartbeat.connection_pool, self._client.connection_pool):
            await pool.disconnect()

    async def _count(self, step: int) -> Position:
        counting = self._scripts.run(COUNT, [layout.LEDGER_KEY], secrets.token_hex(16), str(step))
        ledger_id, count = await reading(counting)
        return Position(ledger_id, int(count))

    async def _require_promises(self) -> None:
        # Some hosted ones do not tell.
        if (await self._info("cluster")).get("cluster_enabled"):
            raise StoreUnusableError(
                "this is a Redis Cluster (cluster-enabled yes), whose servers share the keys: take one Redis without "
                "it, with replicas if it has to fail over"
            )
        replication = await self._info("replication")
        self._replication.seen(replication)
        memory = await self._info("memory")
        persistence = await self._info("persistence")
        if replication["role"] != "master":
            raise StoreUnusableError("this Redis is a replica and takes no writes")
        if memory["maxmemory_policy"] != "noeviction":
            raise StoreUnusableError("this Redis may evict budgets: set maxmemory-policy to noeviction")
        # Snapshots are not enough: what was charged since the last one is gone when the process is killed.
        if not (persistence["aof_enabled"] or self._allow_volatile):
            raise StoreUnusableError(
                "this Redis forgets charges when it dies: start it with --appendonly yes"
            )

    async def _require_nothing_lost(self) -> None:
        """Return unless a fail-over lost charges that this process has acknowledged."""
        if not self._replication.lost:
            return
        if self._guard is None:
            raise StoreUnusableError(f"{LOST}; without --mark only this process knows it. {WHAT_TO_DO}")
        if not self._is_disowned:
            # So every service of this ledger refuses it until somebody confirms it, and this one after a restart too.
            await reading(self._pipeline.ask("HSET", layout.LEDGER_KEY, "count", str(LOST_COUNT)))
            self._is_disowned = True

    async def _warn_of_losses(self) -> None:
        loss = LOSSES.get(await self._setting("appendfsync"), "what a power failure loses is unknown")
        if not (await self._info("persistence"))["aof_enabled"]:
            loss = "it forgets every charge since its last snapshot, if it takes any, when it dies"
        if loss:
            log.warning(
                "This Redis can lose charges that were acknowledged.",
                extra={"event": "store.can_lose_charges", "fields": {"problem": loss}},
            )

    async def _info(self, section: str) -> dict[str, Any]:
        try:
            return dict(await self._client.info(section))
        except (RedisError, OSError) as error:
            raise StoreUnavailableError(str(error)) from error

    async def _setting(self, name: str) -> str:
        """Return a setting, empty if this Redis does not tell (some hosted ones do not)."""
        try:
            return str((await self._client.config_get(name)).get(name, ""))
        except ResponseError:
            return ""
        except (RedisError, OSError) as error:
            raise StoreUnavailableError(str(error)) from error

    def _clock_argument(self) -> str:
        return "" if self._clock is None else str(self._clock())
