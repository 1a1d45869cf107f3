"""The statements of a transaction: lock a root account, load what a batch names, write what it changes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from budget_service.stores.postgres.round_trip import Statement

BEGIN = Statement.of("BEGIN")
COMMIT = Statement.of("COMMIT")
# Only the session that has locked the row of a root changes anything of that root.
LOCK = Statement.of("SELECT FROM gris.roots WHERE root = %(root)s FOR UPDATE")
ADD_ROOT = Statement.of(
    "INSERT INTO gris.roots (root, unit_id, last_time, limits_version) VALUES (%(root)s, '', 0, 0) "
    "ON CONFLICT DO NOTHING"
)
REMOVE_ROOT = Statement.of("DELETE FROM gris.roots WHERE root = %(root)s")
_SQL = Path(__file__).parent / "sql"
LOAD = Statement.of((_SQL / "load.sql").read_text(encoding="utf-8"))
# Apart, since charges need nothing of it.
LOAD_ADMINISTERED = Statement.of((_SQL / "load_administered.sql").read_text(encoding="utf-8"))

_BALANCE = (
    "level, window_start, window_end, spent_information, spent_calls, reserved_information, reserved_calls, "
    "reserved_since, leaves_at, earlier, rule, day_start, day_end, today_information, today_calls"
)
_RESERVATION = (
    "root, reservation_id, account, request_id, query_id, information, calls, unit_id, expires_at, paid_release_id, "
    "forfeits, holds"
)
_ENTRY = (
    "root, kind, account, information, calls, unit_id, request_id, release_id, query_id, time, holds, "
    "policy_statement, shared_information, shared_calls, reason, actor, change"
)


def _given(table: str) -> str:
    """Return the rows of a parameter, which has the name of the table or is made for it."""
    return f"json_populate_recordset(NULL::gris.{table}, %({{}})s::json)"


def _inserted(table: str, columns: str, key: str, parameter: str) -> str:
    """Return the statement that writes rows in place of those with the same key."""
    names = [name for name in columns.split(", ") if name not in key.split(", ")]
    new = ", ".join(f"{name} = excluded.{name}" for name in names)
    given = _given(table).format(parameter)
    return (
        f"INSERT INTO gris.{table} ({columns}) SELECT {columns} FROM {given} "  # noqa: S608 - constants
        f"ON CONFLICT ({key}) DO UPDATE SET {new}"
    )


def _removed(table: str, key: str, parameter: str) -> str:
    """Return the statement that removes the rows with the keys of a parameter."""
    same = " AND ".join(f"kept.{name} = each.{name}" for name in key.split(", "))
    given = _given(table).format(parameter)
    return f"DELETE FROM gris.{table} AS kept USING {given} AS each WHERE {same}"  # noqa: S608 - constants


# By the name of the parameter with the rows. What is removed is never also written, and no row is written twice: the
# parts of one statement do not see each other's effects.
_PARTS = {
    "roots": (
        "UPDATE gris.roots AS kept SET unit_id = each.unit_id, last_time = each.last_time, "  # noqa: S608 - constants
        "limits_version = each.limits_version, currency_since = each.currency_since, "
        "next_unit_id = each.next_unit_id, next_since = each.next_since, ahead = each.ahead, "
        "entries = each.entries, digest = each.digest "
        f"FROM {_given('roots').format('roots')} AS each WHERE kept.root = each.root"
    ),
    "balances": _inserted("balances", _BALANCE, "level", "balances"),
    "days": (
        "INSERT INTO gris.days AS kept SELECT level, day_start, day_end, information, calls "  # noqa: S608 - constants
        f"FROM {_given('days').format('days')} ON CONFLICT (level, day_start) DO UPDATE SET "
        "information = kept.information + excluded.information, calls = kept.calls + excluded.calls"
    ),
    "outcomes": _inserted(
        "outcomes", "root, request_id, fingerprint, outcome, keep_until", "root, request_id", "outcomes"
    ),
    "payments": _inserted(
        "payments", "payer, kind, id, release_id, window_start, keep_until", "payer, kind, id", "payments"
    ),
    "unpaid": _removed("payments", "payer, kind, id", "unpaid"),
    # One whose id is taken is a fault.
    "opened": (
        f"INSERT INTO gris.reservations ({_RESERVATION}) "  # noqa: S608 - constants
        f"SELECT {_RESERVATION} FROM {_given('reservations').format('opened')}"
    ),
    "ended": _removed("reservations", "root, reservation_id", "ended"),
    # Numbered in the order in which they were decided.
    "journal": (
        f"INSERT INTO gris.journal ({_ENTRY}) SELECT {_ENTRY} "  # noqa: S608 - constants
        f"FROM {_given('journal').format('journal')} WITH ORDINALITY ORDER BY ordinality"
    ),
    "limits": _inserted("stored_limits", "root, level, limit_text", "root, level", "limits"),
    "unlimited": _removed("stored_limits", "root, level", "unlimited"),
    "closed": (
        "INSERT INTO gris.closed SELECT root, level "  # noqa: S608 - constants
        f"FROM {_given('closed').format('closed')} ON CONFLICT DO NOTHING"
    ),
    "reopened": _removed("closed", "root, level", "reopened"),
    # What is out of date goes a little at a time, faster than it comes, so that no request pays for a month.
    "purged_outcomes": (
        "DELETE FROM gris.outcomes WHERE ctid = ANY (ARRAY(SELECT ctid FROM gris.outcomes WHERE root = %(root)s "  # noqa: S608
        "AND keep_until <= %(now)s AND request_id <> ALL (ARRAY("
        f"SELECT request_id FROM {_given('outcomes').format('outcomes')})) LIMIT %(purged)s))"
    ),
    "purged_payments": (
        "DELETE FROM gris.payments WHERE ctid = ANY (ARRAY(SELECT ctid FROM gris.payments WHERE payer = ANY ("  # noqa: S608
        "ARRAY(SELECT json_array_elements_text(%(payers)s::json))) AND keep_until <= %(now)s AND NOT (kind, id) IN ("
        f"SELECT kind, id FROM {_given('payments').format('payments')}) LIMIT %(purged)s))"
    ),
}


@cache
def _write(parts: tuple[str, ...]) -> Statement:
    named = ", ".join(f"written_{part} AS ({_PARTS[part]})" for part in parts)
    return Statement.of(f"WITH {named} SELECT")


def writing(parts: Iterable[str]) -> Statement:
    """Return the one statement that writes these parameters; the same ones give the same statement."""
    return _write(tuple(parts))
