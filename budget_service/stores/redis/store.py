"""The Redis (or Valkey) store: one script for each operation, with the request id inside it.

A script runs alone and is either run as a whole or not at all, so it is the transaction. What a crash of Redis can lose
is decided by its persistence: `appendonly yes` is demanded, and only `appendfsync always` also outlives the power.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError

from budget_service.ledger.account_statement import AccountStatement, account_statement
from budget_service.ledger.limits import AppliedLimits, LimitsChangedError, StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.requests import Request
from budget_service.ledger.state import HistoryNeededError, JournalEntry
from budget_service.ledger.values import Account, LevelLimit
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import Microseconds
from budget_service.stores.interface import (
    BalancePage,
    Clock,
    Committed,
    GroupedEntries,
    MatchingEntries,
    OutcomeUnknownError,
    StoreUnavailableError,
    StoreUnusableError,
    system_clock,
    uncounted,
    ungrouped_entries,
    unmatched_entries,
)
from budget_service.stores.mark_file import WHAT_TO_DO, Position
from budget_service.stores.redis import arguments, layout
from budget_service.stores.redis import encoding as text
from budget_service.stores.redis.pipeline import NOBODY, PipelinedConnection
from budget_service.stores.redis.replication import LOST, Replication
from budget_service.stores.redis.schema import SCHEMA, SCHEMA_KEY, install, require_schema
from budget_service.stores.redis.scripts import (
    ALL_LIMITS,
    BALANCES,
    CHANGES,
    COUNT,
    DROP_CHECKPOINTED,
    READ,
    STORED_LIMITS,
    WRITE_CHECKPOINT,
    Script,
)
from budget_service.stores.remote_rollback_guard import LOST_COUNT, Count, RollbackGuard
from budget_service.tuning import DEFAULTS, Tuning

# One for the requests, the others for checks and listings.
MAX_CONNECTIONS = 4
CONNECT_TIMEOUT_SECONDS = 1.0
# Two is what a window that ends between guess and script takes.
MAX_GUESSES = 4
# A checkpoint is written in portions, each of them well within this time.
WRITING_SECONDS = 600

UNREADABLE_ADDRESS = (
    "the address of Redis cannot be read: it is redis://USER:PASSWORD@HOST:PORT/DB, the port is a number, and "
    "characters such as # / ? @ : [ ] % in the password are percent-encoded (# is %23)"
)

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


class RedisStore:
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
        self._tuning = tuning
        answer_seconds = tuning.redis_answer_seconds
        self._client = Redis(connection_pool=_pool(address, MAX_CONNECTIONS, answer_seconds))
        # A connection that nothing else waits for.
        self._heartbeat = Redis(connection_pool=_pool(address, 1, answer_seconds))
        self._replication = Replication()
        self._pipeline_pool = _pool(address, 1, answer_seconds, ends_silence=False)
        self._pipeline = PipelinedConnection(
            self._pipeline_pool,
            committed,
            connect_seconds=CONNECT_TIMEOUT_SECONDS,
            answer_seconds=answer_seconds,
            replication=self._replication,
        )
        self._allow_volatile = allow_volatile
        self._guard: RollbackGuard | None = None
        # Whether the loss of charges was recorded in the ledger.
        self._is_disowned = False
        self._clock = clock
        # How far the time of a root was ahead of our clock when a guess of it was wrong.
        self._ahead: dict[str, Microseconds] = {}

    @staticmethod
    def require_readable(address: str) -> None:
        """Return if an address can be read. Raises StoreUnusableError, which shows no part of it."""
        _pool(address, 1, DEFAULTS.redis_answer_seconds)

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
            if mark is not None:
                guard = RollbackGuard(mark, store._count)
                await guard.begin()
                store._guard = guard
        except BaseException:
            await store.close()
            raise
        return store

    async def apply(self, request: Request, limits: AppliedLimits) -> Answer:
        """Decide a request and write the change in one script; see `Store`."""
        if self._replication.lost:
            raise StoreUnavailableError(LOST)
        if self._guard is not None:
            self._guard.charged()
        script, keys = CHANGES[type(request)], layout.request_keys(request, limits)
        guess = self._guess(request.account.root)
        leaving: arguments.Leaving = {}
        attempts = 0
        while attempts < MAX_GUESSES:
            argument = arguments.argument(
                request,
                limits,
                guess,
                self._clock_argument(),
                expired_at_once=self._tuning.expired_at_once,
                leaving=leaving,
            )
            with self._replication.changing():
                kind, answer = await self._change(script, keys, argument, account=request.account)
            if self._replication.lost:
                # This change was made, in a ledger that lacks earlier ones.
                raise OutcomeUnknownError(LOST)
            if kind == "limits":
                raise LimitsChangedError
            if kind == "leaving":
                leaving = arguments.leaving_days(limits, answer)
            elif kind == "clock":
                guess = int(answer)
                self._ahead[request.account.root] = guess - system_clock()
            elif kind != "again":
                return text.parse_answer(request.request_id, kind, answer)
            # Each time more of what has lapsed is ended, which comes to an end by itself.
            attempts += kind != "again"
        raise StoreUnavailableError("the clock of Redis does not stand still")

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> AccountStatement:
        """Return the state of an account now; see `Store`."""
        try:
            return await self._read(account, levels, history=False)
        except HistoryNeededError:
            return await self._read(account, levels, history=True)

    async def _read(
        self, account: Account, levels: tuple[LevelLimit, ...], *, history: bool
    ) -> AccountStatement:
        path, most_due = account.levels, self._tuning.expired_at_once
        arguments_ = (self._clock_argument(), str(most_due), str(int(history)))
        keys = layout.reading_keys(account.root)
        names = (level.text for level in path)
        reply = await self._ask(READ, keys, *arguments_, *names, account=account)
        snapshot, now = text.parse_reading(reply, path, most_due, with_history=history)
        return account_statement(snapshot, account, levels, now)

    async def limits(self, account: Account) -> StoredLimits:
        """Return the stored limits of the levels of an account; see `Store`."""
        levels = [account.level(depth) for depth in range(1, account.depth + 1)]
        keys = layout.limits_keys(account.root)
        version, *texts = await self._ask(
            STORED_LIMITS, keys, *(level.text for level in levels), account=account
        )
        return text.parse_stored_limits(int(version), levels, texts)

    async def all_limits(self, root: str) -> StoredLimits:
        """Return all stored limits of a root; see `Store`."""
        return text.parse_all_limits(*await self._ask(ALL_LIMITS, layout.limits_keys(root)))

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

    async def matching(self, levels: Sequence[Account], after: str, most: int) -> MatchingEntries:
        """Return entries of the root of some levels; see `Store`."""
        return unmatched_entries(await self.journal(levels[0].root, after, "", most), most)

    async def latest(self, root: str, before: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return the newest entries of a root; see `Store`."""
        return await self._entries("XREVRANGE", root, f"({before}" if before else "+", "-", most)

    async def _entries(
        self, command: str, root: str, first: str, last: str, most: int
    ) -> list[tuple[str, JournalEntry]]:
        bounds = (layout.journal_key(root), first, last)
        found = await self._reading(self._pipeline.ask(command, *bounds, "COUNT", str(most)))
        return [(position, text.parse_entry(position, fields)) for position, fields in found]

    async def grouped_entries(
        self, account: Account, before: str, checkpointed: str, most: int
    ) -> GroupedEntries:
        """Return the newest entries of a root one by one; see `Store`."""
        return ungrouped_entries(await self.latest(account.root, before, most), checkpointed, most)

    async def balances(self, root: str, after: str, most: int) -> BalancePage:
        """Return balances of a root; see `Store`."""
        page = (after or "0", str(most), self._clock_argument())
        reply = await self._ask(BALANCES, layout.balances_keys(root), *page)
        return text.parse_balances(reply)

    async def checkpoint(self, root: str, levels: Sequence[Account] | None = None) -> Checkpoint:
        """Return the checkpoint of a root's journal; see `Store`."""
        key = layout.checkpoint_key(root)
        if levels is None:
            return text.parse_checkpoint(root, await self._reading(self._pipeline.ask("HGETALL", key)))
        sums = [f"level:{level.text}" for level in levels]
        names = ["position", "entries", "digest", "currency", "states", *sums]
        kept = await self._reading(self._pipeline.ask("HMGET", key, *names))
        found = [part for pair in zip(names, kept, strict=True) if pair[1] is not None for part in pair]
        return text.parse_checkpoint(root, found)

    async def write_checkpoint(self, root: str, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint; see `Store`."""
        # Another process may be writing one too. What an interrupted write leaves behind expires by itself.
        written = layout.new_checkpoint_key(root, secrets.token_hex(8))
        for fields in text.checkpoint_fields(checkpoint):
            await self._reading(self._pipeline.ask("HSET", written, *fields))
            await self._reading(self._pipeline.ask("EXPIRE", written, str(WRITING_SECONDS)))
        keys = [layout.checkpoint_key(root), written]
        await self._reading(self._change(WRITE_CHECKPOINT, keys, str(checkpoint.entries)))

    async def drop_checkpointed(self, root: str, most: int) -> int:
        """Remove the oldest entries that the checkpoint covers; see `Store`."""
        keys = [layout.checkpoint_key(root), layout.journal_key(root)]
        return int(await self._reading(self._change(DROP_CHECKPOINTED, keys, str(most))))

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the query_id of an open reservation; see `Store`."""
        key = layout.reading_keys(account.root)[2]
        kept = await self._reading(self._pipeline.ask("HGET", key, reservation_id))
        if kept is None:
            return None
        reservation = text.parse_reservation(reservation_id, kept)
        return reservation.query_id if reservation.account == account else None

    async def open_reservations(self, roots: Sequence[str]) -> int:
        """Return how many reservations are open; see `Store`."""
        asked = [
            self._pipeline.ask("ZCOUNT", layout.ends_key(root), f"({self._guess(root)}", "+inf")
            for root in roots
        ]
        return sum(map(int, await self._reading(_all(asked))))

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

    async def confirm(self, mark: Path) -> None:
        """Write a new high-water mark for a restored ledger. Raises StoreError."""
        await RollbackGuard(mark, self._count).confirm()

    async def renew_mark(self, mark: Path, stated: Position) -> None:
        """Write a lost high-water mark anew, if the ledger stands exactly there. Raises StoreError."""
        await RollbackGuard(mark, self._count).renew(stated)

    async def ping(self) -> None:
        """Return as soon as Redis answers, on a connection that nothing else waits for; see `Store`."""
        try:
            await self._heartbeat.ping()
        except (RedisError, OSError) as error:
            raise StoreUnavailableError(str(error)) from error

    async def close(self) -> None:
        """Finish what was sent and close every connection."""
        if self._guard is not None:
            self._guard.end()
        await self._pipeline.close()
        for pool in (self._pipeline_pool, self._heartbeat.connection_pool, self._client.connection_pool):
            await pool.disconnect()

    async def _count(self, step: int) -> Count:
        ledger_id, count = await self._ask(COUNT, [layout.LEDGER_KEY], secrets.token_hex(16), str(step))
        return Count(ledger_id, int(count))

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
            await self._reading(self._pipeline.ask("HSET", layout.LEDGER_KEY, "count", str(LOST_COUNT)))
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

    async def _change(
        self, script: Script, keys: list[str], *values: str | bytes, account: Account = NOBODY
    ) -> Any:
        return await self._run(script, [*keys, SCHEMA_KEY], *values, SCHEMA, account=account)

    async def _run(
        self, script: Script, keys: list[str], *values: str | bytes, account: Account = NOBODY
    ) -> Any:
        parameters = (str(len(keys)), *keys, *values)
        try:
            try:
                return await self._pipeline.ask("EVALSHA", script.digest, *parameters, account=account)
            except NoScriptError:
                # Redis was restarted, or never saw the script; it has run nothing.
                return await self._pipeline.ask("EVAL", script.source, *parameters, account=account)
        except ResponseError as error:
            # An answer that is an error comes before the first write: out of memory, loading, read-only, disk full.
            raise StoreUnavailableError(_safe_text(error)) from error

    async def _ask(self, script: Script, keys: list[str], *values: str, account: Account = NOBODY) -> Any:
        return await self._reading(self._run(script, keys, *values, account=account))

    async def _reading(self, exchange: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await exchange
        except (OutcomeUnknownError, ResponseError) as error:
            # A reading has no outcome that could be unknown.
            raise StoreUnavailableError(_safe_text(error)) from error

    def _guess(self, root: str) -> Microseconds:
        return system_clock() + self._ahead.get(root, 0) if self._clock is None else self._clock()

    def _clock_argument(self) -> str:
        return "" if self._clock is None else str(self._clock())


def _safe_text(error: Exception) -> str:
    # Redis quotes a command that it does not know, and its keys contain account names.
    return str(error).partition(", with args")[0]


async def _all(asked: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    return await asyncio.gather(*asked)


def _pool(
    address: str, connections: int, answer_seconds: float, *, ends_silence: bool = True
) -> BlockingConnectionPool:
    try:
        parts = urlsplit(address)
        if "#" in address or "@" in parts.path + parts.query:
            # The password ends too soon there, and what is left of it would be taken for a host or a port.
            raise StoreUnusableError(UNREADABLE_ADDRESS)
        return BlockingConnectionPool.from_url(
            address,
            max_connections=connections,
            timeout=answer_seconds,
            socket_connect_timeout=CONNECT_TIMEOUT_SECONDS,
            socket_timeout=answer_seconds if ends_silence else None,
            decode_responses=True,
            protocol=2,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError:
        # What the library says quotes the address, and a piece of the password that it took for a port.
        raise StoreUnusableError(UNREADABLE_ADDRESS) from None
