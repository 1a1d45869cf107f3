"""The history in a SQLite file of its own: results that were paid for, kept for the accounts that paid.

Only what the account was shown is kept, never a true count. A file belongs to one gateway. Where a release store is
configured, the history is a view of it instead (`kept_history`), and this file is moved there.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TypeVar

from gris_api.app.v1 import app_pb2

from pinot_connector.release_store.receipts import ReceiptLimits

MAX_ELEMENT_BYTES = 3 * 2**20
MAX_PAGE_BYTES = 3 * 2**20
VERSION = 2
DAY_MICROSECONDS = 86_400 * 10**6
# The share of the file that is freed at a time, because freeing scans everything that is kept.
FREED_SHARE = 1 / 64

_SCHEMA = """
CREATE TABLE releases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account TEXT NOT NULL,
    same TEXT NOT NULL,
    request_id TEXT NOT NULL,
    released_at INTEGER NOT NULL,
    entry BLOB NOT NULL
);
CREATE INDEX by_account ON releases (account, id);
CREATE INDEX by_time ON releases (released_at);
CREATE UNIQUE INDEX by_request ON releases (account, request_id) WHERE request_id != '';
"""

# Each result is ranked by the size of itself and all newer ones of its account. The largest are deleted first, so that
# the accounts that keep most lose their oldest results, until they keep no more than others.
_MAKE_ROOM = """
WITH
    sized AS MATERIALIZED (SELECT id, account, length(entry) AS size FROM releases),
    counted AS (SELECT id, size, sum(size) OVER (PARTITION BY account ORDER BY id DESC) AS kept FROM sized),
    ordered AS (SELECT id, size, sum(size) OVER (ORDER BY kept DESC, id ROWS UNBOUNDED PRECEDING) AS free FROM counted)
DELETE FROM releases WHERE id IN (SELECT id FROM ordered WHERE free - size < ?)
"""

_Answer = TypeVar("_Answer")


class HistoryError(Exception):
    """The history's file cannot be used."""


@dataclass(frozen=True)
class HistoryRetention:
    """How much is kept: for how long, how many results of one account, and how large the file may become.

    A result is listed for so many days by the machine's clock. It is removed once they are over by the ledger's too: a
    clock that jumps ahead removes nothing. When the file is full, an account loses nothing if it keeps no more than its
    share: the size of the file divided by the number of accounts with results.
    """

    days: int
    per_account: int
    megabytes: int


@dataclass(frozen=True)
class Page:
    """Results, newest first; `after` is where the next page begins, None if this was the last."""

    releases: tuple[app_pb2.PastRelease, ...]
    after: int | None


