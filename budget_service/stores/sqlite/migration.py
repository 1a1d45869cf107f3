"""Migrates a SQLite ledger to schema 9, in which every level counts by the day."""

from __future__ import annotations

import sqlite3

from budget_service.ledger.migration import Migrated, OlderRoot
from budget_service.ledger.state import DayChange
from budget_service.stores.sqlite import audit, rows

PAGE = 1000


def count_by_day(connection: sqlite3.Connection) -> None:
    """Work out the days of every level, in the transaction that is open."""
    for root in audit.load_roots(connection):
        _write(connection, _migrated(connection, root))


def _migrated(connection: sqlite3.Connection, root: str) -> Migrated:
    checkpoint = audit.load_checkpoint(connection, root)
    found, after = OlderRoot.after(checkpoint), checkpoint.position
    while page := audit.load_journal(connection, root, after, "", PAGE):
        for after, entry in page:  # noqa: B007 - the last position is where the next page begins
            found.add(entry)
    every = audit.load_balances(connection, root, "", -1)
    return found.migrated(
        dict(every.balances), every.reservations, rows.find_root(connection, root).last_time
    )


def _write(connection: sqlite3.Connection, found: Migrated) -> None:
    balances = [rows.balance_row(level, each) for level, each in found.balances.items()]
    if balances:
        given = ", ".join("?" * len(balances[0]))
        connection.executemany(f"INSERT OR REPLACE INTO balances VALUES ({given})", balances)  # noqa: S608
    days = [
        rows.day_row(DayChange(level, each.start, each.end, each.spent.information, each.spent.calls))
        for level, past in found.past.items()
        for each in past
    ]
    connection.executemany("INSERT INTO days VALUES (?, ?, ?, ?, ?)", days)
    held = [
        (rows.holds_text(each.holds), each.account.root, each.reservation_id) for each in found.reservations
    ]
    connection.executemany("UPDATE reservations SET holds = ? WHERE root = ? AND reservation_id = ?", held)
