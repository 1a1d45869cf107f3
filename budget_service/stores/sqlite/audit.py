"""Reads of a whole ledger in SQLite, page by page: roots, journal, base and balances; and the writes of a trim."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from budget_service.ledger.balances import PastDay
from budget_service.ledger.base import Base
from budget_service.ledger.state import JournalEntry, Reservation
from budget_service.ledger.values import MAX_SEGMENTS, Account, Cost
from budget_service.ledger.windows import Microseconds
from budget_service.stores.codec import decode_base, encoded
from budget_service.stores.damaged_rows import reading_row
from budget_service.stores.interface import BalancePage, GroupedEntries
from budget_service.stores.sqlite import rows

OF_ROOT = "substr(account, 1, instr(account || '/', '/') - 1) = ?"
# What comes right after the slash.
AFTER_SLASH = "0"

# The parameters end with a slash.
IS_BELOW = "substr(account || '/', 1, length(?)) = ?"

# How many of four levels an account is below, or is itself.
SHARED_LEVELS = " + ".join([f"({IS_BELOW})"] * MAX_SEGMENTS)
# Of what differs within a group only the time is looked at, and there the oldest matters. Changes of limits differ.
GROUPED = (
    "SELECT count(*), min(entry), kind, account, information, calls, unit_id, request_id, "  # noqa: S608
    "release_id, query_id, min(time), holds, policy_statement, shared_information, shared_calls, reason, "
    "actor, change "
    f"FROM (SELECT * FROM journal WHERE {OF_ROOT} AND entry < ? ORDER BY entry DESC LIMIT ?) "
    f"GROUP BY {SHARED_LEVELS}, length(account) - length(replace(account, '/', '')), kind, holds, "
    "policy_statement, shared_information IS NULL, shared_information = information AND shared_calls = calls, "
    "CASE kind WHEN 'limit' THEN entry END"
)


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
    return [(str(row[0]), rows.read_entry(*row)) for row in found]


def load_latest(
    connection: sqlite3.Connection, root: str, before: str, most: int
) -> list[tuple[str, JournalEntry]]:
    """Return entries of a root before a position, newest first."""
    query = f"SELECT * FROM journal WHERE {OF_ROOT} AND entry < ? ORDER BY entry DESC LIMIT ?"  # noqa: S608
    found = connection.execute(query, (root, int(before) if before else 2**63 - 1, most))
    return [(str(row[0]), rows.read_entry(*row)) for row in found]


def load_grouped_entries(
    connection: sqlite3.Connection, account: Account, before: str, most: int
) -> GroupedEntries:
    """Return the newest entries of an account's root before a position, grouped; see `GroupedEntries`.

    SQLite groups them many times faster than each entry can be read, and other requests wait meanwhile.
    """
    first = int(before) if before else 2**63 - 1
    levels = [account.level(min(depth, account.depth)).text + "/" for depth in range(1, MAX_SEGMENTS + 1)]
    parameters = (account.root, first, most, *(each for each in levels for _ in range(2)))
    found = connection.execute(GROUPED, parameters).fetchall()
    count = sum(each[0] for each in found)
    return GroupedEntries(
        entries=tuple(rows.read_entry(*row) for _, *row in found),
        before=str(min(each[1] for each in found)) if count == most else "",
    )


def load_balances(
    connection: sqlite3.Connection, root: str, after: str, most: int, clock: Microseconds
) -> BalancePage:
    """Return balances of a root in the order of their levels, from the first after the level `after`."""
    query = "SELECT * FROM balances WHERE level >= ? AND level < ? AND level > ? ORDER BY level LIMIT ?"
    own = [] if after else connection.execute("SELECT * FROM balances WHERE level = ?", (root,)).fetchall()
    # The root's blocks, and its levels. Elsewhere between the root and its slash come the levels of other roots.
    below = connection.execute(query, (f"{root}*", f"{root}+", after, most)).fetchall()
    rest = (f"{root}/", root + AFTER_SLASH, after, most - len(below))
    below += connection.execute(query, rest).fetchall()
    balances = tuple((Account.of_text(row[0]), rows.read_balance(*row)) for row in own + below)
    return BalancePage(
        position=_last_position(connection, root),
        root=rows.find_root(connection, root),
        clock=clock,
        balances=balances,
        past={level: load_past_days(connection, level) for level, _ in balances},
        reservations=_load_held(connection, root, below) if after else load_reservations(connection, root),
        after=below[-1][0] if len(below) == most else "",
    )


def load_base(connection: sqlite3.Connection, root: str) -> Base:
    """Return what stands for the dropped entries of a root."""
    row = connection.execute("SELECT base FROM bases WHERE root = ?", (root,)).fetchone()
    return decode_base(root, row and row[0])


def write_base(connection: sqlite3.Connection, root: str, base: Base) -> None:
    """Replace the base of a root, unless the new one has no more entries."""
    connection.execute(
        "INSERT INTO bases VALUES (?, ?, ?, ?) ON CONFLICT (root) DO UPDATE "
        "SET position = excluded.position, entries = excluded.entries, base = excluded.base "
        "WHERE entries < excluded.entries",
        (root, int(base.position), base.entries, encoded(base)),
    )


def drop_trimmed(connection: sqlite3.Connection, root: str, most: int) -> int:
    """Remove the oldest entries that the base stands for and return their number."""
    trimmed = (
        f"SELECT entry FROM journal WHERE {OF_ROOT} AND entry <= "  # noqa: S608 - constants
        "(SELECT position FROM bases WHERE root = ?) ORDER BY entry LIMIT ?"
    )
    delete = f"DELETE FROM journal WHERE entry IN ({trimmed})"  # noqa: S608 - constants
    return connection.execute(delete, (root, root, most)).rowcount


def count_open(connection: sqlite3.Connection, nows: Mapping[str, Microseconds]) -> int:
    """Return how many reservations of some roots have not lapsed by the time of each."""
    query = "SELECT count(*) FROM reservations WHERE root = ? AND expires_at > ?"
    return sum(connection.execute(query, (root, now)).fetchone()[0] for root, now in nows.items())


def load_past_days(connection: sqlite3.Connection, level: Account) -> list[PastDay]:
    """Return what was charged at a level on days that are over."""
    query = "SELECT day_start, day_end, information, calls FROM days WHERE level = ?"
    found = connection.execute(query, (level.text,))
    with reading_row("days", level.text):
        return [PastDay(start, end, Cost(*amounts)) for start, end, *amounts in found]


def load_reservations(connection: sqlite3.Connection, root: str) -> tuple[Reservation, ...]:
    """Return the reservations of a root that have not been ended."""
    query = f"SELECT {rows.RESERVATION} FROM reservations WHERE root = ?"  # noqa: S608 - a constant
    return tuple(rows.read_reservation(*row) for row in connection.execute(query, (root,)))


def _load_held(connection: sqlite3.Connection, root: str, balances: Sequence[Any]) -> tuple[Reservation, ...]:
    """Return the reservations of a root that may hold on some balances."""
    levels = [row[0].partition("*")[0] for row in balances]
    # What is below a level comes after it, and before what comes right after its slash.
    bounds = min(levels, default=""), max((level + AFTER_SLASH for level in levels), default="")
    query = f"SELECT {rows.RESERVATION} FROM reservations WHERE root = ? AND account >= ? AND account < ?"  # noqa: S608
    return tuple(rows.read_reservation(*row) for row in connection.execute(query, (root, *bounds)))


def _last_position(connection: sqlite3.Connection, root: str) -> str:
    query = f"SELECT max(entry) FROM journal WHERE {OF_ROOT}"  # noqa: S608 - a constant
    (last,) = connection.execute(query, (root,)).fetchone()
    return "" if last is None else str(last)
