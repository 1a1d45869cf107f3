"""The file of the SQLite store: who may own it, what it must look like, and its schema.

Accounts and levels are written as their path joined by slashes, times in microseconds.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

from budget_service.stores.interface import StoreUnusableError, require_schema
from budget_service.stores.sqlite.integrity import require_sound
from budget_service.tuning import DEFAULTS

SCHEMA_VERSION = 18
CACHE_KIBIBYTES = 192 * 1024
# Some 40 MB. SQLite's own thousand pages hold a few commits of charges on many accounts, and to move them into the file
# takes two more turns of the disk, for which all callers wait.
LOG_PAGES = 10_000

# Their keys come in any order. The rows themselves are added at the end, so that each touches one page of keys only:
# every page that a commit touches is written to the disk.
OUTCOMES = (
    """CREATE TABLE outcomes (
        root TEXT NOT NULL, request_id TEXT NOT NULL, fingerprint TEXT NOT NULL, outcome TEXT NOT NULL,
        keep_until INTEGER NOT NULL, PRIMARY KEY (root, request_id))""",
    "CREATE INDEX outcomes_by_age ON outcomes (keep_until)",
)
PAYMENTS = (
    """CREATE TABLE payments (
        account TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, release_id TEXT NOT NULL,
        window_start INTEGER NOT NULL, keep_until INTEGER, PRIMARY KEY (account, kind, id))""",
    "CREATE INDEX payments_by_age ON payments (keep_until)",
)

# What was charged at each level on each day that is over.
DAYS = """CREATE TABLE days (
    level TEXT NOT NULL, day_start INTEGER NOT NULL, day_end INTEGER NOT NULL, information INTEGER NOT NULL,
    calls INTEGER NOT NULL, PRIMARY KEY (level, day_start)) WITHOUT ROWID"""

CLOSED = (
    "CREATE TABLE closed (root TEXT NOT NULL, level TEXT NOT NULL, PRIMARY KEY (root, level)) WITHOUT ROWID"
)

SCHEMA = (
    "CREATE TABLE roots (root TEXT PRIMARY KEY, unit_id TEXT NOT NULL, last_time INTEGER NOT NULL, "
    "limits_version INTEGER NOT NULL, currency_since INTEGER NOT NULL, next_unit_id TEXT NOT NULL, "
    "next_since INTEGER NOT NULL, ahead INTEGER NOT NULL, entries INTEGER NOT NULL, digest TEXT NOT NULL) "
    "WITHOUT ROWID",
    # A limit is written as `limits.limit_text`.
    "CREATE TABLE limits (root TEXT NOT NULL, level TEXT NOT NULL, limit_text TEXT NOT NULL, "
    "PRIMARY KEY (root, level)) WITHOUT ROWID",
    # One row: the ledger's own name and how often it was counted on, which its high-water mark repeats.
    "CREATE TABLE ledger (ledger_id TEXT NOT NULL, count INTEGER NOT NULL)",
    "INSERT INTO ledger VALUES (lower(hex(randomblob(16))), 0)",
    """CREATE TABLE balances (
        level TEXT PRIMARY KEY, window_start INTEGER NOT NULL, window_end INTEGER,
        spent_information INTEGER NOT NULL, spent_calls INTEGER NOT NULL,
        reserved_information INTEGER NOT NULL, reserved_calls INTEGER NOT NULL,
        reserved_since INTEGER NOT NULL, leaves_at INTEGER, earlier TEXT NOT NULL,
        rule TEXT NOT NULL DEFAULT '', day_start INTEGER NOT NULL DEFAULT 0, day_end INTEGER NOT NULL DEFAULT 0,
        today_information INTEGER NOT NULL DEFAULT 0, today_calls INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID""",
    """CREATE TABLE reservations (
        root TEXT NOT NULL, reservation_id TEXT NOT NULL, account TEXT NOT NULL, request_id TEXT NOT NULL,
        query_id TEXT NOT NULL, information INTEGER NOT NULL, calls INTEGER NOT NULL, expires_at INTEGER NOT NULL,
        paid_release_id TEXT NOT NULL, forfeits INTEGER NOT NULL, holds TEXT NOT NULL, unit_id TEXT NOT NULL,
        PRIMARY KEY (root, reservation_id)) WITHOUT ROWID""",
    "CREATE INDEX reservations_by_end ON reservations (root, expires_at, reservation_id)",
    *OUTCOMES,
    *PAYMENTS,
    """CREATE TABLE journal (
        entry INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, account TEXT NOT NULL,
        information INTEGER NOT NULL, calls INTEGER NOT NULL, unit_id TEXT NOT NULL, request_id TEXT NOT NULL,
        release_id TEXT NOT NULL, query_id TEXT NOT NULL, time INTEGER NOT NULL, holds TEXT NOT NULL,
        policy_statement TEXT NOT NULL DEFAULT '', shared_information INTEGER, shared_calls INTEGER,
        reason TEXT NOT NULL DEFAULT '', actor TEXT NOT NULL DEFAULT '', change TEXT NOT NULL DEFAULT '')""",
    # The entries of one root in order; an index holds the number of the row.
    "CREATE INDEX journal_by_root ON journal (substr(account, 1, instr(account || '/', '/') - 1))",
    """CREATE TRIGGER journal_is_not_changed BEFORE UPDATE ON journal
        BEGIN SELECT RAISE(ABORT, 'no entry of the journal can be changed'); END""",
    # What stands for the dropped entries of each root, as JSON; see `ledger.base`.
    "CREATE TABLE bases (root TEXT PRIMARY KEY, position INTEGER NOT NULL, entries INTEGER NOT NULL, "
    "base TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TRIGGER journal_is_not_shortened BEFORE DELETE ON journal WHEN OLD.entry > coalesce((
            SELECT position FROM bases
            WHERE root = substr(OLD.account, 1, instr(OLD.account || '/', '/') - 1)), 0)
        BEGIN SELECT RAISE(ABORT, 'only a trim drops entries of the journal'); END""",
    DAYS,
    CLOSED,
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
            rows = connection.execute("SELECT unit_id, next_unit_id FROM roots").fetchall()
    except sqlite3.Error:
        return frozenset()
    return frozenset(unit_id for row in rows for unit_id in row if unit_id)


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
