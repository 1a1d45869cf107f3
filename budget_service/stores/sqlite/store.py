"""The embedded store: one SQLite file, one process that owns it, many requests in one commit.

A charge that was answered has been forced to the disk (WAL, synchronous=FULL), so it survives a crash of the process,
of the machine, and of the power as far as the disk keeps its word. The file belongs to one process at a time: SQLite's
own exclusive lock is held from `open` to `close`, and the system frees it when the process dies.

Requests are decided on the event loop, where it costs least, and a second thread waits for the disk. Meanwhile the next
requests gather, and are decided and committed together when it is done or a little later: a lone one waits for nobody.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from budget_service.ledger.act import Act
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import Answer
from budget_service.stores.interface import (
    Clock,
    Committed,
    OutcomeUnknownError,
    StoreError,
    StoreUnavailableError,
    StoreUnusableError,
    system_clock,
    uncounted,
)
from budget_service.stores.ledger_engine import LedgerEngine
from budget_service.stores.rollback_guard import (
    Position,
    RollbackGuard,
    load_position,
    remove_leftovers,
    require_matches,
    save_position,
)
from budget_service.stores.row_map import Found, Range, RowKey, Writes
from budget_service.stores.row_store import RowStore
from budget_service.stores.row_transactions import RowTransactions
from budget_service.stores.sqlite import rows
from budget_service.stores.sqlite.backup import Backup
from budget_service.stores.sqlite.disk import HANGS, Disk
from budget_service.stores.sqlite.errors import translated
from budget_service.stores.sqlite.file import check_settings, connect, secure
from budget_service.stores.sqlite.files_in_use import FilesInUse
from budget_service.tuning import DEFAULTS, Tuning

VOLATILE = Path(":memory:")
MARK_SUFFIX = ".mark"
# SQLite keeps the last number that it gave away, also of an entry that was trimmed.
COUNTED = "SELECT ledger_id, count + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'journal'), 0) FROM ledger"
# Deciding so many takes about 10 ms, during which the event loop does nothing else.
MAX_BATCH = 128

Result = TypeVar("Result")


class SqliteStore(RowStore):
    """A Store in one file.

    Work that has begun is finished even if its caller is cancelled; a request that still waits then has no effect.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: Clock,
        path: Path | None,
        committed: Committed,
        tuning: Tuning,
    ) -> None:
        self._connection = connection
        self._path = path
        self._files = None if path is None else FilesInUse(path)
        self._clock = clock
        self._committer = _started_thread()
        # The holder of this lock may use the connection.
        self._turn = asyncio.Lock()
        self._backing_up = asyncio.Lock()
        self._backup: asyncio.Task[Path] | None = None
        transactions = RowTransactions(self, tuning.expired_at_once, tuning.kept_balances)
        self._engine = LedgerEngine(transactions, by_root=False, most=MAX_BATCH, committed=committed)
        self._disk = Disk(lambda: self._engine.give_up(HANGS), tuning)

    @staticmethod
    def open(
        path: Path,
        clock: Clock = system_clock,
        *,
        allow_volatile: bool = False,
        committed: Committed = uncounted,
        tuning: Tuning = DEFAULTS,
    ) -> SqliteStore:
        """Open a ledger, making it if the file does not exist. Raises StoreUnusableError."""
        if path != VOLATILE:
            secure(path)
        elif not allow_volatile:
            raise StoreUnusableError("a ledger in memory forgets budgets when it stops: name a file")
        connection = connect(path, tuning.start_check_seconds)
        if path == VOLATILE:
            return SqliteStore(connection, clock, None, committed, tuning)
        try:
            last = _marked(connection, mark_path(path))
            store = SqliteStore(connection, clock, path, committed, tuning)
            store._guard = RollbackGuard(mark_path(path), store._count, last, store._aside)
            return store
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error | OSError):
                raise StoreUnusableError(f"{path}: {error}") from error
            raise

    async def apply(self, act: Act, limits: AppliedLimits) -> Answer:
        """Decide a request and commit the change, together with others; see `Store`."""
        self._disk.require_responsive()
        return await super().apply(act, limits)

    @asynccontextmanager
    async def begin(self, _roots: Collection[str]) -> AsyncIterator[SqliteTransaction]:
        """Begin a transaction; see `RowMap`."""
        async with self._turn:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield SqliteTransaction(self._connection, self._clock, self._commit)
            except sqlite3.Error as error:
                raise translated(error) from error
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[SqliteTransaction]:
        """Read while nobody writes; see `RowMap`."""
        async with self._turn:
            try:
                yield SqliteTransaction(self._connection, self._clock, self._commit)
            except sqlite3.Error as error:
                raise translated(error) from error

    async def roots(self) -> list[str]:
        """Return every root that was ever used; see `Store`."""
        return await self._reading(lambda: rows.root_names(self._connection))

    async def entries(
        self, root: str, after: int, until: int, at_most: int, *, newest: bool = False
    ) -> list[tuple[int, str]]:
        """Return entries of a journal; see `RowStore`."""
        return await self._reading(
            lambda: rows.entries(self._connection, root, after, until, at_most, newest=newest)
        )

    async def drop_trimmed(self, root: str, most: int) -> int:
        """Remove the oldest entries that the base stands for; see `Store`."""
        return await self._apart(lambda: rows.drop_trimmed(self._connection, root, most))

    async def back_up(self, folder: Path) -> Path:
        """Copy the ledger into a new file of a folder; see `Store`."""
        async with self._backing_up:
            # The copy has what was charged before, and stands where its mark says that it does.
            await self.check()
            backup = Backup(self._connection, self._turn, self._path or VOLATILE)
            self._backup = asyncio.create_task(backup.make(folder, self._clock()))
            return await self._backup

    @staticmethod
    def open_restored(path: Path, clock: Clock = system_clock) -> SqliteStore:
        """Open a ledger that lost charges, regardless of its high-water mark. Raises StoreUnusableError."""
        if not path.exists():
            raise StoreUnusableError(f"{path}: there is no ledger to confirm")
        return SqliteStore(connect(path), clock, path, uncounted, DEFAULTS)

    async def check(self) -> None:
        """Return if the file is the same and commits are forced to it, after updating the high-water mark."""
        if self._files is None:
            return
        try:
            # With the turn, so that nothing is being committed meanwhile.
            await self._reading(self._files.check)
        except StoreUnusableError:
            if self._guard is not None:
                with suppress(StoreError):
                    await self._guard.leave()
            raise
        await self._reading(self._check_settings)
        if self._guard is not None:
            await self._guard.check()

    async def _count(self, step: int) -> Position:
        if not step:
            return await self._reading(lambda: counted(self._connection))
        return await self._apart(lambda: counted(self._connection, step))

    async def _aside(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function on the thread that there is: a machine may have none left."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._committer, work, *arguments)

    def _check_settings(self) -> None:
        assert self._path is not None, "it has files"  # noqa: S101 - for the type checker
        check_settings(self._connection, self._path)

    async def ping(self) -> None:
        """Return at once, for the store is this process, or when a disk that is too slow has answered; see `Store`."""
        await self._disk.heartbeat()

    async def close(self) -> None:
        """Finish what was begun and free the file."""
        if self._backup is not None:
            self._backup.cancel()
            await asyncio.wait((self._backup,))
        await self._engine.finish()
        with suppress(StoreError):
            await self.check()
        await self._finish()
        async with self._turn:
            self._connection.close()
        self._committer.shutdown()

    async def _reading(self, work: Callable[[], Result]) -> Result:
        async with self._turn:
            try:
                return work()
            except sqlite3.Error as error:
                raise translated(error) from error

    async def _apart(self, work: Callable[[], Result]) -> Result:
        """Do something that takes its time on the other thread, to its end even if the caller is cancelled."""

        async def with_the_turn() -> Result:
            async with self._turn:
                self._disk.begins()
                try:
                    return await self._aside(self._written, work)
                finally:
                    self._disk.ends()

        try:
            return await asyncio.shield(with_the_turn())
        except sqlite3.Error as error:
            raise translated(error) from error

    def _written(self, work: Callable[[], Result]) -> Result:
        """Commit something, on the other thread, if the file is the one that was opened, before and after."""
        if self._files is None:
            return work()
        self._files.require_same()
        result = work()
        self._files.committed()
        return result

    async def _commit(self, writes: Writes | None, committed: Callable[[], None]) -> None:
        if writes is not None:
            rows.write(self._connection, writes)
        loop = asyncio.get_running_loop()
        finished: asyncio.Future[Exception | None] = loop.create_future()

        def finish(failure: Exception | None) -> None:
            self._disk.ends()
            if failure is None:
                committed()
            finished.set_result(failure)

        self._disk.begins()
        self._committer.submit(lambda: loop.call_soon_threadsafe(finish, self._wait_for_the_disk()))
        failure = await finished
        if failure is not None:
            # A commit that failed may still be found on the disk after a crash.
            raise OutcomeUnknownError(str(failure)) from failure

    def _wait_for_the_disk(self) -> Exception | None:
        """Commit, on the other thread; return why it failed, if it did."""
        try:
            self._written(lambda: self._connection.execute("COMMIT"))
        except Exception as error:
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            return error
        return None


class SqliteTransaction:
    """A transaction of the file's only writer, so that nobody is ever quicker; see `RowTransaction`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: Clock,
        commit: Callable[[Writes | None, Callable[[], None]], Awaitable[None]],
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._commit = commit

    async def read(self, keys: Collection[RowKey], ranges: Sequence[Range] = ()) -> Found:
        """Return rows; see `RowTransaction`."""
        return Found(self._clock(), rows.read(self._connection, keys, ranges))

    async def commit(self, writes: Writes | None, committed: Callable[[], None]) -> bool:
        """Write all or nothing; see `RowTransaction`."""
        await self._commit(writes, committed)
        return True


def mark_path(ledger: Path) -> Path:
    """Return the path of a ledger's high-water mark."""
    return ledger.with_name(ledger.name + MARK_SUFFIX)


def counted(connection: sqlite3.Connection, step: int = 0) -> Position:
    """Count on a ledger, and return its name and count, to which each journal entry adds one by itself."""
    if step:
        connection.execute("UPDATE ledger SET count = count + ?", (step,))
    return Position(*connection.execute(COUNTED).fetchone())


def _marked(connection: sqlite3.Connection, mark: Path) -> Position:
    """Return where a ledger stands, after marking it if it matches its mark. Raises StoreUnusableError."""
    remove_leftovers(mark)
    found = counted(connection)
    require_matches(mark, load_position(mark), found)
    save_position(mark, found)
    if not found.count:
        # It had no mark yet. From now on it has one, and is not begun without it.
        found = counted(connection, 1)
        save_position(mark, found)
    return found


def _started_thread() -> ThreadPoolExecutor:
    """Return an executor whose thread runs already: one that cannot be started later would leave a transaction open."""
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
    try:
        executor.submit(int)
    except RuntimeError as error:
        raise StoreUnavailableError(str(error)) from error
    return executor
