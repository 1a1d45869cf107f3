"""Copies a SQLite ledger while it is used: some pages at a time, and requests have their turn in between.

What is committed meanwhile, SQLite writes into the copy too, because the ledger's only connection also makes it. So the
copy is the ledger as it stands when the last page is copied. It has its name only when it is whole and on the disk.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import tempfile
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from budget_service.ledger.windows import SECOND, Microseconds
from budget_service.stores.interface import BackupFailedError
from budget_service.stores.rollback_guard import FRESH, remove_leftovers

PAGES_AT_ONCE = 64


class Backup:
    """One copy of a ledger.

    Args:
        connection: The ledger's own.
        turn: Its holder may use the connection.
        ledger: The ledger's file.

    Attributes:
        stopped: Set if it is to end before it is whole.
    """

    def __init__(self, connection: sqlite3.Connection, turn: asyncio.Lock, ledger: Path) -> None:
        self._connection = connection
        self._turn = turn
        self._ledger = ledger
        self._has_turn = False
        self.stopped = asyncio.Event()
        self._began = 0.0

    async def make(self, folder: Path, now: Microseconds) -> Path:
        """Copy the ledger into a new file of a folder and return its path; if cancelled, leave nothing behind.

        Raises:
            BackupFailedError: The file cannot be written, or is there already.
        """
        path = folder / f"{self._ledger.name}.{datetime.fromtimestamp(now / SECOND, UTC):%Y%m%dT%H%M%SZ}"
        try:
            fresh = self._begun(folder)
            try:
                await self._copy(fresh)
                await asyncio.to_thread(self._name, fresh, path)
            finally:
                fresh.unlink(missing_ok=True)
        except OSError as error:
            raise BackupFailedError(error.strerror or type(error).__name__) from None
        except sqlite3.Error as error:
            raise BackupFailedError(str(error)) from None
        return path

    def _begun(self, folder: Path) -> Path:
        """Return a new file of this backup alone: ledgers of one name may have the same folder."""
        name = f"{self._ledger.name}.backup"
        remove_leftovers(folder / name)
        descriptor, fresh = tempfile.mkstemp(prefix=f"{name}.", suffix=FRESH, dir=folder)
        os.close(descriptor)
        return Path(fresh)

    async def _copy(self, fresh: Path) -> None:
        loop = asyncio.get_running_loop()
        await self._turn.acquire()
        self._has_turn = True
        copying = loop.run_in_executor(None, self._copy_pages, fresh, loop)
        try:
            await asyncio.shield(copying)
        except asyncio.CancelledError:
            self.stopped.set()
            while not copying.done():
                # The connection is the thread's until it ends, however often this is cancelled.
                with suppress(asyncio.CancelledError, InterruptedError, sqlite3.Error):
                    await asyncio.shield(copying)
            raise
        finally:
            if self._has_turn:
                self._turn.release()

    def _copy_pages(self, fresh: Path, loop: asyncio.AbstractEventLoop) -> None:
        """Copy, on another thread."""

        def after_some(_status: int, _left: int, _all: int) -> None:
            if self.stopped.is_set():
                raise InterruptedError
            asyncio.run_coroutine_threadsafe(self._give_way(), loop).result()

        with closing(sqlite3.connect(fresh, isolation_level=None)) as copy:
            # A copy that is not finished is thrown away, and is forced to the disk as a whole.
            copy.execute("PRAGMA journal_mode = OFF")
            copy.execute("PRAGMA synchronous = OFF")
            self._began = perf_counter()
            self._connection.backup(copy, pages=PAGES_AT_ONCE, progress=after_some)

    async def _give_way(self) -> None:
        """Let others have the connection for as long as it was used."""
        self._turn.release()
        self._has_turn = False
        await self._pause()
        await self._turn.acquire()
        self._has_turn = True
        self._began = perf_counter()

    async def _pause(self) -> None:
        await asyncio.sleep(perf_counter() - self._began)

    def _name(self, fresh: Path, path: Path) -> None:
        """Force the copy to the disk and give it its name, unless a file has that."""
        descriptor = os.open(fresh, os.O_RDONLY)
        try:
            os.fchmod(descriptor, stat.S_IMODE(self._ledger.stat().st_mode))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.link(fresh, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
