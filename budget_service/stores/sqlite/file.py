"""The file of the SQLite store: who may own it, what it must look like, and its schema; `stores.rows` has the keys."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

from budget_service.stores.interface import StoreUnusableError, require_schema
from budget_service.stores.rows import Decoders
from budget_service.stores.sqlite.integrity import require_sound
from budget_service.tuning import DEFAULTS

SCHEMA_VERSION = 20
CACHE_KIBIBYTES = 192 * 1024
# Some 40 MB. SQLite's own thousand pages hold a few commits of charges on many accounts, and to move them into the file
# takes two more turns of the disk, for which all callers wait.
LOG_PAGES = 10_000

SCHEMA = (
    # Keys come in any order. The rows themselves are added at the end, so that each touches one page of keys only:
    # every page that a commit touches is written to the disk.
    "CREATE TABLE rows (root TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL, keep_until INTEGER, "
    "PRIMARY KEY (root, key))",
    "CREATE INDEX rows_by_age ON rows (root, keep_until) WHERE keep_until IS NOT NULL",
    "CREATE UNIQUE INDEX roots ON rows (root) WHERE key = 'roots'",
    # One row: the ledger's own name and how often it was counted on, which its high-water mark repeats.
    "CREATE TABLE ledger (ledger_id TEXT NOT NULL, count INTEGER NOT NULL)",
    "INSERT INTO ledger VALUES (lower(hex(randomblob(16))), 0)",
    "CREATE TABLE journal (entry INTEGER PRIMARY KEY AUTOINCREMENT, root TEXT NOT NULL, number INTEGER NOT NULL, "
    "text TEXT NOT NULL, UNIQUE (root, number))",
    """CREATE TRIGGER journal_is_not_changed BEFORE UPDATE ON journal
        BEGIN SELECT RAISE(ABORT, 'no entry of the journal can be changed'); END""",
    """CREATE TRIGGER journal_is_not_shortened BEFORE DELETE ON journal WHEN OLD.number > coalesce((
            SELECT json_extract(text, '$.entries') FROM rows WHERE root = OLD.root AND key = 'bases'), 0)
        BEGIN SELECT RAISE(ABORT, 'only a trim drops entries of the journal'); END""",
    """CREATE VIEW balances AS SELECT root, substr(key, 10) AS level,
        json_extract(text, '$[0][0]') AS window_start, json_extract(text, '$[0][1]') AS window_end,
        json_extract(text, '$[3][0]') AS spent_information, json_extract(text, '$[3][1]') AS spent_calls,
        json_extract(text, '$[4][0]') AS reserved_information, json_extract(text, '$[4][1]') AS reserved_calls
        FROM rows WHERE key > 'balances' || char(9) AND key < 'balances' || char(10)""",
)

SYNCHRONOUS_FULL = 2


def secure(path: Path) -> None:
    """Make the file so that only its owner may read and write it, or see that the one that is there is safe.

    SQLite gives its other files (-wal, -shm) the same mode.
    """
    try:
        # A file that is there is not opened: closing it would free the lock of another owner in this process.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        _require_private(path)
    except OSError as error:
        raise StoreUnusableError(f"{path}: {error.strerror}") from None


def _require_private(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise StoreUnusableError(f"{path}: {error.strerror}") from None
    if mode & stat.S_IWOTH:
        raise StoreUnusableError(f"{path}: anybody may write this ledger: check it, then `chmod o-w` it")


def currencies_in(path: Path) -> frozenset[str]:
    """Return the currencies in which roots of a ledger count, or are about to, as it was when its owner last stopped.

    For another process than its owner. It takes no lock and writes nothing; of a file that is no ledger, or is being
    written, it returns none.
    """
    if not path.is_file():
        return frozenset()
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            found = connection.execute("SELECT text FROM rows WHERE key = 'roots'").fetchall()
        currencies = [Decoders.root.decode(text).record.currency for (text,) in found]
    except (sqlite3.Error, ValueError):
        return frozenset()
    return frozenset(id_ for each in currencies for id_ in (each.unit_id, each.next_unit_id) if id_)


def connect(path: Path, most_check_seconds: float = DEFAULTS.start_check_seconds) -> sqlite3.Connection:
    """Open a sound ledger as its only owner. Raises StoreUnusableError.

    Whether it is sound is looked at for about `most_check_seconds`.
    """
    try:
        # Two threads take turns with it: that of the event loop, and one that only commits.
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise StoreUnusableError(f"{path}: {error}") from error
    try:
        _take(connection)
        require_sound(connection, path, most_check_seconds)
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


def check_settings(connection: sqlite3.Connection, path: Path) -> None:
    """Raise StoreUnusableError unless every commit is forced to the disk."""
    (journal_mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    if (journal_mode, synchronous) != ("wal", SYNCHRONOUS_FULL):
        raise StoreUnusableError(f"{path}: commits are not forced to the disk")


def _take(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # Else copies of pages, to take a statement back with, are written into a file in another folder.
    connection.execute("PRAGMA temp_store = MEMORY")
    # The balances of a million accounts. SQLite's own two megabytes hold those of a few thousand; beyond, each charge
    # would read pages.
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIBIBYTES}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    # The lock is taken by the first transaction and then kept.
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("COMMIT")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version:
        require_schema(str(path), version, SCHEMA_VERSION)
        return
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")
