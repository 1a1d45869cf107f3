"""The Redis (or Valkey) store: it keeps the ledger's rows and compares revisions; the service decides.

What a crash of Redis can lose is decided by its persistence: `appendonly yes` is demanded, and only `appendfsync
always` also outlives the power.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from budget_service.ledger.base import Base
from budget_service.ledger.limits import StoredLimits
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account
from budget_service.stores.codec import decode_base, encoded
from budget_service.stores.guarded_store import GuardedStore
from budget_service.stores.interface import (
    BalancePage,
    Clock,
    Committed,
    GroupedEntries,
    StoreUnavailableError,
    StoreUnusableError,
    uncounted,
    ungrouped_entries,
)
from budget_service.stores.ledger_engine import LedgerEngine
from budget_service.stores.mark_file import WHAT_TO_DO, Position
from budget_service.stores.redis import encoding as text
from budget_service.stores.redis import layout
from budget_service.stores.redis.address import CONNECT_TIMEOUT_SECONDS, connection_pool
from budget_service.stores.redis.pipeline import PipelinedConnection
from budget_service.stores.redis.replication import LOST, Replication
from budget_service.stores.redis.schema import install, require_schema
from budget_service.stores.redis.scripts import (
    ALL_LIMITS,
    BALANCES,
    COUNT,
    DROP_TRIMMED,
    OPEN_RESERVATIONS,
    WRITE_BASE,
    Scripts,
    reading,
)
from budget_service.stores.redis.transaction import RedisTransactions
from budget_service.stores.rollback_guard import LOST_COUNT
from budget_service.stores.transactions import Wanted
from budget_service.tuning import DEFAULTS, Tuning

# One for the requests, the others for checks and listings.
MAX_CONNECTIONS = 4
# All of them are lost together if a connection is.
MAX_TOGETHER = 64
# Lua cannot pass on any number of arguments.
ROOTS_AT_ONCE = 1000

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


class RedisStore(GuardedStore):
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
        self._transactions = RedisTransactions(
            self._scripts,
            self._writing,
            self._replication,
            clock=self._clock_argument,
            most_due=tuning.expired_at_once,
            answer_seconds=answer_seconds,
        )
        self._engine = LedgerEngine(self._transactions, by_root=True, most=MAX_TOGETHER, committed=committed)
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

    async def limits(self, account: Account) -> StoredLimits:
        """Return the stored limits of the levels of an account; see `Store`."""
        root = frozenset((account.root,))
        levels = account.levels
        found = await self._transactions.load(Wanted(roots=root, counted=root, limits=levels, closed=levels))
        record = found.roots.get(account.root)
        return StoredLimits(record.limits_version if record else 0, found.limits, frozenset(found.closed))

    async def all_limits(self, root: str) -> StoredLimits:
        """Return all stored limits of a root; see `Store`."""
        keys = layout.keys_of(root, "root", "limits", "closed")
        return text.parse_all_limits(*await reading(self._scripts.run(ALL_LIMITS, keys)))

    async def roots(self) -> list[str]:
        """Return every root that was ever used; see `Store`."""
        try:
            keys = [str(key) async for key in self._client.scan_iter(layout.ROOT_KEYS, count=1000)]
        except (RedisError, OSError) as error:
            raise StoreUnavailableError(str(error)) from error
        return sorted({layout.root_of(key) for key in keys if layout.name_in_root(key) == "root"})

    async def journal(self, root: str, after: str, until: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return entries of a root; see `Store`."""
        return await self._entries("XRANGE", root, f"({after}" if after else "-", until or "+", most)

    async def latest(self, root: str, before: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return the newest entries of a root; see `Store`."""
        return await self._entries("XREVRANGE", root, f"({before}" if before else "+", "-", most)

    async def _entries(
        self, command: str, root: str, first: str, last: str, most: int
    ) -> list[tuple[str, JournalEntry]]:
        key = layout.key_of(root, "journal")
        found = await self._scripts.read(command, key, first, last, "COUNT", str(most))
        return [(position, text.parse_entry(position, fields)) for position, fields in found]

    async def grouped_entries(self, account: Account, before: str, most: int) -> GroupedEntries:
        """Return the newest entries of a root one by one; see `Store`."""
        return ungrouped_entries(await self.latest(account.root, before, most), most)

    async def balances(self, root: str, after: str, most: int) -> BalancePage:
        """Return balances of a root; see `Store`."""
        keys = layout.keys_of(root, "root", "balances", "reservations", "journal", "days")
        page = (after or "0", str(most), self._clock_argument())
        return text.parse_balances(root, await reading(self._scripts.run(BALANCES, keys, *page)))

    async def base(self, root: str) -> Base:
        """Return what stands for the dropped entries of a root; see `Store`."""
        return decode_base(root, await self._scripts.read("HGET", layout.key_of(root, "base"), "base"))

    async def write_base(self, root: str, base: Base) -> None:
        """Replace the base; see `Store`."""
        values = (base.position, str(base.entries), encoded(base))
        await self._writing.of_schema(WRITE_BASE, [layout.key_of(root, "base")], *values)

    async def drop_trimmed(self, root: str, most: int) -> int:
        """Remove the oldest entries that the base stands for; see `Store`."""
        keys = layout.keys_of(root, "base", "journal")
        return int(await self._writing.of_schema(DROP_TRIMMED, keys, str(most)))

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the query_id of an open reservation; see `Store`."""
        key = layout.key_of(account.root, "reservations")
        kept = await self._scripts.read("HGET", key, reservation_id)
        if kept is None:
            return None
        reservation = text.parse_reservation(reservation_id, kept)
        return reservation.query_id if reservation.account == account else None

    async def open_reservations(self, roots: Sequence[str]) -> int:
        """Return how many reservations are open; see `Store`."""
        count = 0
        for first in range(0, len(roots), ROOTS_AT_ONCE):
            names = [layout.keys_of(root, "root", "ends") for root in roots[first : first + ROOTS_AT_ONCE]]
            keys = [key for pair in names for key in pair]
            count += await reading(self._scripts.run(OPEN_RESERVATIONS, keys, self._clock_argument()))
        return count

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
