"""What the PostgreSQL store reads of a whole ledger: its roots, its journal and its balances, page by page.

Each reading is one statement, so that all of it is of one moment.
"""

from __future__ import annotations

from typing import Any

from psycopg import sql

from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Cost
from budget_service.stores import postgres_text as text
from budget_service.stores.interface import BalancePage

ROOTS = sql.SQL("SELECT root FROM gris.roots ORDER BY root")
JOURNAL = sql.SQL(
    "SELECT entry, to_json(each) FROM gris.journal AS each "
    "WHERE root = %s AND entry > %s AND entry <= %s ORDER BY entry LIMIT %s"
)
# The root's own balance, then those below it: between a root and its slash come the levels of other roots, and what
# comes right after the slash is the digit 0.
BALANCES = sql.SQL(
    """
    WITH page AS (
      (SELECT balance FROM gris.balances AS balance WHERE level = %s AND level > %s)
      UNION ALL
      (SELECT balance FROM gris.balances AS balance WHERE level > %s AND level < %s ORDER BY level LIMIT %s)
    )
    SELECT
      (SELECT max(entry) FROM gris.journal WHERE root = %s),
      (SELECT coalesce(json_agg(balance), '[]') FROM page),
      (SELECT coalesce(json_agg(each), '[]') FROM gris.reservations AS each WHERE root = %s)
    """
)
LAST = 2**63 - 1


def journal_parameters(root: str, after: str, until: str, most: int) -> tuple[Any, ...]:
    """Return what JOURNAL is told; a position is the number of the entry."""
    return root, int(after or 0), int(until) if until else LAST, most


def balances_parameters(root: str, after: str, most: int) -> tuple[Any, ...]:
    """Return what BALANCES is told; `after` is the last level of the page before."""
    # Bytes are compared, as PostgreSQL does for these columns.
    first = max(f"{root}/", after, key=str.encode)
    return root, after, first, f"{root}0", most, root, root


def read_entry(row: dict[str, Any]) -> JournalEntry:
    """Return the entry of a row of its table."""
    return JournalEntry(
        kind=EntryKind(row["kind"]),
        account=text.read_account(row["account"]),
        cost=Cost(row["information"], row["calls"]),
        unit_id=row["unit_id"],
        request_id=text.unescaped(row["request_id"]),
        release_id=text.unescaped(row["release_id"]),
        query_id=text.unescaped(row["query_id"]),
        time=row["time"],
        holds=text.read_holds(row["holds"]),
    )


def read_page(row: tuple[Any, ...], most: int) -> BalancePage:
    """Return the page that BALANCES found, in the order of its levels."""
    position, balances, reservations = row
    return BalancePage(
        position="" if position is None else str(position),
        balances=tuple((text.read_account(each["level"]), text.read_balance(each)) for each in balances),
        reservations=tuple(text.read_reservation(each) for each in reservations),
        after=balances[-1]["level"] if len(balances) >= most else "",
    )
