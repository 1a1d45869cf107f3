"""The PostgreSQL store: it keeps the ledger's rows and locks one root account at a time; the service decides.

A charge that was answered is on PostgreSQL's disk, and on that of its synchronous standbys if it has any. All changes
of one root account come one after the other, since each transaction locks the root's row; so those that wait for their
turn here go together, as one transaction: the disk is waited for once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from psycopg import sql

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.base import Base
from budget_service.ledger.values import Account, LevelLimit
from budget_service.ledger.windows import Microseconds
from budget_service.stores.interface import (
    Clock,
    Committed,
    OutcomeUnknownError,
    StoreUnavailableError,
    StoreUnusableError,
    uncounted,
)
from budget_service.stores.ledger_engine import LedgerEngine
from budget_service.stores.postgres.address import parse_address
from budget_service.stores.postgres.connections import MAX_CONNECTIONS, Connections, Session
from budget_service.stores.postgres.rows import PostgresReading, PostgresTransaction
from budget_service.stores.postgres.schema import install, require_promises, require_synchronous
from budget_service.stores.rollback_guard import Position
from budget_service.stores.row_map import Found, Range, RowKey
from budget_service.stores.row_store import RowStore
from budget_service.stores.row_transactions import RowTransactions
from budget_service.tuning import DEFAULTS, Tuning

# All of them are lost together if a connection is.
MAX_TOGETHER = 64

_ROOTS = sql.SQL("SELECT root FROM gris.rows WHERE key = 'roots' ORDER BY root")
_ENTRIES = (
    "SELECT number, text FROM gris.journal WHERE root = %s AND number > %s AND number <= %s ORDER BY number"
)
_OLDEST, _NEWEST = sql.SQL(_ENTRIES + " LIMIT %s"), sql.SQL(_ENTRIES + " DESC LIMIT %s")
_DROP_TRIMMED = sql.SQL(
    """
    WITH dropped AS (
      DELETE FROM gris.journal WHERE root = %s AND number IN (
        SELECT number FROM gris.journal WHERE root = %s AND number <= (
          SELECT (text::json ->> 'entries')::bigint FROM gris.rows WHERE root = %s AND key = 'bases'
        ) ORDER BY number LIMIT %s
      ) RETURNING number
    )
    SELECT count(*) FROM dropped
    """
)
_COUNT = sql.SQL("SELECT ledger_id, count FROM gris.ledger")
_COUNT_ON = sql.SQL("UPDATE gris.ledger SET count = count + %s RETURNING ledger_id, count")
_PING = sql.SQL("SELECT 1")
# Changes nothing, and waits for the locks of a charge: while somebody has locked a table, nothing can be charged.
_WRITE_NOTHING = sql.SQL(
    """
    WITH no_row AS (UPDATE gris.rows SET text = text WHERE false RETURNING root),
    no_entry AS (INSERT INTO gris.journal SELECT * FROM gris.journal WHERE false RETURNING root)
    SELECT root FROM no_row UNION ALL SELECT root FROM no_entry
    """
)

Result = TypeVar("Result")


class PostgresStore(RowStore):
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
        transactions = RowTransactions(self, tuning.expired_at_once)
        self._engine = LedgerEngine(transactions, by_root=True, most=MAX_TOGETHER, committed=committed)
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

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[PostgresReading]:
        """Begin a transaction that only reads; see `RowMap`."""
        async with self._session() as session:
            begun = PostgresReading(session, self._now())
            yield begun
            await begun.end()

    @asynccontextmanager
    async def begin(self, roots: Collection[str]) -> AsyncIterator[PostgresTransaction]:
        """Begin a transaction on one root; see `RowMap`.

        A session that is left within a transaction is closed, and PostgreSQL rolls back.
        """
        begun: PostgresTransaction | None = None
        (root,) = roots
        try:
            async with self._session() as session:
                # For all round trips together: nobody waits twice as long.
                with session.given(self._tuning.postgres_answer_seconds):
                    begun = PostgresTransaction(session, root, self._now())
                    yield begun
        except OutcomeUnknownError as error:
            if begun is not None and begun.may_have_an_effect:
                raise
            # Only the lock was asked for, and it goes with the session.
            raise StoreUnavailableError(str(error)) from None

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> AccountStatement:
        """Return the state of an account now; see `Store`."""
        return await self._to_the_end(super().read(account, levels))

    async def roots(self) -> list[str]:
        """Return every root that was ever used; see `Store`."""
        return [root for (root,) in await self._reading(_ROOTS)]

    async def entries(
        self, root: str, after: int, until: int, at_most: int, *, newest: bool = False
    ) -> list[tuple[int, str]]:
        """Return entries of a journal; see `RowStore`."""
        return await self._reading(_NEWEST if newest else _OLDEST, root, after, until, at_most)

    async def write_base(self, root: str, base: Base) -> None:
        """Replace the base; see `Store`."""
        await self._to_the_end(super().write_base(root, base))

    async def drop_trimmed(self, root: str, most: int) -> int:
        """Remove the oldest entries that the base stands for; see `Store`."""
        ((dropped,),) = await self._reading(_DROP_TRIMMED, root, root, root, most)
        return int(dropped)

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
                await session.rows(_WRITE_NOTHING)
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

    async def _read(self, keys: Collection[RowKey], ranges: Sequence[Range] = ()) -> Found:
        return await self._to_the_end(super()._read(keys, ranges))

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
