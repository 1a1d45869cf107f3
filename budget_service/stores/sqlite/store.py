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
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TypeAlias, TypeVar

from budget_service.internal_errors import log_internal_error
from budget_service.ledger.limits import AppliedLimits, LimitsChangedError, StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.reading import Statement, statement
from budget_service.ledger.requests import Request
from budget_service.ledger.rules import decide
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, LevelLimit
from budget_service.ledger.verification import Checkpoint
from budget_service.stores.group_commit import GroupCommit
from budget_service.stores.interface import (
    NOT_BEGUN,
    OUTCOME_NOT_KNOWN,
    Alike,
    BalancePage,
    Clock,
    Committed,
    OutcomeUnknownError,
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
    StoreUnusableError,
    count,
    system_clock,
    uncounted,
)
from budget_service.stores.mark_file import WHAT_TO_DO
from budget_service.stores.sqlite import audit
from budget_service.stores.sqlite.disk import HANGS, Disk
from budget_service.stores.sqlite.file import check_settings, connect, secure
from budget_service.stores.sqlite.files_in_use import FilesInUse
from budget_service.stores.sqlite.purge import Purge
from budget_service.stores.sqlite.rollback_guard import (
    HighWaterMark,
    check_mark,
    mark_anew,
    mark_path,
    save,
    state_of,
)
from budget_service.stores.sqlite.view import View
from budget_service.tuning import DEFAULTS, Tuning

VOLATILE = Path(":memory:")
# Deciding so many takes about 20 ms, during which the event loop does nothing else.
MAX_BATCH = 256
# What SQLite says of a file that cannot be read, or is not its own.
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# Larger commits make each request hardly cheaper.
LARGE = 36

Result = TypeVar("Result")
# What is asked, and the limits that it is decided by.
Asked: TypeAlias = tuple[Request, AppliedLimits]
Waiting: TypeAlias = tuple["asyncio.Future[Answer]", Asked]


