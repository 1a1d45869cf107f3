"""What the SQLite store reads of a whole ledger: its roots, its journal and its balances, page by page."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from budget_service.ledger.state import EntryKind, Hold, JournalEntry
from budget_service.ledger.values import Account, Cost
from budget_service.stores import sqlite_rows as rows
from budget_service.stores.interface import BalancePage

OF_ROOT = "substr(account, 1, instr(account || '/', '/') - 1) = ?"
# What comes right after the slash.
AFTER_SLASH = "0"


def load_roots(connection: sqlite3.Connection) -> list[str]:
    """Return every root that was ever used."""
    return [root for (root,) in connection.execute("SELECT root FROM roots ORDER BY root")]


def load_journal(
    connection: sqlite3.Connection, root: str, after: str, until: str, most: int
) -> list[tuple[str, JournalEntry]]:
    """Return entries of a root in order; a position is the number of the entry."""
    query = f"SELECT * FROM journal WHERE {OF_ROOT} AND entry > ? AND entry <= ? ORDER BY entry LIMIT ?"  # noqa: S608
    last = int(until) if until else 2**63 - 1
    found = connection.execute(query, (root, int(after or 0), last, most))
    return [(str(number), _entry(*fields)) for number, *fields in found]


def load_balances(connection: sqlite3.Connection, root: str, after: str, most: int) -> BalancePage:
    """Return balances of a root in the order of their levels, from the first after the level `after`."""
    query = "SELECT * FROM balances WHERE level >= ? AND level < ? AND level > ? ORDER BY level LIMIT ?"
    # Between the root and its slash come the levels of other roots.
    first = f"{root}/"
    own = [] if after else connection.execute("SELECT * FROM balances WHERE level = ?", (root,)).fetchall()
    below = connection.execute(query, (first, root + AFTER_SLASH, after, most)).fetchall()
    balances = tuple((_account(row[0]), rows.read_balance(*row)) for row in own + below)
    return BalancePage(
        position=_last_position(connection, root),
        balances=balances,
        reservations=rows.load_reservations(connection, root),
        after=below[-1][0] if len(below) == most else "",
    )


def _last_position(connection: sqlite3.Connection, root: str) -> str:
    query = f"SELECT max(entry) FROM journal WHERE {OF_ROOT}"  # noqa: S608 - a constant
    (last,) = connection.execute(query, (root,)).fetchone()
    return "" if last is None else str(last)


def _entry(kind: str, account: str, *fields: Any) -> JournalEntry:
    information, calls, unit_id, request_id, release_id, query_id, time, holds = fields
    return JournalEntry(
        kind=EntryKind(kind),
        account=_account(account),
        cost=Cost(information, calls),
        unit_id=unit_id,
        request_id=request_id,
        release_id=release_id,
        query_id=query_id,
        time=time,
        holds=tuple(Hold(*each) for each in json.loads(holds)),
    )


def _account(text: str) -> Account:
    return Account(tuple(text.split("/")))
