"""Reads of a whole ledger in SQLite, page by page: roots, journal and balances; and its checkpoints."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from budget_service.ledger.balances import PastDay
from budget_service.ledger.state import JournalEntry, Reservation
from budget_service.ledger.values import MAX_SEGMENTS, Account, Cost
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import Microseconds
from budget_service.stores.checkpoint_pages import SUMS_PAGE, SumRow, add_sums
from budget_service.stores.codec import decode_closed, decode_root, encode_closed, encode_root
from budget_service.stores.damaged_rows import reading_row
from budget_service.stores.interface import BalancePage, GroupedEntries, MatchingEntries
from budget_service.stores.sqlite import rows

OF_ROOT = "substr(account, 1, instr(account || '/', '/') - 1) = ?"
SUMS = "SELECT level, window_start, information, calls FROM checkpoint_sums WHERE root = ?"
# What comes right after the slash.
AFTER_SLASH = "0"

SOME = f"SELECT * FROM journal WHERE {OF_ROOT} AND entry > ? ORDER BY entry LIMIT ?"  # noqa: S608 - a constant
# The parameters end with a slash.
IS_BELOW = "substr(account || '/', 1, length(?)) = ?"
# So many entries are looked through in the time in which one is read.
LOOKED_THROUGH = 20

# How many of four levels an account is below, or is itself.
SHARED_LEVELS = " + ".join([f"({IS_BELOW})"] * MAX_SEGMENTS)
# Of what differs within a group only the time is looked at, and there the oldest matters. Changes of limits differ.
GROUPED = (
    "SELECT count(*), sum(entry <= ?), min(entry), kind, account, information, calls, unit_id, request_id, "  # noqa: S608
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


def load_matching(
    connection: sqlite3.Connection, levels: Sequence[Account], after: str, most: int
) -> MatchingEntries:
    """Return entries of some levels of a root, and of accounts below them, in order.

    SQLite looks through many entries in the time in which few can be read.
    """
    within = " OR ".join([IS_BELOW] * len(levels))
    looked_through = (levels[0].root, int(after or 0), most * LOOKED_THROUGH)
    query = f"SELECT * FROM ({SOME}) WHERE {within} LIMIT ?"  # noqa: S608 - constants
    names = [name for level in levels for name in (f"{level.text}/", f"{level.text}/")]
    found = connection.execute(query, (*looked_through, *names, most)).fetchall()
    entries = [(str(row[0]), rows.read_entry(*row)) for row in found]
    if len(entries) == most:
        return MatchingEntries(entries, entries[-1][0])
    query = f"SELECT count(*), max(entry) FROM ({SOME.replace('*', 'entry')})"  # noqa: S608 - constants
    count, last = connection.execute(query, looked_through).fetchone()
    return MatchingEntries(entries, str(last) if count == most * LOOKED_THROUGH else "")


def load_latest(
    connection: sqlite3.Connection, root: str, before: str, most: int
) -> list[tuple[str, JournalEntry]]:
    """Return entries of a root before a position, newest first."""
    query = f"SELECT * FROM journal WHERE {OF_ROOT} AND entry < ? ORDER BY entry DESC LIMIT ?"  # noqa: S608
    found = connection.execute(query, (root, int(before) if before else 2**63 - 1, most))
    return [(str(row[0]), rows.read_entry(*row)) for row in found]


def load_grouped_entries(
    connection: sqlite3.Connection, account: Account, before: str, checkpointed: str, most: int
) -> GroupedEntries:
    """Return the newest entries of an account's root before a position, grouped; see `GroupedEntries`.

    SQLite groups them many times faster than each entry can be read, and other requests wait meanwhile.
    """
    first = int(before) if before else 2**63 - 1
    levels = [account.level(min(depth, account.depth)).text + "/" for depth in range(1, MAX_SEGMENTS + 1)]
    parameters = (
        int(checkpointed or 0),
        account.root,
        first,
        most,
        *(each for each in levels for _ in range(2)),
    )
    found = connection.execute(GROUPED, parameters).fetchall()
    count = sum(each[0] for each in found)
    return GroupedEntries(
        entries=tuple(rows.read_entry(*row) for _, _, *row in found),
        checkpointed=sum(each[1] for each in found),
        before=str(min(each[2] for each in found)) if count == most else "",
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


def load_checkpoint(
    connection: sqlite3.Connection, root: str, levels: Sequence[Account] | None = None
) -> Checkpoint:
    """Return the checkpoint of a root's journal with all sums, or those of some levels and their blocks."""
    query = "SELECT position, entries, digest, currency, closed FROM checkpoints WHERE root = ?"
    row = connection.execute(query, (root,)).fetchone()
    if row is None:
        return Checkpoint()
    spent: dict[Account, dict[Microseconds, Cost]] = {}
    if levels is None:
        add_sums(spent, connection.execute(SUMS, (root,)))
    for level in levels or ():
        text = level.text
        within = f"{SUMS} AND (level = ? OR (level > ? AND level < ?))"
        add_sums(spent, connection.execute(within, (root, text, f"{text}*", f"{text}+")))
    position, entries, digest, *texts = row
    with reading_row("checkpoints", root):
        (currency, time, ahead), closed = decode_root(texts[0]), decode_closed(texts[1])
    return Checkpoint(str(position), entries, digest, spent, currency, closed, time, ahead)


def load_sums(connection: sqlite3.Connection, root: str, last: SumRow) -> list[SumRow]:
    """Return the next sums of the checkpoint of a root's journal."""
    query = f"{SUMS} AND (level, window_start) > (?, ?) ORDER BY level, window_start LIMIT ?"
    return connection.execute(query, (root, *last[:2], SUMS_PAGE)).fetchall()


def write_checkpoint(connection: sqlite3.Connection, root: str, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint in one transaction."""
    sums = [
        (root, level.text, start, cost.information, cost.calls)
        for level, spans in checkpoint.spent.items()
        for start, cost in spans.items()
    ]
    texts = (encode_root(checkpoint), encode_closed(checkpoint.closed))
    summary = (checkpoint.entries, checkpoint.digest, *texts)
    fields = (root, int(checkpoint.position or 0), *summary)
    with transaction(connection):
        query = "SELECT entries FROM checkpoints WHERE root = ?"
        last = connection.execute(query, (root,)).fetchone()
        if last is None or last[0] <= checkpoint.entries:
            connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?)", fields)
            connection.execute("DELETE FROM checkpoint_sums WHERE root = ?", (root,))
            connection.executemany("INSERT INTO checkpoint_sums VALUES (?, ?, ?, ?, ?)", sums)


def drop_checkpointed(connection: sqlite3.Connection, root: str, most: int) -> int:
    """Remove the oldest entries that the checkpoint covers and return their number."""
    checkpointed = (
        f"SELECT entry FROM journal WHERE {OF_ROOT} AND entry <= "  # noqa: S608 - constants
        "(SELECT position FROM checkpoints WHERE root = ?) ORDER BY entry LIMIT ?"
    )
    with transaction(connection):
        delete = f"DELETE FROM journal WHERE entry IN ({checkpointed})"  # noqa: S608 - constants
        return connection.execute(delete, (root, root, most)).rowcount


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what the block does, or take it back."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


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