class SqliteStore:
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
        self._committed = committed
        self._path = path
        self._files = None if path is None else FilesInUse(path)
        self._mark: HighWaterMark | None = None
        self._clock = clock
        self._view = View(connection, tuning)
        self._purge = Purge(connection)
        self._committer = _started_thread()
        # The holder of this lock may use the connection.
        self._turn = asyncio.Lock()
        # In the order in which they came.
        self._waiting: dict[asyncio.Future[Answer], Asked] = {}
        self._group_commit = GroupCommit(self._waiting, LARGE)
        self._worker: asyncio.Task[None] | None = None
        self._committing: list[Waiting] = []
        self._disk = Disk(self._give_up, tuning)

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
            check_mark(connection, path)
            return SqliteStore(connection, clock, path, committed, tuning)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error | OSError):
                raise StoreUnusableError(f"{path}: {error}") from error
            raise

    async def apply(self, request: Request, limits: AppliedLimits) -> Answer:
        """Decide a request and commit the change, together with others; see `Store`."""
        self._disk.demand()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting[answer] = (request, limits)
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        try:
            return await answer
        finally:
            # A caller that leaves before its turn leaves nothing behind.
            self._waiting.pop(answer, None)

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> Statement:
        """Return the state of an account now; see `Store`."""
        return await self._reading(lambda: self._read(account, levels))

    async def limits(self, account: Account) -> StoredLimits:
        """Return the stored limits of the levels of an account; see `Store`."""
        return await self._reading(lambda: self._view.limits(account))

    async def all_limits(self, root: str) -> StoredLimits:
        """Return all stored limits of a root; see `Store`."""
        return await self._reading(lambda: self._view.all_limits(root))

    async def roots(self) -> list[str]:
        """Return every root that was ever used; see `Store`."""
        return await self._reading(lambda: audit.load_roots(self._connection))

    async def journal(self, root: str, after: str, until: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return entries of a root; see `Store`."""
        return await self._reading(lambda: audit.load_journal(self._connection, root, after, until, most))

    async def latest(self, root: str, before: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return the newest entries of a root; see `Store`."""
        return await self._reading(lambda: audit.load_latest(self._connection, root, before, most))

    async def alike(self, account: Account, before: str, checkpointed: str, most: int) -> Alike:
        """Return the newest entries of a root, like ones together; see `Store`."""
        return await self._reading(
            lambda: audit.load_alike(self._connection, account, before, checkpointed, most)
        )

    async def balances(self, root: str, after: str, most: int) -> BalancePage:
        """Return balances of a root; see `Store`."""
        return await self._reading(lambda: audit.load_balances(self._connection, root, after, most))

    async def checkpoint(self, root: str) -> Checkpoint:
        """Return the checkpoint of a root's journal; see `Store`."""
        return await self._reading(lambda: audit.load_checkpoint(self._connection, root))

    async def write_checkpoint(self, root: str, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint; see `Store`."""
        await self._apart(lambda: audit.write_checkpoint(self._connection, root, checkpoint))

    async def drop_checkpointed(self, root: str, most: int) -> int:
        """Remove the oldest entries that the checkpoint covers; see `Store`."""
        return await self._apart(lambda: audit.drop_checkpointed(self._connection, root, most))

    async def question_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the query_id of an open reservation; see `Store`."""
        found = await self._reading(lambda: self._view.reservation(account, reservation_id))
        return None if found is None else found.query_id

    async def open_reservations(self, roots: Sequence[str]) -> int:
        """Return how many reservations are open; see `Store`."""
        clock = self._clock()

        def count() -> int:
            nows = {root: self._view.root(root).now(clock) for root in roots}
            return audit.count_open(self._connection, nows)

        return await self._reading(count)

    @staticmethod
    def open_restored(path: Path, clock: Clock = system_clock) -> SqliteStore:
        """Open a ledger that lost charges, regardless of its high-water mark. Raises StoreUnusableError."""
        if not path.exists():
            raise StoreUnusableError(f"{path}: there is no ledger to confirm")
        return SqliteStore(connect(path), clock, path, uncounted, DEFAULTS)

    async def confirm(self) -> None:
        """Write a new high-water mark for a restored ledger. Raises StoreError."""
        async with self._turn:
            self._written(lambda: mark_anew(self._connection, self._path or VOLATILE))

    async def check(self) -> None:
        """Return if the file is the same and commits are forced to it, after updating the high-water mark."""
        try:
            if self._files is not None:
                # With the turn, so that nothing is being committed meanwhile.
                await self._reading(self._files.check)
        except StoreUnusableError:
            # What was put in the place of the ledger is then behind its mark.
            with suppress(StoreError):
                await self._save_mark(await self._reading(self._state))
            raise
        await self._save_mark(await self._reading(self._state))

    async def ping(self) -> None:
        """Return at once, for the store is this process, or when a disk that is too slow has answered; see `Store`."""
        await self._disk.heartbeat()

    async def close(self) -> None:
        """Finish what was begun and free the file."""
        if self._worker is not None:
            await self._worker
        with suppress(StoreError):
            await self.check()
        async with self._turn:
            self._connection.close()
        self._committer.shutdown()

    async def _reading(self, work: Callable[[], Result]) -> Result:
        async with self._turn:
            try:
                found = work()
            except sqlite3.Error as error:
                raise _translated(error) from error
            # Reading one account after the other must not fill the memory.
            self._view.trim()
            return found

    async def _apart(self, work: Callable[[], Result]) -> Result:
        """Do something that takes its time on the other thread, to its end even if the caller is cancelled."""

        async def with_the_turn() -> Result:
            async with self._turn:
                return await asyncio.get_running_loop().run_in_executor(self._committer, self._written, work)

        try:
            return await asyncio.shield(with_the_turn())
        except sqlite3.Error as error:
            raise _translated(error) from error

    def _state(self) -> HighWaterMark | None:
        if self._path is None:
            return None
        check_settings(self._connection, self._path)
        return state_of(self._connection)

    def _written(self, work: Callable[[], Result]) -> Result:
        """Commit something, on the other thread, if the file is the one that was opened, before and after."""
        if self._files is None:
            return work()
        self._files.demand_same()
        result = work()
        self._files.committed()
        return result

    async def _save_mark(self, state: HighWaterMark | None) -> None:
        if self._path is None or state is None or (state == self._mark and mark_path(self._path).exists()):
            return
        if self._mark is not None and state.last_entry < self._mark.last_entry:
            raise StoreUnusableError(f"{self._path} was set back while it was used: {WHAT_TO_DO}")
        await asyncio.get_running_loop().run_in_executor(self._committer, save, self._path, state)
        self._mark = state

    def _read(self, account: Account, levels: tuple[LevelLimit, ...]) -> Statement:
        root = self._view.root(account.root)
        now = root.now(self._clock())
        return statement(self._view.reading(root, account, levels, now), levels, now)

    async def _work(self) -> None:
        batch: list[Waiting] = []
        try:
            while self._waiting:
                await self._group_commit.gather(len(batch))
                async with self._turn:
                    batch = self._take()
                    if batch:
                        await self._serve(batch)
        except Exception as error:
            log_internal_error(error)
        finally:
            self._worker = None
            # Only an internal error leaves requests here: those being decided, and those still waiting.
            _resolve(batch, [OutcomeUnknownError(OUTCOME_NOT_KNOWN) for _ in batch])
            self._refuse_waiting(NOT_BEGUN)

    def _take(self) -> list[Waiting]:
        """Return those whose turn it is; they wait no more."""
        batch = list(islice(self._waiting.items(), MAX_BATCH))
        for answer, _ in batch:
            del self._waiting[answer]
        return batch

    async def _serve(self, batch: list[Waiting]) -> None:
        try:
            results = self._decide(batch)
        except Exception as error:
            if len(batch) == 1:
                _resolve(batch, [_translated(error)])
                return
            # One request is at fault, or the file is: each gets its own error.
            for each in batch:
                await self._serve([each])
            return
        loop = asyncio.get_running_loop()
        finished: asyncio.Future[bool] = loop.create_future()
        began = perf_counter()

        def commit() -> None:
            # The callers get their answers in the same turn of the loop.
            loop.call_soon_threadsafe(self._finish, batch, results, self._commit(), finished)

        self._committing = batch
        self._disk.begins()
        self._committer.submit(commit)
        if await finished:
            count(self._committed, len(batch), perf_counter() - began)

    def _finish(
        self,
        batch: list[Waiting],
        results: list[Answer | Exception],
        failure: Exception | None,
        finished: asyncio.Future[bool],
    ) -> None:
        if failure is not None:
            self._view.forget()
            # A commit that failed may still be found on the disk after a crash.
            results = [OutcomeUnknownError(str(failure)) for _ in batch]
        self._disk.ends()
        self._committing = []
        _resolve(batch, results)
        finished.set_result(failure is None)

    def _give_up(self) -> None:
        """Fail all requests because the disk does not answer. Those that still wait have had no effect."""
        _resolve(self._committing, [OutcomeUnknownError(HANGS) for _ in self._committing])
        self._refuse_waiting(HANGS)

    def _refuse_waiting(self, reason: str) -> None:
        behind = list(self._waiting.items())
        self._waiting.clear()
        _resolve(behind, [StoreUnavailableError(reason) for _ in behind])

    def _decide(self, batch: list[Waiting]) -> list[Answer | Exception]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            now = self._clock()
            if len(batch) > 1:
                self._view.expect([asked for _, asked in batch])
            results = [self._decide_one(*asked) for _, asked in batch]
            self._view.flush()
            self._purge.continue_purge(now, len(batch))
        except BaseException:
            self._view.forget()
            self._connection.execute("ROLLBACK")
            raise
        return results

    def _decide_one(self, request: Request, limits: AppliedLimits) -> Answer | Exception:
        root = self._view.root(request.account.root)
        clock = self._clock()
        now = root.now(clock)
        try:
            snapshot = self._view.snapshot(root, request, limits, now, clock)
            decision = decide(snapshot, request, limits, now)
        except LimitsChangedError as error:
            return error
        if decision.change is not None:
            self._view.note(request, limits, decision.change)
        return decision.answer

    def _commit(self) -> Exception | None:
        """Wait for the disk, on the other thread; return why the commit failed, if it did."""
        try:
            self._written(lambda: self._connection.execute("COMMIT"))
        except Exception as error:
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            return error
        return None


def _started_thread() -> ThreadPoolExecutor:
    """Return an executor whose thread runs already: one that cannot be started later would leave a transaction open."""
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
    try:
        executor.submit(int)
    except RuntimeError as error:
        raise StoreUnavailableError(str(error)) from error
    return executor


def _translated(error: Exception) -> Exception:
    """Return what a failure before the commit means; nothing was changed."""
    is_fault_of_this_program = isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError)
    if isinstance(error, sqlite3.DatabaseError) and not is_fault_of_this_program:
        is_damage = getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE
        return StoreDamagedError("", "", str(error)) if is_damage else StoreUnavailableError(str(error))
    return error


def _resolve(batch: Iterable[Waiting], results: Iterable[Answer | Exception]) -> None:
    for (answer, _), result in zip(batch, results, strict=True):
        # A caller that was cancelled waits no more.
        if answer.done():
            continue
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)
