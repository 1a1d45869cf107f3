"""Checks that the file of a ledger is a sound database before anything is decided by it.

SQLite reads a damaged page only when a request needs it, so damage could stay unnoticed for months. `quick_check` reads
every page and every row of a table and its indexes; it does not compare the two, which takes ten times as long.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from budget_service.stores.interface import StoreUnusableError

# What every decision rests on comes before what only grows.
_LAST = ("sqlite_sequence", "journal")

log = logging.getLogger(__name__)


def require_sound(
    connection: sqlite3.Connection,
    path: Path,
    most_seconds: float,
    clock: Callable[[], float] = perf_counter,
) -> None:
    """Return if no table is damaged, as far as `most_seconds` were enough to look; the log has what is left.

    Raises:
        StoreUnusableError: A table is damaged.
    """
    end = clock() + most_seconds
    left = _tables(connection)
    while left and clock() < end:
        _require_sound_table(connection, path, left.pop(0))
    if left:
        log.warning(
            "The ledger is too large to be checked as a whole at the start.",
            extra={"event": "store.partly_checked", "fields": {"unchecked": ",".join(left)}},
        )


def _tables(connection: sqlite3.Connection) -> list[str]:
    found = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return sorted(found, key=lambda name: (name in _LAST, name))


def _require_sound_table(connection: sqlite3.Connection, path: Path, table: str) -> None:
    try:
        # The name is one of the file's own tables; a pragma takes no parameters.
        (answer,) = connection.execute(f'PRAGMA quick_check("{table}")').fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        answer = error
    if answer != "ok":
        problem = " ".join(str(answer).split())
        raise StoreUnusableError(
            f"{path} is damaged, in its table {table} ({problem}): do not serve it; restore a backup"
        )
