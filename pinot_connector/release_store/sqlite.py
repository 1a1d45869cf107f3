"""A release store in a SQLite file, for one gateway or application."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pinot_connector.errors import ReleaseStoreFailed
from pinot_connector.release_store.database import Execute, Values
from pinot_connector.release_store.database_store import DatabaseReleaseStore
from pinot_connector.release_store.encryption import StoreKeys
from pinot_connector.release_store.interface import Microseconds
from pinot_connector.release_store.memory import wall_clock
from pinot_connector.release_store.receipts import ReceiptLimits

BUSY_SECONDS = 5.0

_Answer = TypeVar("_Answer")


class SqliteReleaseStore(DatabaseReleaseStore):
    """Keeps releases in a SQLite file, encrypted. What it has confirmed is on the disk.

    Args:
        file: the path, created if there is none.
        keys: the keys of the store; `read_store_keys` reads them.
        receipts: how many receipts are kept, for a program that adds some. None: the defaults, and opening the store
            removes none, which another program keeps.
        clock: returns microseconds since 1970 (UTC); decides only which receipts are kept.

    Raises:
        ReleaseStoreFailed: the file cannot be used, is no release store, or was written with keys that are not given.
    """

    def __init__(
        self,
        file: Path | str,
        keys: StoreKeys,
        receipts: ReceiptLimits | None = None,
        clock: Callable[[], Microseconds] = wall_clock,
    ) -> None:
        super().__init__(SqliteDatabase(Path(file)), keys, receipts, clock)


class SqliteDatabase:
    """A SQLite file, used by one thread. It is refused as soon as another file has its name."""

    threads = 1
    bytes_type = "BLOB"
    id_type = "INTEGER PRIMARY KEY AUTOINCREMENT"

    def __init__(self, file: Path) -> None:
        self._file = file
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def has_tables(self, execute: Execute) -> bool:
        """Returns whether the file is a release store; False: it is empty."""
        tables = {name for (name,) in execute("SELECT name FROM sqlite_master", {})}
        if tables and "gris_release_store_schema" not in tables:
            raise ReleaseStoreFailed(f"{self._file} is not a release store")
        return bool(tables)

    def lock(self, execute: Execute) -> None:
        """Does nothing: every transaction begins with SQLite's lock."""

    def run(self, work: Callable[[Execute], _Answer]) -> _Answer:
        """Returns what the work returns in a transaction."""
        try:
            self.check()
            connection = self._connected()
            connection.execute("BEGIN IMMEDIATE")
            try:
                answer = work(lambda statement, values: _executed(connection, statement, values))
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
        except (sqlite3.Error, OSError) as error:
            # SQLite's own texts hold no values.
            problem = getattr(error, "strerror", None) or str(error)
        else:
            return answer
        raise ReleaseStoreFailed(f"the release store cannot be used: {problem}")

    def check(self) -> None:
        """Raises if the file was removed, or another one has its name."""
        if self._identity is None:
            return
        try:
            found = self._file.stat()
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._identity:
            raise ReleaseStoreFailed("the file of the release store was replaced while it was in use")

    def size_bytes(self) -> int:
        """Returns how many bytes of the file are in use; deleted pages are reused."""

        def measured(execute: Execute) -> int:
            pages, free, size = (
                execute(f"PRAGMA {name}", {})[0][0] for name in ("page_count", "freelist_count", "page_size")
            )
            return int((pages - free) * size)

        return self.run(measured)

    def close(self) -> None:
        """Closes the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            with suppress(FileExistsError):
                # Only this user may ever read it.
                os.close(os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            connection = sqlite3.connect(self._file, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                # Deleted records are overwritten, and what was committed is on the disk.
                for pragma in ("secure_delete = ON", "journal_mode = WAL", "synchronous = FULL"):
                    connection.execute(f"PRAGMA {pragma}")
            except BaseException:
                connection.close()
                raise
            found = self._file.stat()
            self._identity = (found.st_dev, found.st_ino)
            self._connection = connection
        return self._connection


def _executed(connection: sqlite3.Connection, statement: str, values: Values) -> list[tuple[Any, ...]]:
    return connection.execute(statement, values).fetchall()
