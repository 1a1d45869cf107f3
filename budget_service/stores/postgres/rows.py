"""Rows of a ledger in PostgreSQL: one round trip locks a root and reads, a second one writes and commits.

READ COMMITTED is enough for that: each statement sees what was committed before it began, so what is read after the
lock was taken is all that the root has, and nobody else changes it until the lock is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec.json import encode
from psycopg.pq.abc import PGresult

from budget_service.ledger.windows import Microseconds
from budget_service.stores.interface import OutcomeUnknownError
from budget_service.stores.postgres.connections import OTHERS_WERE_QUICKER, Session
from budget_service.stores.postgres.round_trip import Statement, Values
from budget_service.stores.row_map import Found, OvertakenError, Put, Range, RowKey, Writes
from budget_service.stores.rows import RootRow, text_of

BEGIN = Statement.of("BEGIN")
# All readings of such a transaction are of one moment.
BEGIN_READING = Statement.of("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
COMMIT = Statement.of("COMMIT")
# Only the session that has locked the row of a root changes anything of that root.
LOCK = Statement.of("SELECT FROM gris.rows WHERE root = %(root)s AND key = 'roots' FOR UPDATE")
ADD_ROOT = Statement.of(
    "INSERT INTO gris.rows VALUES (%(root)s, 'roots', %(new)s, NULL) ON CONFLICT DO NOTHING"
)
REMOVE_ROOT = Statement.of("DELETE FROM gris.rows WHERE root = %(root)s AND key = 'roots'")
# The last row is the time.
READ = Statement.of(
    """
    SELECT each.root, each.key, each.text
    FROM json_to_recordset(%(keys)s::json) AS asked (root text, key text)
    CROSS JOIN LATERAL (
      SELECT * FROM gris.rows WHERE rows.root = asked.root AND rows.key = asked.key
    ) AS each
    UNION ALL
    SELECT each.root, each.key, each.text
    FROM json_to_recordset(%(ranges)s::json) AS asked (root text, after text, until text, at_most bigint)
    CROSS JOIN LATERAL (
      SELECT * FROM gris.rows WHERE rows.root = asked.root AND rows.key > asked.after AND rows.key < asked.until
      ORDER BY rows.key LIMIT asked.at_most
    ) AS each
    UNION ALL
    SELECT '', '', coalesce(%(clock)s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)::text
    """
)
_ROWS = "json_to_recordset(%(rows)s::json) AS each (root text, key text, text text, keep_until bigint)"
# One whose key is taken is a fault.
ADD = Statement.of(f"INSERT INTO gris.rows SELECT root, key, text, keep_until FROM {_ROWS}")  # noqa: S608
PUT = Statement.of(
    f"INSERT INTO gris.rows SELECT root, key, text, keep_until FROM {_ROWS} "  # noqa: S608 - a constant
    "ON CONFLICT (root, key) DO UPDATE SET text = excluded.text, keep_until = excluded.keep_until"
)
DELETE = Statement.of(
    f"DELETE FROM gris.rows USING {_ROWS} WHERE rows.root = each.root AND rows.key = each.key"  # noqa: S608
)
APPEND = Statement.of(
    "INSERT INTO gris.journal SELECT root, number, text "
    "FROM json_to_recordset(%(rows)s::json) AS each (root text, number bigint, text text)"
)
PURGE = Statement.of(
    "DELETE FROM gris.rows WHERE ctid = ANY (ARRAY(SELECT ctid FROM gris.rows WHERE root = %(root)s "
    "AND keep_until <= %(now)s ORDER BY keep_until LIMIT %(most)s))"
)


class PostgresReading:
    """Reads without a lock; see `RowReading`. What needs several readings begins again, in a transaction."""

    def __init__(self, session: Session, clock: Microseconds | None) -> None:
        self._session = session
        self._clock = clock
        self._has_read = False
        self._is_begun = False

    async def read(self, keys: Collection[RowKey], ranges: Sequence[Range] = ()) -> Found:
        """Return rows; see `RowReading`."""
        if self._has_read and not self._is_begun:
            self._is_begun, self._has_read = True, False
            raise OvertakenError
        begun: list[tuple[Statement, Values]] = []
        if self._is_begun and not self._has_read:
            begun.append((BEGIN_READING, {}))
        self._has_read = True
        *_, found = await self._session.together(*begun, (READ, _asked(keys, ranges, self._clock)))
        return _found(found)

    async def end(self) -> None:
        """End the transaction, if one was begun."""
        if self._is_begun:
            await self._session.together((COMMIT, {}))


class PostgresTransaction:
    """A transaction that locks a root with its first reading; see `RowTransaction`.

    `may_have_an_effect` as soon as the commit is sent.
    """

    def __init__(self, session: Session, root: str, clock: Microseconds | None) -> None:
        self.may_have_an_effect = False
        self._session = session
        self._root = root
        self._clock = clock
        self._is_locked = False
        self._is_new = False

    async def read(self, keys: Collection[RowKey], ranges: Sequence[Range] = ()) -> Found:
        """Return rows; see `RowTransaction`."""
        reading: tuple[Statement, Values] = (READ, _asked(keys, ranges, self._clock))
        if self._is_locked:
            (found,) = await self._session.together(reading)
            return _found(found)
        root: Values = {"root": self._root, "new": text_of(RootRow())}
        _, locked, found = await self._session.together((BEGIN, {}), (LOCK, root), reading)
        if not locked.ntuples:
            # Somebody else may make it at the same time, and change it. Only who has added it may remove it again.
            added, _, found = await self._session.together((ADD_ROOT, root), (LOCK, root), reading)
            self._is_new = added.command_tuples == 1
        self._is_locked = True
        return _found(found)

    async def commit(self, writes: Writes | None, committed: Callable[[], None]) -> bool:
        """Write all and commit; see `RowTransaction`.

        A commit without changes waits for the standbys as any other does, because the lock was a change: a replay
        acknowledges nothing that a fail-over could still lose.
        """
        if self._session.was_ended:
            # This service was held up, and PostgreSQL let others go on; nothing was sent.
            return False
        sent: list[tuple[Statement, Values]] = []
        if writes is not None:
            sent = _written(writes)
        elif self._is_new:
            # A root that was only asked for is not there.
            sent.append((REMOVE_ROOT, {"root": self._root}))
        self.may_have_an_effect = True
        try:
            *_, ended = await self._session.together(*sent, (COMMIT, {}))
        except OTHERS_WERE_QUICKER:
            return False
        if ended.command_status != b"COMMIT":
            raise OutcomeUnknownError("PostgreSQL did not say that it has committed")
        committed()
        return True


def _asked(keys: Collection[RowKey], ranges: Sequence[Range], clock: Microseconds | None) -> Values:
    named = [{"root": root, "key": key} for root, key in dict.fromkeys(keys)]
    return {"keys": encode(named), "ranges": encode([each._asdict() for each in ranges]), "clock": clock}


def _found(result: PGresult) -> Found:
    rows = [[result.get_value(row, column) or b"" for column in range(3)] for row in range(result.ntuples)]
    if not rows:
        raise OutcomeUnknownError("PostgreSQL has loaded nothing")
    *found, (_, _, clock) = rows
    return Found(int(clock), {(root.decode(), key.decode()): text.decode() for root, key, text in found})


def _written(writes: Writes) -> list[tuple[Statement, Values]]:
    new, puts = ([_row(each) for each in writes.puts if each.is_new is is_new] for is_new in (True, False))
    deletes = [{"root": root, "key": key} for root, key in writes.deletes]
    appends = [each._asdict() for each in writes.appends]
    parts = ((DELETE, deletes), (ADD, new), (PUT, puts), (APPEND, appends))
    sent: list[tuple[Statement, Values]] = [
        (statement, {"rows": encode(rows)}) for statement, rows in parts if rows
    ]
    for root, now in writes.times.items():
        sent.append((PURGE, {"root": root, "now": now, "most": writes.purged}))
    return sent


def _row(put: Put) -> Mapping[str, Any]:
    root, key = put.key
    return {"root": root, "key": key, "text": put.text, "keep_until": put.keep_until}
