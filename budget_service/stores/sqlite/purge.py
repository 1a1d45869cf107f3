"""Removes outdated outcomes and payments from a SQLite ledger, a few with each commit.

They are outdated by the time recorded for their own root. This machine's clock alone is no evidence: if it is wrong,
what was removed would be missed when it is right again, and a retry would be charged twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from budget_service.ledger.windows import SECOND, Microseconds

# Faster than they come, so that no request pays for a month.
PURGED_PER_REQUEST = 4
# Rows of unused roots are skipped every time, so the purge pauses between its passes.
REST: Microseconds = 3600 * SECOND

_FOUND = (
    "SELECT keep_until, rowid, keep_until <= (SELECT last_time FROM roots WHERE root = {root}) FROM {table} "
)
_ROOTS: Mapping[str, str] = {
    "outcomes": "outcomes.root",
    "payments": "substr(account, 1, instr(account || '/', '/') - 1)",
}
# In the order of the index, whose entries end with the number of the row; together they would not be looked up in it.
_SAME = {
    table: f"{_FOUND.format(table=table, root=root)} WHERE keep_until = ? AND rowid > ? ORDER BY rowid LIMIT ?"
    for table, root in _ROOTS.items()
}
_LATER = {
    table: f"{_FOUND.format(table=table, root=root)} WHERE keep_until > ? AND keep_until <= ? "
    "ORDER BY keep_until, rowid LIMIT ?"
    for table, root in _ROOTS.items()
}
_START = (0, 0)


class Purge:
    """Goes through the ledger from the oldest outcomes and payments on, pauses, and begins again."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        # How far each table was gone through; empty while it rests.
        self._positions: dict[str, tuple[int, int]] = dict.fromkeys(_ROOTS, _START)
        self._rests_from: Microseconds = 0

    def continue_purge(self, clock: Microseconds, requests: int) -> None:
        """Remove what is out of date, in proportion to the requests that the open transaction has decided."""
        if not requests:
            return
        if not self._positions:
            # A clock that went back does not show how long the pause was.
            if self._rests_from <= clock < self._rests_from + REST:
                return
            self._positions = dict.fromkeys(_ROOTS, _START)
        for table in tuple(self._positions):
            self._take_page(table, clock, PURGED_PER_REQUEST * requests)
        if not self._positions:
            self._rests_from = clock

    def _take_page(self, table: str, clock: Microseconds, most: int) -> None:
        time, row = self._positions[table]
        page = self._connection.execute(_SAME[table], (time, row, most)).fetchall()
        if len(page) < most:
            page += self._connection.execute(_LATER[table], (time, clock, most - len(page))).fetchall()
        over = [(row,) for _, row, is_over in page if is_over]
        self._connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", over)  # noqa: S608 - constants
        if len(page) < most:
            del self._positions[table]
        else:
            time, row, _ = page[-1]
            self._positions[table] = (time, row)
