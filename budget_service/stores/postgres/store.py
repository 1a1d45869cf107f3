"""The PostgreSQL store: it keeps the ledger's rows and locks one root account at a time; the service decides.

A charge that was answered is on PostgreSQL's disk, and on that of its synchronous standbys if it has any. All changes
of one root account come one after the other, since each transaction locks the root's row; so those that wait for their
turn here go together, as one transaction: the disk is waited for once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from psycopg import sql

from budget_service.ledger.base import Base
from budget_service.ledger.limits import StoredLimits
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account
from budget_service.ledger.windows import Microseconds
from budget_service.stores.codec import decode_base, encoded
from budget_service.stores.guarded_store import GuardedStore
from budget_service.stores.interface import (
    BalancePage,
    Clock,
    Committed,
    GroupedEntries,
    OutcomeUnknownError,
    StoreUnavailableError,
    StoreUnusableError,
    uncounted,
    ungrouped_entries,
)
from budget_service.stores.ledger_engine import LedgerEngine
from budget_service.stores.mark_file import Position
from budget_service.stores.postgres import audit, transaction
from budget_service.stores.postgres import encoding as text
from budget_service.stores.postgres.address import parse_address
from budget_service.stores.postgres.connections import MAX_CONNECTIONS, Connections, Session
from budget_service.stores.postgres.schema import install, require_promises, require_synchronous
from budget_service.stores.transactions import Loaded, Wanted
from budget_service.tuning import DEFAULTS, Tuning

# All of them are lost together if a connection is.
MAX_TOGETHER = 64

_LIMITS = sql.SQL(
    "SELECT coalesce((SELECT limits_version FROM gris.roots WHERE root = %s), 0), "
    "(SELECT coalesce(json_object_agg(level, limit_text), '{}') FROM gris.stored_limits "
    "WHERE root = %s AND level = ANY(%s::text[])), "
    "(SELECT coalesce(json_agg(level), '[]') FROM gris.closed "
    "WHERE root = %s AND level = ANY(%s::text[]))"
)
_ALL_LIMITS = sql.SQL(
    "SELECT coalesce((SELECT limits_version FROM gris.roots WHERE root = %s), 0), "
    "(SELECT coalesce(json_object_agg(level, limit_text), '{}') FROM gris.stored_limits WHERE root = %s), "
    "(SELECT coalesce(json_agg(level), '[]') FROM gris.closed WHERE root = %s)"
)
_COUNT = sql.SQL("SELECT ledger_id, count FROM gris.ledger")
_COUNT_ON = sql.SQL("UPDATE gris.ledger SET count = count + %s RETURNING ledger_id, count")
_PING = sql.SQL("SELECT 1")
_QUESTION = sql.SQL(
    "SELECT query_id FROM gris.reservations WHERE root = %s AND reservation_id = %s AND account = %s"
)
_OPEN = sql.SQL(
    "SELECT count(*) FROM gris.reservations JOIN gris.roots USING (root) WHERE root = ANY(%s::text[]) "
    "AND expires_at > greatest("
    "coalesce(%s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) + ahead, last_time)"
)

Result = TypeVar("Result")


class PostgresStore(GuardedStore):
    """A Store in PostgreSQL. Nothing that may have had an effect is tried twice behind the caller's back.

    Work that has begun is finished even if its caller is cancelled; a change that still waits for its turn then has no
    effect. `clock` replaces PostgreSQL's own time, for tests.
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
        answer_seconds = tuning.postgres_answer_seconds
        parsed = parse_address(address, tuning)
        self._connections = Connections(parsed, self._prove, MAX_CONNECTIONS, answer_seconds)
        self._heartbeat = Connections(parsed, self._prove, 1, answer_seconds)
        self._allow_volatile = allow_volatile
        self._must_be_synchronous = parsed.must_be_synchronous
        # The highest of any server that was used.
        self._timeline = 0
        self._clock = clock
        self._engine = LedgerEngine(self, by_root=True, most=MAX_TOGETHER, committed=committed)
        self._begun: set[asyncio.Task[Any]] = set()

    @staticmethod
    def require_readable(address: str) -> None:
        """Return if an address can be read. Raises StoreUnusableError, which shows no part of it."""
        parse_address(address)

    @staticmethod
    async def open(
        address: str,
        *,
        allow_volatile: bool = False,
        clock: Clock | None = None,
        mark: Path | None = None,
        committed: Committed = uncounted,
        tuning: Tuning = DEFAULTS,
    ) -> PostgresStore:
        """Connect, check that PostgreSQL keeps what it is given, and make the tables if they are missing.

        The ledger must not be behind its high-water mark in the file `mark`.

        Raises StoreUnavailableError or StoreUnusableError.
        """
        store = PostgresStore(
            address, allow_volatile=allow_volatile, clock=clock, committed=committed, tuning=tuning
        )
        try:
            async with store._connections.session() as session:
                await install(session, tuning)
            await store.ping()
            await store._begin_guard(mark)
        except BaseException:
            await store.close()
            raise
        return store

    async def load(self, wanted: Wanted) -> Loaded:
        """Return what is wanted as it is now; see `Transactions`."""

        async def loaded() -> Loaded:
            async with self._session() as session:
                return await transaction.load(session, wanted, self._now(), self._tuning.expired_at_once)

        return await self._to_the_end(loaded())

    @asynccontextmanager
    async def transaction(self, wanted: Wanted) -> AsyncIterator[transaction.PostgresTransaction]:
        """Lock the root that is wanted and load; see `Transactions`.

        A session that is left within a transaction is closed, and PostgreSQL rolls back.
        """
        begun: transaction.PostgresTransaction | None = None
        try:
            async with self._session() as session:
                # For both round trips together: nobody waits twice as long.
                with session.given(self._tuning.postgres_answer_seconds):
                    begun = await transaction.begin(
                        session, wanted, self._now(), self._tuning.expired_at_once
                    )
                    yield begun
        except OutcomeUnknownError as error:
            if begun is not None and begun.may_have_an_effect:
                raise
            # Only the lock was asked for, and it goes with the session.
            raise StoreUnavailableError(str(error)) from None

    async def limits(self, account: Account) -> StoredLimits:
        """Return the stored limits of the levels of an account; see `Store`."""
        names = [account.level(depth).text for depth in range(1, account.depth + 1)]
        root = account.root
        ((version, limits, closed),) = await self._reading(_LIMITS, root, root, names, root, names)
        return text.parse_limits(version, limits, closed)

    async def all_limits(self, root: str) -> StoredLimits:
        """Return all stored limits of a root; see `Store`."""
        ((version, limits, closed),) = await self._reading(_ALL_LIMITS, root, root, root)
        return text.parse_limits(version, limits, closed)

    async def roots(self) -> list[str]:
        """Return every root that was ever used; see `Store`."""
        return [root for (root,) in await self._reading(audit.ROOTS)]

    async def journal(self, root: str, after: str, until: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return entries of a root; see `Store`."""
        found = await self._reading(audit.JOURNAL, *audit.journal_parameters(root, after, until, most))
        return [(str(number), audit.read_entry(entry)) for number, entry in found]

    async def latest(self, root: str, before: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return the newest entries of a root; see `Store`."""
        found = await self._reading(audit.LATEST, root, int(before) if before else audit.LAST, most)
        return [(str(number), audit.read_entry(entry)) for number, entry in found]

    async def grouped_entries(self, account: Account, before: str, most: int) -> GroupedEntries:
        """Return the newest entries of a root one by one; see `Store`."""
        return ungrouped_entries(await self.latest(account.root, before, most), most)

    async def balances(self, root: str, after: str, most: int) -> BalancePage:
        """Return balances of a root; see `Store`."""
        parameters = audit.balances_parameters(root, after, most, self._now())
        (found,) = await self._reading(audit.BALANCES, *parameters)
        return audit.read_page(found, most)

    async def base(self, root: str) -> Base:
        """Return what stands for the dropped entries of a root; see `Store`."""
        found = await self._reading(audit.BASE, root)
        return decode_base(root, found[0][0] if found else None)

    async def write_base(self, root: str, base: Base) -> None:
        """Replace the base; see `Store`."""
        await self._reading(audit.WRITE_BASE, root, int(base.position), base.entries, encoded(base))

    async def drop_trimmed(self, root: str, most: int) -> int:
        """Remove the oldest entries that the base stands for; see `Store`."""
        ((dropped,),) = await self._reading(audit.DROP_TRIMMED, root, root, root, most)
        return int(dropped)

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the query_id of an open reservation; see `Store`."""
        key = (account.root, text.escaped(reservation_id), account.text)
        found = await self._reading(_QUESTION, *key)
        return text.unescaped(found[0][0]) if found else None

    async def open_reservations(self, roots: Sequence[str]) -> int:
        """Return how many reservations are open; see `Store`."""
        ((count,),) = await self._reading(_OPEN, list(roots), self._now())
        return int(count)

    async def check(self) -> None:
        """Return if PostgreSQL answers, takes writes and keeps what it is given, by what it says of itself."""
        # Cancelled in the middle, psycopg would ask the server to cancel the statement, and wait for that.
        await asyncio.shield(self._begin(self._checked()))

    async def _count(self, step: int) -> Position:
        ((ledger_id, count),) = await self._reading(_COUNT_ON, step) if step else await self._reading(_COUNT)
        return Position(ledger_id, count)

    async def ping(self) -> None:
        """Return as soon as PostgreSQL answers, on a connection that nothing else waits for; see `Store`."""
        try:
            async with self._heartbeat.session() as session:
                await session.rows(_PING)
        except OutcomeUnknownError as error:
            # A start that took it for more than a silent server would end instead of trying again.
            raise StoreUnavailableError(str(error)) from None

    async def close(self) -> None:
        """Finish what was begun and close every connection."""
        await self._finish()
        await asyncio.gather(*self._begun, return_exceptions=True)
        await self._connections.close()
        await self._heartbeat.close()

    async def _checked(self) -> None:
        try:
            async with self._connections.session() as session:
                await self._prove(session)
            # Keeps the heartbeat's connection open: opening one takes longer than a heartbeat may.
            await self.ping()
        except OutcomeUnknownError as error:
            raise StoreUnavailableError(str(error)) from None
        if self._guard is not None:
            await self._guard.check()

    def _begin(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Run work to its end, even if its caller leaves."""
        task = asyncio.create_task(work)
        self._begun.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._begun.discard(task)
        # If the caller has left, nobody else looks at the failure, and asyncio would complain of it.
        if not task.cancelled():
            task.exception()

    async def _rows(self, query: sql.Composed | sql.SQL, *parameters: Any) -> list[Any]:
        async with self._session() as session:
            return await session.rows(query, *parameters)

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Session]:
        try:
            async with self._connections.session() as session:
                yield session
        except StoreUnusableError as error:
            # A new connection found that the server has changed.
            raise StoreUnavailableError(str(error)) from None

    async def _reading(self, query: sql.Composed | sql.SQL, *parameters: Any) -> list[Any]:
        return await self._to_the_end(self._rows(query, *parameters))

    async def _to_the_end(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Read something, or change what the next attempt finds changed. Raises StoreUnavailableError."""
        try:
            # Cancelled in the middle, psycopg would ask the server to cancel the statement, and wait for that.
            return await asyncio.shield(self._begin(work))
        except OutcomeUnknownError as error:
            # Such work has no outcome that must not stay unknown.
            raise StoreUnavailableError(str(error)) from None

    async def _prove(self, session: Session) -> None:
        await require_promises(session, allow_volatile=self._allow_volatile)
        if self._must_be_synchronous:
            timeline = await require_synchronous(session)
            if timeline < self._timeline:
                raise StoreUnusableError("this PostgreSQL was the primary before a fail-over, and is no more")
            self._timeline = timeline

    def _now(self) -> Microseconds | None:
        """Return the time that replaces PostgreSQL's own, if there is one."""
        return None if self._clock is None else self._clock()
