"""The names of accounts in a SQLite ledger, which leave nothing behind when they are dropped.

SQLite overwrites what is deleted (`secure_delete`), but not copies of a row that stay in the unused part of a page when
rows are moved to make room for others. So the whole table is written anew, from rows of which none was dropped, and its
old pages are overwritten as they become free. Then the write-ahead log is emptied, which has the pages as they were.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from budget_service.ledger.pseudonyms import NameRow, bounds_below
from budget_service.stores.damaged_rows import read_name
from budget_service.stores.interface import StoreDamagedError, StoreUnavailableError
from budget_service.stores.sqlite.audit import transaction
from budget_service.stores.sqlite.file import NAMES, NAMES_BY_ID

EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"
_BY_NAME = "SELECT name, id, key FROM names WHERE root = ? AND name = ?"
_BY_ID = "SELECT name, id, key FROM names WHERE root = ? AND id = ?"
_BELOW = "SELECT name FROM names WHERE root = ? AND name > ? AND name < ? ORDER BY name LIMIT ?"
_ADD = "INSERT INTO names VALUES (?, ?, ?, ?) ON CONFLICT (root, name) DO NOTHING"
_ANEW = (
    "ALTER TABLE names RENAME TO old_names",
    NAMES,
    "INSERT INTO names SELECT * FROM old_names ORDER BY root, name",
    # With its index.
    "DROP TABLE old_names",
    NAMES_BY_ID,
)


def by_name(connection: sqlite3.Connection, root: str, names: Sequence[str]) -> list[NameRow]:
    """Return the rows of names that have one."""
    return _found(connection, _BY_NAME, root, names)


def by_id(connection: sqlite3.Connection, root: str, ids: Sequence[str]) -> list[NameRow]:
    """Return the rows of ids that have one."""
    return _found(connection, _BY_ID, root, ids)


def below(
    connection: sqlite3.Connection, root: str, name: str, after: str = "", most: int | None = None
) -> list[str]:
    """Return the first names below one, in the order of their bytes, after another one of them."""
    first, last = bounds_below(name)
    bounds = (root, after or first, last, -1 if most is None else most)
    return [found for (found,) in connection.execute(_BELOW, bounds)]


def add(connection: sqlite3.Connection, root: str, rows: Sequence[NameRow]) -> list[NameRow]:
    """Keep the rows of names that have none yet, and return the row of each name."""
    with transaction(connection):
        try:
            connection.executemany(_ADD, [(root, each.name, each.id, each.key) for each in rows])
        except sqlite3.IntegrityError:
            # One of the ids is that of another name.
            raise StoreDamagedError("names", root) from None
        return by_name(connection, root, [each.name for each in rows])


def drop(connection: sqlite3.Connection, root: str, dropped: Sequence[NameRow]) -> None:
    """Remove the rows of names, and every trace of them in the files."""
    with transaction(connection):
        before = connection.total_changes
        connection.executemany(
            "DELETE FROM names WHERE root = ? AND name = ? AND id = ?",
            [(root, each.name, each.id) for each in dropped],
        )
        if connection.total_changes > before:
            for statement in _ANEW:
                connection.execute(statement)
    # Also if there was nothing to remove: the last attempt may have ended here.
    (is_busy, *_) = connection.execute(EMPTY_LOG).fetchone()
    if is_busy:
        raise StoreUnavailableError("the names are removed, and are still in the write-ahead log")


def _found(connection: sqlite3.Connection, query: str, root: str, keys: Sequence[str]) -> list[NameRow]:
    found = (connection.execute(query, (root, each)).fetchone() for each in dict.fromkeys(keys))
    return [read_name(*row) for row in found if row is not None]
