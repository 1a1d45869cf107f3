"""Writes the changes of a batch into a SQLite ledger, in the transaction that is open."""

from __future__ import annotations

import sqlite3
from typing import Any

from budget_service.ledger.limits import limit_text
from budget_service.stores.codec import encoded
from budget_service.stores.sqlite import rows
from budget_service.stores.transactions import Changes

ADD_TO_DAY = (
    "INSERT INTO days VALUES (?, ?, ?, ?, ?) ON CONFLICT (level, day_start) DO UPDATE "
    "SET information = information + excluded.information, calls = calls + excluded.calls"
)


def write(connection: sqlite3.Connection, changes: Changes) -> None:
    """Write all changes."""
    root_rows = [rows.root_row(root, record) for root, record in changes.roots.items()]
    _insert(connection, "INSERT OR REPLACE INTO roots", root_rows)
    balances = [rows.balance_row(level, balance) for level, balance in changes.balances.items()]
    _insert(connection, "INSERT OR REPLACE INTO balances", balances)
    # Seldom more than one a day for each level.
    connection.executemany(ADD_TO_DAY, [rows.day_row(each) for each in changes.days.values()])
    entries = [rows.journal_row(each) for each in changes.journal]
    _insert(connection, f"INSERT INTO journal ({rows.JOURNAL})", entries)
    outcomes = [
        (*key, each.fingerprint, encoded(each.outcome), each.keep_until)
        for key, each in changes.outcomes.items()
    ]
    _insert(connection, "INSERT OR REPLACE INTO outcomes", outcomes)
    _write_payments(connection, changes)
    _write_reservations(connection, changes)
    if changes.limits:
        _write_limits(connection, changes)
    if changes.closed:
        _write_closed(connection, changes)


def _write_payments(connection: sqlite3.Connection, changes: Changes) -> None:
    paid = [
        (*key, each.release_id, each.window_start, each.keep_until)
        for key, each in changes.payments.items()
        if each is not None
    ]
    _insert(connection, "INSERT OR REPLACE INTO payments", paid)
    unpaid = [key for key, each in changes.payments.items() if each is None]
    _delete(connection, "DELETE FROM payments WHERE account = ? AND kind = ? AND id = ?", unpaid)


def _write_reservations(connection: sqlite3.Connection, changes: Changes) -> None:
    ended = [key for key, each in changes.reservations.items() if each is None]
    _delete(connection, "DELETE FROM reservations WHERE root = ? AND reservation_id = ?", ended)
    opened = [rows.reservation_row(each) for each in changes.reservations.values() if each is not None]
    _insert(connection, "INSERT INTO reservations", opened)


def _write_limits(connection: sqlite3.Connection, changes: Changes) -> None:
    removed = [(level.root, level.text) for level, limit in changes.limits.items() if limit is None]
    _delete(connection, "DELETE FROM limits WHERE root = ? AND level = ?", removed)
    kept = [(level.root, level.text, limit_text(each)) for level, each in changes.limits.items() if each]
    _insert(connection, "INSERT OR REPLACE INTO limits", kept)


def _write_closed(connection: sqlite3.Connection, changes: Changes) -> None:
    opened = [(each.root, each.text) for each, is_closed in changes.closed.items() if not is_closed]
    _delete(connection, "DELETE FROM closed WHERE root = ? AND level = ?", opened)
    closed = [(each.root, each.text) for each, is_closed in changes.closed.items() if is_closed]
    _insert(connection, "INSERT OR REPLACE INTO closed", closed)


def _insert(connection: sqlite3.Connection, into: str, many: list[tuple[Any, ...]]) -> None:
    """Write rows; `into` is the statement without its values, and all columns are given.

    A statement of several rows would be slower: SQLite copies each page that it changes, to take it back if it fails.
    """
    if many:
        connection.executemany(f"{into} VALUES ({', '.join('?' * len(many[0]))})", many)


def _delete(connection: sqlite3.Connection, statement: str, many: list[Any]) -> None:
    if many:
        connection.executemany(statement, many)
