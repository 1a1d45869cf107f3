"""The high-water mark of a SQLite ledger, by which a restored backup is recognised.

It is a small file next to the ledger that must not be backed up with it. A ledger that is behind its high-water mark,
or has none, has lost acknowledged charges or limits. It is refused until the operator confirms that what was left
counts as spent.
"""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from budget_service.stores.interface import StoreUnusableError
from budget_service.stores.mark_file import WHAT_TO_DO, load_fields, remove_leftovers, save_fields

SUFFIX = ".mark"


@dataclass(frozen=True, slots=True)
class HighWaterMark:
    """A ledger's name, and its last number: each journal entry and each change of limits takes one."""

    ledger_id: str
    last_entry: int


def mark_path(ledger: Path) -> Path:
    """Return the path of a ledger's high-water mark."""
    return ledger.with_name(ledger.name + SUFFIX)


def state_of(connection: sqlite3.Connection) -> HighWaterMark | None:
    """Return the present high-water mark of a ledger; None if the ledger has no name yet."""
    row = connection.execute("SELECT ledger_id FROM ledger").fetchone()
    # SQLite keeps the last number, also of an entry that was trimmed.
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'journal'").fetchone()
    return HighWaterMark(row[0], last[0] if last else 0) if row else None


def check_mark(connection: sqlite3.Connection, ledger: Path) -> None:
    """Name a new ledger, and mark one that matches its high-water mark.

    Raises:
        StoreUnusableError: The ledger is behind its mark or has none, or the mark cannot be written.
    """
    remove_leftovers(mark_path(ledger))
    found, mark = state_of(connection), _read(mark_path(ledger))
    if found is None:
        if mark is not None:
            raise StoreUnusableError(
                f"{ledger} is new, but {mark_path(ledger).name} belongs to another ledger: {WHAT_TO_DO}"
            )
        _name_and_mark(connection, ledger)
    elif mark is None:
        raise StoreUnusableError(f"{ledger} has lost its mark {mark_path(ledger).name}: {WHAT_TO_DO}")
    else:
        _require_not_behind(found, mark, ledger)
        save(ledger, found)


def write_mark(connection: sqlite3.Connection, ledger: Path) -> None:
    """Mark how far a ledger has come, naming it first if it has no name. Raises StoreUnusableError."""
    found = state_of(connection)
    if found is None:
        connection.execute("INSERT INTO ledger VALUES (?)", (secrets.token_hex(16),))
        found = state_of(connection)
    assert found is not None  # noqa: S101 - it was just given
    save(ledger, found)


def mark_anew(connection: sqlite3.Connection, ledger: Path) -> None:
    """Give a ledger a new name and mark it, so that no other copy of it is accepted in its place."""
    connection.execute("DELETE FROM ledger")
    write_mark(connection, ledger)


def save(ledger: Path, mark: HighWaterMark) -> None:
    """Replace the high-water mark on the disk atomically. Raises StoreUnusableError."""
    save_fields(mark_path(ledger), {"ledger_id": mark.ledger_id, "last_entry": mark.last_entry})


def _name_and_mark(connection: sqlite3.Connection, ledger: Path) -> None:
    try:
        write_mark(connection, ledger)
    except StoreUnusableError:
        # One with a name and without a mark would be taken for a ledger that has lost it.
        connection.execute("DELETE FROM ledger")
        raise


def _require_not_behind(found: HighWaterMark, mark: HighWaterMark, ledger: Path) -> None:
    if mark.ledger_id != found.ledger_id:
        raise StoreUnusableError(f"{mark_path(ledger)} is the mark of another ledger: {WHAT_TO_DO}")
    if found.last_entry < mark.last_entry:
        lost = mark.last_entry - found.last_entry
        raise StoreUnusableError(
            f"{ledger} has lost at least {lost} charges or changes of limits: {WHAT_TO_DO}"
        )


def _read(path: Path) -> HighWaterMark | None:
    try:
        kept = load_fields(path)
        return None if kept is None else HighWaterMark(str(kept["ledger_id"]), int(kept["last_entry"]))
    except (OSError, ValueError, TypeError, KeyError):
        raise StoreUnusableError(f"{path} cannot be read: {WHAT_TO_DO}") from None