class History:
    """The history of all accounts. One thread uses SQLite.

    Args:
        file: The path of the SQLite file, created if there is none; None for memory.
        retention: How much is kept.
        clock: Returns microseconds since 1970 (UTC); alone it decides only what is listed.

    Raises:
        HistoryError: The file is not a history of this version, or cannot be opened.
    """

    def __init__(self, file: str | None, retention: HistoryRetention, clock: Callable[[], int]) -> None:
        self._retention = retention
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "gris-history")
        self._connection = self._thread.submit(_opened, file).result()
        # The start of the latest window that a result since the start of this gateway was charged in.
        self._ledger_time = 0

    async def add(self, account: Sequence[str], release: app_pb2.PastRelease) -> None:
        """Keep a result, and delete what is too old or too much.

        It replaces the result of the same request, and that of the same release of the same question unless that had a
        request id of its own.
        """
        await self._in_thread(lambda: self._add(_name(account), release))

    async def find(self, account: Sequence[str], request_id: str) -> app_pb2.PastRelease | None:
        """Return the result of an account's request with this id, None if there is none."""
        return await self._in_thread(lambda: self._find(_name(account), request_id))

    async def page(self, account: Sequence[str], most: int, before: int | None) -> Page:
        """Return at most `most` results of an account, older than the one at `before`."""
        return await self._in_thread(lambda: self._page(_name(account), most, before))

    async def close(self) -> None:
        """Close the file once everything has been written."""
        await self._in_thread(self._connection.close)
        self._thread.shutdown()

    async def _in_thread(self, work: Callable[[], _Answer]) -> _Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _add(self, account: str, release: app_pb2.PastRelease) -> None:
        same, now = deduplication_key(release), self._clock()
        row = (account, same, release.request_id, now, release.SerializeToString())
        self._ledger_time = max(self._ledger_time, _reported_time(release))
        removable = ReceiptLimits(self._retention.days).removable_before(now, self._ledger_time)
        with self._connection as db:
            db.execute("DELETE FROM releases WHERE released_at < ?", (removable,))
            db.execute(
                "DELETE FROM releases WHERE account = ? AND same = ? AND request_id = ''",
                (account, same),
            )
            db.execute(
                "INSERT OR REPLACE INTO releases (account, same, request_id, released_at, entry) "
                "VALUES (?, ?, ?, ?, ?)",
                row,
            )
            db.execute(
                "DELETE FROM releases WHERE account = ? AND id <= (SELECT id FROM releases WHERE account = ? "
                "ORDER BY id DESC LIMIT 1 OFFSET ?)",
                (account, account, self._retention.per_account),
            )
            room = self._retention.megabytes * 2**20
            if (missing := self._bytes() - room) > 0:
                db.execute(_MAKE_ROOM, (missing + FREED_SHARE * room,))

    def _find(self, account: str, request_id: str) -> app_pb2.PastRelease | None:
        found = self._connection.execute(
            "SELECT entry FROM releases WHERE account = ? AND request_id = ? AND request_id != '' AND released_at >= ?",
            (account, request_id, self._oldest()),
        ).fetchone()
        return None if found is None else app_pb2.PastRelease.FromString(found[0])

    def _page(self, account: str, most: int, before: int | None) -> Page:
        rows = self._connection.execute(
            "SELECT id, entry FROM releases WHERE account = ? AND id < ? AND released_at >= ? ORDER BY id DESC LIMIT ?",
            (account, 2**63 - 1 if before is None else before, self._oldest(), most + 1),
        )
        found: list[app_pb2.PastRelease] = []
        last, size = 0, 0
        for position, entry in rows:
            size += len(entry)
            if len(found) == most or (found and size > MAX_PAGE_BYTES):
                return Page(tuple(found), last)
            found.append(app_pb2.PastRelease.FromString(entry))
            last = position
        return Page(tuple(found), None)

    def _oldest(self) -> int:
        return self._clock() - self._retention.days * DAY_MICROSECONDS

    def _bytes(self) -> int:
        """Return how many bytes of the file are in use; deleted pages are reused."""
        pages, free, size = (
            int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size


def _opened(file: str | None) -> sqlite3.Connection:
    with ExitStack() as failed:
        try:
            if file is not None:
                _make_private(file)
            connection = sqlite3.connect(file or ":memory:", check_same_thread=False)
            failed.callback(connection.close)
            _prepare(connection, file)
        except (OSError, sqlite3.Error) as error:
            raise HistoryError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
        failed.pop_all()
        return connection


def _prepare(connection: sqlite3.Connection, file: str | None) -> None:
    # Deleted results are overwritten in the file.
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA journal_mode = WAL")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
    elif version != VERSION:
        raise HistoryError(f"{file}: a history of version {version}; this program writes version {VERSION}")


def _make_private(file: str) -> None:
    """Create the file so that only this user may ever read it."""
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _reported_time(release: app_pb2.PastRelease) -> int:
    """Return a time that the ledger's clock had reached when the result was charged; 0 if it says none."""
    starts = [level.window_start for level in release.result.remaining if level.HasField("window_start")]
    return max((start.ToMicroseconds() for start in starts), default=0)


def deduplication_key(release: app_pb2.PastRelease) -> str:
    """Return a key that two results share if the second adds nothing to the first."""
    question, shown = release.question.SerializeToString(deterministic=True), release.result.shown
    return f"{shown.release_id}:{shown.confidence}:{hashlib.sha256(question).hexdigest()}"


def _name(account: Sequence[str]) -> str:
    """Return an account as a text that no other account has."""
    return json.dumps(list(account))
