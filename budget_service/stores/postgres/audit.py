"""Reads of a whole ledger in PostgreSQL, page by page: roots, journal, base and balances; and the writes of a trim.

Each is one statement, so its result is consistent.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from psycopg import sql

from budget_service.ledger.balances import PastDay
from budget_service.ledger.journal import require_well_formed
from budget_service.ledger.state import EntryKind, JournalEntry, RootRecord
from budget_service.ledger.values import Account, Cost
from budget_service.ledger.windows import Microseconds
from budget_service.stores.damaged_rows import reads
from budget_service.stores.interface import BalancePage
from budget_service.stores.postgres import encoding as text

ROOTS = sql.SQL("SELECT root FROM gris.roots ORDER BY root")
JOURNAL = sql.SQL(
    "SELECT entry, to_json(each) FROM gris.journal AS each "
    "WHERE root = %s AND entry > %s AND entry <= %s ORDER BY entry LIMIT %s"
)
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
BASE = sql.SQL("SELECT base FROM gris.bases WHERE root = %s")
WRITE_BASE = sql.SQL(
    "INSERT INTO gris.bases AS last VALUES (%s, %s, %s, %s) ON CONFLICT (root) DO UPDATE "
    "SET position = excluded.position, entries = excluded.entries, base = excluded.base "
    "WHERE last.entries < excluded.entries RETURNING root"
)
DROP_TRIMMED = sql.SQL(
    """
    WITH dropped AS (
      DELETE FROM gris.journal WHERE root = %s AND entry IN (
        SELECT entry FROM gris.journal
        WHERE root = %s AND entry <= (SELECT position FROM gris.bases WHERE root = %s) ORDER BY entry LIMIT %s
      ) RETURNING entry
    )
    SELECT count(*) FROM dropped
    """
)
LAST = 2**63 - 1


def journal_parameters(root: str, after: str, until: str, most: int) -> tuple[Any, ...]:
    """Return the parameters of JOURNAL; a position is the number of the entry."""
    return root, int(after or 0), int(until) if until else LAST, most


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
