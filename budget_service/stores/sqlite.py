"""The embedded store: one SQLite file, one process that owns it, one thread that writes it.

A charge that was answered has been forced to the disk (WAL, synchronous=FULL), so it survives a crash of the process,
of the machine, and of the power as far as the disk keeps its word. The file belongs to one process at a time: SQLite's
own exclusive lock is held from `open` to `close`, and the system frees it when the process dies.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sqlite3
import stat
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from budget_service.ledger.limits import StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.reading import Statement, statement
from budget_service.ledger.requests import Request
from budget_service.ledger.rules import decide
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, LevelLimit
from budget_service.stores import sqlite_audit as audit
from budget_service.stores import sqlite_rows as rows
from budget_service.stores.interface import (
    BalancePage,
    Clock,
    OutcomeUnknownError,
    StoreUnavailableError,
    StoreUnusableError,
    system_clock,
)

VOLATILE = Path(":memory:")

Result = TypeVar("Result")


class SqliteStore:
    """A Store in one file. Every request is one transaction on a thread of its own, so the event loop never waits.

    Work that has begun is finished even if its caller is cancelled.
    """

    def __init__(self, connection: sqlite3.Connection, writer: ThreadPoolExecutor, clock: Clock) -> None:
        self._connection = connection
        self._writer = writer
        self._clock = clock

    @staticmethod
    def open(path: Path, clock: Clock = system_clock, *, allow_volatile: bool = False) -> SqliteStore:
        """Open a ledger, making it if the file does not exist. Raises StoreUnusableError."""
        if path != VOLATILE:
            _secure(path)
        elif not allow_volatile:
            raise StoreUnusableError("a ledger in memory forgets budgets when it stops: name a file")
        writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        try:
            connection = writer.submit(_connect, path).result()
        except BaseException:
            writer.shutdown()
            raise
        return SqliteStore(connection, writer, clock)

    async def apply(self, request: Request) -> Answer:
        """Decide a request and write the change in one transaction; see `Store`."""
        return await self._run(lambda: self._apply(request))

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> Statement:
        """Return the state of an account now; see `Store`."""
        return await self._run(lambda: self._read(account, levels))

    async def limits(self, account: Account) -> StoredLimits:
        """Return the limits that are set on the levels of an account; see `Store`."""
        return await self._run(lambda: rows.load_limits(self._connection, account))

    async def roots(self) -> list[str]:
        """Return every root that was ever used; see `Store`."""
        return await self._run(lambda: audit.load_roots(self._connection))

    async def journal(self, root: str, after: str, until: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return entries of a root; see `Store`."""
        return await self._run(lambda: audit.load_journal(self._connection, root, after, until, most))

    async def balances(self, root: str, after: str, most: int) -> BalancePage:
        """Return balances of a root; see `Store`."""
        return await self._run(lambda: audit.load_balances(self._connection, root, after, most))

    async def question_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the query_id of an open reservation; see `Store`."""
        return await self._run(lambda: self._question_of(account, reservation_id))

    async def check(self) -> None:
        """Return if the file can be read."""
        await self._run(lambda: self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone())

    async def close(self) -> None:
        """Finish what was begun and free the file."""
        await asyncio.get_running_loop().run_in_executor(self._writer, self._connection.close)
        self._writer.shutdown()

    async def _run(self, work: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._writer, work)
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            # A fault of this program, not of the file.
            raise
        except sqlite3.DatabaseError as error:
            raise StoreUnavailableError(str(error)) from error

    def _apply(self, request: Request) -> Answer:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            answer = self._decide(request)
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        _commit(connection)
        return answer

    def _decide(self, request: Request) -> Answer:
        root = rows.load_root(self._connection, request.account.root)
        now = root.now(self._clock())
        decision = decide(rows.load_for_request(self._connection, root, request, now), request, now)
        if decision.change is not None:
            rows.write_change(self._connection, request, decision.change)
        return decision.answer

    def _read(self, account: Account, levels: tuple[LevelLimit, ...]) -> Statement:
        root = rows.load_root(self._connection, account.root)
        now = root.now(self._clock())
        return statement(rows.load_for_reading(self._connection, root, account, levels, now), levels, now)

    def _question_of(self, account: Account, reservation_id: str) -> str | None:
        reservation = rows.load_reservation(self._connection, account, reservation_id)
        return None if reservation is None else reservation.query_id


def _commit(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        # A commit that failed may still be found on the disk after a crash.
        raise OutcomeUnknownError(str(error)) from error


def _secure(path: Path) -> None:
    """Make the file so that only its owner may read and write it, or see that the one that is there is safe.

    SQLite gives its own files beside it (-wal, -shm) the same mode.
    """
    try:
        # A file that is there is not opened: closing it would free the lock of another owner in this process.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        _demand_private(path)
    except OSError as error:
        raise StoreUnusableError(f"{path}: {error.strerror}") from None


def _demand_private(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise StoreUnusableError(f"{path}: {error.strerror}") from None
    if mode & stat.S_IWOTH:
        raise StoreUnusableError(f"{path}: anybody may write this ledger: check it, then `chmod o-w` it")


def _connect(path: Path) -> sqlite3.Connection:
    try:
        # The thread check is off because the file is closed by whoever closes the store; only one thread uses it.
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise StoreUnusableError(f"{path}: {error}") from error
    try:
        _take(connection)
        _prepare(connection, path)
    except BaseException as error:
        connection.close()
        if (
            isinstance(error, sqlite3.OperationalError)
            and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
        ):
            raise StoreUnusableError(
                f"{path} is in use: one process owns a ledger, stop the other one first"
            ) from None
        if isinstance(error, sqlite3.Error):
            raise StoreUnusableError(f"{path}: {error}") from error
        raise
    return connection


def _take(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # The lock is taken by the first transaction and then kept.
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("COMMIT")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > rows.SCHEMA_VERSION:
        raise StoreUnusableError(
            f"{path} has schema {version}, newer than this program's {rows.SCHEMA_VERSION}"
        )
    if version == rows.SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    for statement_ in _statements_since(version):
        connection.execute(statement_)
    connection.execute(f"PRAGMA user_version = {rows.SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _statements_since(version: int) -> Iterable[str]:
    if version == 0:
        return rows.SCHEMA
    return itertools.chain.from_iterable(
        rows.MIGRATIONS[each] for each in range(version, rows.SCHEMA_VERSION)
    )
