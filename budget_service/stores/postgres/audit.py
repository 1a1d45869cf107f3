"""Reads of a whole ledger in PostgreSQL, page by page: roots, journal and balances; and its checkpoints.

Each read is one statement, so its result is consistent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from operator import itemgetter
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql

from budget_service.ledger.balances import PastDay
from budget_service.ledger.journal import require_well_formed
from budget_service.ledger.state import EntryKind, JournalEntry, RootRecord
from budget_service.ledger.values import Account, Cost
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import Microseconds
from budget_service.stores.checkpoint_pages import add_sums
from budget_service.stores.codec import decode_closed, decode_root, encode_closed, encode_root
from budget_service.stores.damaged_rows import reading_row, reads
from budget_service.stores.interface import BalancePage, MatchingEntries, StoreUnavailableError
from budget_service.stores.postgres import encoding as text
from budget_service.stores.postgres.connections import Session

ROOTS = sql.SQL("SELECT root FROM gris.roots ORDER BY root")
JOURNAL = sql.SQL(
    "SELECT entry, to_json(each) FROM gris.journal AS each "
    "WHERE root = %s AND entry > %s AND entry <= %s ORDER BY entry LIMIT %s"
)
# Those of some levels, each given with a slash at its end, among the next ones.
MATCHING = sql.SQL(
    """
    WITH next AS (
      SELECT * FROM gris.journal WHERE root = %s AND entry > %s ORDER BY entry LIMIT %s
    )
    SELECT
      (SELECT count(*) FROM next), (SELECT max(entry) FROM next),
      (SELECT coalesce(json_agg(each ORDER BY entry), '[]') FROM (
        SELECT * FROM next
        WHERE EXISTS (SELECT FROM unnest(%s::text[]) AS level WHERE starts_with(account || '/', level))
        ORDER BY entry LIMIT %s
      ) AS each)
    """
)
# So many entries are looked through in the time in which one is read.
LOOKED_THROUGH = 20
LATEST = sql.SQL(
    "SELECT entry, to_json(each) FROM gris.journal AS each "
    "WHERE root = %s AND entry < %s ORDER BY entry DESC LIMIT %s"
)
# The root's own balance, then those of its blocks and those below it: elsewhere between a root and its slash come the
# levels of other roots, and what comes right after the slash is the digit 0.
BALANCES = sql.SQL(
    """
    WITH page AS (
      (SELECT balance FROM gris.balances AS balance WHERE level = %s AND level > %s)
      UNION ALL
      SELECT * FROM (
        (SELECT balance FROM gris.balances AS balance WHERE level > %s AND level < %s ORDER BY level LIMIT %s)
        UNION ALL
        (SELECT balance FROM gris.balances AS balance WHERE level > %s AND level < %s ORDER BY level LIMIT %s)
        LIMIT %s
      ) AS next
    )
    SELECT
      (SELECT max(entry) FROM gris.journal WHERE root = %s),
      (SELECT to_json(each) FROM gris.roots AS each WHERE root = %s),
      (SELECT coalesce(json_agg(balance), '[]') FROM page),
      (SELECT coalesce(json_agg(each), '[]') FROM gris.reservations AS each WHERE root = %s AND (
        %s = '' OR account >= (SELECT min(split_part((balance).level, '*', 1)) FROM page)
        AND account < (SELECT max(split_part((balance).level, '*', 1) || '0') FROM page))),
      (SELECT coalesce(json_agg(day), '[]') FROM gris.days AS day
       WHERE level IN (SELECT (balance).level FROM page)),
      coalesce(%s::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    """
)
DROP_CHECKPOINTED = sql.SQL(
    """
    WITH dropped AS (
      DELETE FROM gris.journal WHERE root = %s AND entry IN (
        SELECT entry FROM gris.journal
        WHERE root = %s AND entry <= (SELECT position FROM gris.checkpoints WHERE root = %s) ORDER BY entry LIMIT %s
      ) RETURNING entry
    )
    SELECT count(*) FROM dropped
    """
)
# Large roots have large checkpoints.
CHECKPOINT_TIMEOUT_SECONDS = 60.0

_CHECKPOINT = sql.SQL(
    "SELECT position, entries, digest, currency, closed, "
    "coalesce((SELECT json_agg(each) FROM gris.checkpoint_sums AS each "
    "WHERE each.root = checkpoints.root AND (%s::text[] IS NULL OR each.level = ANY(%s || ARRAY("
    "SELECT level FROM unnest(%s::text[]) AS asked CROSS JOIN LATERAL (SELECT level FROM gris.checkpoint_sums AS own "
    "WHERE own.root = checkpoints.root AND level > asked || '*' AND level < asked || '+') AS blocks)))), '[]') "
    "FROM gris.checkpoints WHERE root = %s"
)
SUMS = sql.SQL(
    "SELECT level, window_start, information, calls FROM gris.checkpoint_sums "
    "WHERE root = %s AND (level, window_start) > (%s, %s) ORDER BY level, window_start LIMIT %s"
)
# The row of the checkpoint stays locked until its sums are replaced too.
_REPLACE = sql.SQL(
    "INSERT INTO gris.checkpoints AS last VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (root) DO UPDATE "
    "SET position = excluded.position, entries = excluded.entries, digest = excluded.digest, "
    "currency = excluded.currency, closed = excluded.closed "
    "WHERE last.entries <= excluded.entries RETURNING root"
)
_FORGET_SUMS = sql.SQL("DELETE FROM gris.checkpoint_sums WHERE root = %s")
_WRITE_SUMS = sql.SQL("COPY gris.checkpoint_sums FROM STDIN")
LAST = 2**63 - 1


def journal_parameters(root: str, after: str, until: str, most: int) -> tuple[Any, ...]:
    """Return the parameters of JOURNAL; a position is the number of the entry."""
    return root, int(after or 0), int(until) if until else LAST, most


def read_matching(row: tuple[Any, ...], most: int) -> MatchingEntries:
    """Return the page that MATCHING found."""
    count, last, found = row
    entries = [(str(each["entry"]), read_entry(each)) for each in found]
    if len(entries) == most:
        return MatchingEntries(entries, entries[-1][0])
    return MatchingEntries(entries, str(last) if count == most * LOOKED_THROUGH else "")


def balances_parameters(root: str, after: str, most: int, clock: Microseconds | None) -> tuple[Any, ...]:
    """Return the parameters of BALANCES; `after` is the last level before, `clock` replaces PostgreSQL's own."""
    # Bytes are compared, as PostgreSQL does for these columns.
    blocks, below = (max(f"{root}{first}", after, key=str.encode) for first in "*/")
    own = (root, after, blocks, f"{root}+", most)
    return *own, below, f"{root}0", most, most, root, root, root, after, clock


@reads("journal", itemgetter("entry"))
def read_entry(row: dict[str, Any]) -> JournalEntry:
    """Return the entry of a row of its table."""
    entry = JournalEntry(
        kind=EntryKind(row["kind"]),
        account=Account.of_text(row["account"]),
        cost=Cost(row["information"], row["calls"]),
        unit_id=row["unit_id"],
        request_id=text.unescaped(row["request_id"]),
        release_id=text.unescaped(row["release_id"]),
        query_id=text.unescaped(row["query_id"]),
        time=row["time"],
        holds=text.read_holds(row["holds"]),
        policy_statement=text.unescaped(row["policy_statement"]),
        shared_cost=_shared_cost(row["shared_information"], row["shared_calls"]),
        reason=text.unescaped(row["reason"]),
        actor=text.unescaped(row["actor"]),
        change=row["change"],
    )
    require_well_formed(entry)
    return entry


def _shared_cost(information: int | None, calls: int | None) -> Cost | None:
    return None if information is None or calls is None else Cost(information, calls)


def read_page(row: tuple[Any, ...], most: int) -> BalancePage:
    """Return the page that BALANCES found, in the order of its levels."""
    position, root, balances, reservations, days, clock = row
    past: dict[Account, list[PastDay]] = {}
    for each in days:
        past.setdefault(Account.of_text(each["level"]), []).append(text.read_past_day(each))
    return BalancePage(
        position="" if position is None else str(position),
        root=text.read_root(root) if root else RootRecord(),
        clock=clock,
        balances=tuple((Account.of_text(each["level"]), text.read_balance(each)) for each in balances),
        past=past,
        reservations=tuple(text.read_reservation(each) for each in reservations),
        after=balances[-1]["level"] if len(balances) >= most else "",
    )


async def load_checkpoint(
    connection: AsyncConnection[Any], root: str, levels: Sequence[Account] | None = None
) -> Checkpoint:
    """Return the checkpoint of a root's journal with all sums, or those of some levels and their blocks."""
    names = None if levels is None else [each.text for each in levels]
    return _read_checkpoint(
        root, await (await connection.execute(_CHECKPOINT, (names, names, names, root))).fetchone()
    )


def _read_checkpoint(root: str, found: tuple[Any, ...] | None) -> Checkpoint:
    if found is None:
        return Checkpoint()
    position, entries, digest, root_text, closed_text, sums = found
    spent: dict[Account, dict[Microseconds, Cost]] = {}
    rows = ((each["level"], each["window_start"], each["information"], each["calls"]) for each in sums)
    add_sums(spent, rows)
    with reading_row("checkpoints", root):
        (currency, time, ahead), closed = decode_root(root_text), decode_closed(closed_text)
    return Checkpoint(str(position), entries, digest, spent, currency, closed, time, ahead)


async def write_checkpoint(session: Session, root: str, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint in one transaction. Raises StoreUnavailableError."""
    texts = (encode_root(checkpoint), encode_closed(checkpoint.closed))
    summary = (checkpoint.entries, checkpoint.digest, *texts)
    fields = (root, int(checkpoint.position or 0), *summary)
    async with _at_length(session) as connection:
        if await (await connection.execute(_REPLACE, fields)).fetchone() is None:
            return
        await connection.execute(_FORGET_SUMS, (root,))
        async with connection.cursor().copy(_WRITE_SUMS) as copy:
            for level, spans in checkpoint.spent.items():
                for start, cost in spans.items():
                    await copy.write_row((root, level.text, start, cost.information, cost.calls))


@asynccontextmanager
async def _at_length(session: Session) -> AsyncIterator[AsyncConnection[Any]]:
    """Give a transaction that may take its time."""
    try:
        with session.given(CHECKPOINT_TIMEOUT_SECONDS):
            async with session.connection.transaction():
                await session.connection.execute("SET LOCAL statement_timeout = 0")
                yield session.connection
    except psycopg.Error as error:
        # A checkpoint that was written without an answer does no harm: the next one replaces it.
        raise StoreUnavailableError(f"a checkpoint: {type(error).__name__}") from None
