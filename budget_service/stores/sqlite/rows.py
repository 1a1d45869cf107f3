"""Reads and writes rows of a SQLite ledger, and its journal, in whatever transaction is open."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Sequence

from msgspec.json import encode

from budget_service.stores.row_map import Range, RowKey, Writes

# A cross join is made in the order in which it is written: each key is looked up in the table's own index.
_GET = (
    "SELECT rows.root, rows.key, text FROM json_each(?2) AS asked "
    "CROSS JOIN rows ON rows.root = ?1 AND rows.key = asked.value"
)
_SCAN = "SELECT root, key, text FROM rows WHERE root = ? AND key > ? AND key < ? ORDER BY key LIMIT ?"
_PUT = (
    "INSERT INTO rows VALUES (?, ?, ?, ?) ON CONFLICT (root, key) DO UPDATE "
    "SET text = excluded.text, keep_until = excluded.keep_until"
)
_PURGE = (
    "DELETE FROM rows WHERE rowid IN (SELECT rowid FROM rows WHERE root = ? AND keep_until <= ? "
    "ORDER BY keep_until LIMIT ?)"
)
_ENTRIES = "SELECT number, text FROM journal WHERE root = ? AND number > ? AND number <= ? ORDER BY number"
_DROP = (
    "DELETE FROM journal WHERE root = ?1 AND number IN (SELECT number FROM journal WHERE root = ?1 AND number <= "
    "(SELECT json_extract(text, '$.entries') FROM rows WHERE root = ?1 AND key = 'bases') "
    "ORDER BY number LIMIT ?2)"
)


def read(
    connection: sqlite3.Connection, keys: Collection[RowKey], ranges: Sequence[Range]
) -> dict[RowKey, str]:
    """Return those rows that there are."""
    found: dict[RowKey, str] = {}
    names: defaultdict[str, list[str]] = defaultdict(list)
    for root, key in keys:
        names[root].append(key)
    for root, asked in names.items():
        rows = connection.execute(_GET, (root, encode(asked).decode()))
        found.update({(name, key): text for name, key, text in rows})
    for each in ranges:
        most = -1 if each.at_most is None else each.at_most
        rows = connection.execute(_SCAN, (*each[:3], most))
        found.update({(name, key): text for name, key, text in rows})
    return found


def write(connection: sqlite3.Connection, writes: Writes) -> None:
    """Write all of it.

    A statement of several rows would be slower: SQLite copies each page that it changes, to take it back if it fails.
    """
    connection.executemany("DELETE FROM rows WHERE root = ? AND key = ?", writes.deletes)
    new = [(*each.key, each.text, each.keep_until) for each in writes.puts if each.is_new]
    connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", new)
    puts = [(*each.key, each.text, each.keep_until) for each in writes.puts if not each.is_new]
    connection.executemany(_PUT, puts)
    connection.executemany("INSERT INTO journal (root, number, text) VALUES (?, ?, ?)", writes.appends)
    for root, now in writes.times.items():
        connection.execute(_PURGE, (root, now, writes.purged))


def entries(
    connection: sqlite3.Connection, root: str, after: int, until: int, at_most: int, *, newest: bool
) -> list[tuple[int, str]]:
    """Return entries of a journal."""
    order = " DESC LIMIT ?" if newest else " LIMIT ?"
    return connection.execute(_ENTRIES + order, (root, after, until, at_most)).fetchall()


def drop_trimmed(connection: sqlite3.Connection, root: str, most: int) -> int:
    """Remove the oldest entries that the base stands for, and return their number."""
    return connection.execute(_DROP, (root, most)).rowcount


def root_names(connection: sqlite3.Connection) -> list[str]:
    """Return every root that has rows."""
    found = connection.execute("SELECT root FROM rows WHERE key = 'roots' ORDER BY root")
    return [root for (root,) in found]
