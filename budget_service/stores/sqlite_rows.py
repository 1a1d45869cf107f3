"""The tables of the SQLite store: how a snapshot is read and a change is written.

Accounts and levels are written as their path joined by slashes, times in microseconds.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from budget_service.ledger.balances import Balance
from budget_service.ledger.limits import StoredLimits, limit_text, parse_limit
from budget_service.ledger.requests import BudgetRequest, Charge, Request, Reserve, SetLimits, payer_of
from budget_service.ledger.state import (
    MAX_EXPIRED_AT_ONCE,
    Change,
    Hold,
    JournalEntry,
    PaidQuery,
    Payment,
    Remembered,
    Reservation,
    RootRecord,
    Snapshot,
)
from budget_service.ledger.values import Account, Cost, LevelLimit, Limit
from budget_service.ledger.windows import Microseconds, Window
from budget_service.stores.codec import decode_days, decode_outcome, encode_days, encode_outcome

SCHEMA_VERSION = 3

SCHEMA = (
    "CREATE TABLE roots (root TEXT PRIMARY KEY, unit_id TEXT NOT NULL, last_time INTEGER NOT NULL, "
    "limits_version INTEGER NOT NULL) WITHOUT ROWID",
    # A limit is written as `limits.limit_text`.
    "CREATE TABLE limits (root TEXT NOT NULL, level TEXT NOT NULL, limit_text TEXT NOT NULL, "
    "PRIMARY KEY (root, level)) WITHOUT ROWID",
    """CREATE TABLE balances (
        level TEXT PRIMARY KEY, window_start INTEGER NOT NULL, window_end INTEGER,
        spent_information INTEGER NOT NULL, spent_calls INTEGER NOT NULL,
        reserved_information INTEGER NOT NULL, reserved_calls INTEGER NOT NULL,
        reserved_since INTEGER NOT NULL, leaves_at INTEGER, earlier TEXT NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE reservations (
        root TEXT NOT NULL, reservation_id TEXT NOT NULL, account TEXT NOT NULL, request_id TEXT NOT NULL,
        query_id TEXT NOT NULL, information INTEGER NOT NULL, calls INTEGER NOT NULL, expires_at INTEGER NOT NULL,
        paid_release_id TEXT NOT NULL, forfeits INTEGER NOT NULL, holds TEXT NOT NULL, unit_id TEXT NOT NULL,
        PRIMARY KEY (root, reservation_id)) WITHOUT ROWID""",
    "CREATE INDEX reservations_by_end ON reservations (root, expires_at, reservation_id)",
    """CREATE TABLE outcomes (
        root TEXT NOT NULL, request_id TEXT NOT NULL, fingerprint TEXT NOT NULL, outcome TEXT NOT NULL,
        keep_until INTEGER NOT NULL, PRIMARY KEY (root, request_id)) WITHOUT ROWID""",
    "CREATE INDEX outcomes_by_age ON outcomes (root, keep_until)",
    """CREATE TABLE payments (
        account TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, release_id TEXT NOT NULL,
        window_start INTEGER NOT NULL, keep_until INTEGER, PRIMARY KEY (account, kind, id)) WITHOUT ROWID""",
    "CREATE INDEX payments_by_age ON payments (account, keep_until)",
    """CREATE TABLE journal (
        entry INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, account TEXT NOT NULL,
        information INTEGER NOT NULL, calls INTEGER NOT NULL, unit_id TEXT NOT NULL, request_id TEXT NOT NULL,
        release_id TEXT NOT NULL, query_id TEXT NOT NULL, time INTEGER NOT NULL, holds TEXT NOT NULL)""",
    # The entries of one root in order; an index holds the number of the row.
    "CREATE INDEX journal_by_root ON journal (substr(account, 1, instr(account || '/', '/') - 1))",
    """CREATE TRIGGER journal_is_not_changed BEFORE UPDATE ON journal
        BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END""",
    """CREATE TRIGGER journal_is_not_shortened BEFORE DELETE ON journal
        BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END""",
)

# What makes a schema into the next one.
MIGRATIONS = {
    1: (
        "ALTER TABLE reservations ADD COLUMN unit_id TEXT NOT NULL DEFAULT ''",
        # A reservation used to fix the currency of its root.
        "UPDATE reservations SET unit_id = (SELECT unit_id FROM roots WHERE roots.root = reservations.root)",
    ),
    2: (
        "ALTER TABLE balances ADD COLUMN reserved_since INTEGER NOT NULL DEFAULT 0",
        # Only calendar windows were known.
        "UPDATE balances SET reserved_since = window_start",
        "ALTER TABLE balances ADD COLUMN leaves_at INTEGER",
        "ALTER TABLE balances ADD COLUMN earlier TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE roots ADD COLUMN limits_version INTEGER NOT NULL DEFAULT 0",
        SCHEMA[1],
        "CREATE INDEX journal_by_root ON journal (substr(account, 1, instr(account || '/', '/') - 1))",
    ),
}

# What is out of date goes a little at a time, faster than it comes, so that no request pays for a month.
PURGED_AT_ONCE = 20

RESERVATION = (
    "reservation_id, account, request_id, query_id, information, calls, "
    "expires_at, paid_release_id, forfeits, holds, unit_id"
)

INSERT_RESERVATION = "INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_ENTRY = "INSERT INTO journal VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def load_root(connection: sqlite3.Connection, root: str) -> RootRecord:
    """Return what is kept once for a root account."""
    row = connection.execute(
        "SELECT unit_id, last_time, limits_version FROM roots WHERE root = ?", (root,)
    ).fetchone()
    return RootRecord(*row) if row else RootRecord()


def load_for_request(
    connection: sqlite3.Connection, root: RootRecord, request: Request, now: Microseconds
) -> Snapshot:
    """Return all that the rules need to decide a request."""
    remembered = _load_remembered(connection, request)
    if remembered is not None and now < remembered.keep_until:
        return Snapshot(root=root, remembered=remembered)
    if isinstance(request, SetLimits):
        return Snapshot(root=root, stored_limits=_count_limits(connection, request.account.root))
    due = _load_due(connection, request.account.root, now)
    reservation = _load_named_reservation(connection, request)
    named = () if reservation is None else (reservation,)
    return Snapshot(
        root=root,
        balances=_load_balances(connection, {*_levels(request.levels), *_held_levels((*due, *named))}),
        due=due,
        reservation=reservation,
        query_paid=_load_query_paid(connection, request, reservation),
        release_paid_in=_load_release_paid(connection, request),
    )


def load_for_reading(
    connection: sqlite3.Connection,
    root: RootRecord,
    account: Account,
    levels: tuple[LevelLimit, ...],
    now: Microseconds,
) -> Snapshot:
    """Return all that the rules need to state the balances of an account."""
    due = _load_due(connection, account.root, now)
    return Snapshot(root=root, due=due, balances=_load_balances(connection, {*_levels(levels)}))


def load_reservation(
    connection: sqlite3.Connection, account: Account, reservation_id: str
) -> Reservation | None:
    """Return a reservation of this account that has not been ended, lapsed or not."""
    query = f"SELECT {RESERVATION} FROM reservations WHERE root = ? AND reservation_id = ?"  # noqa: S608 - a constant
    row = connection.execute(query, (account.root, reservation_id)).fetchone()
    reservation = _reservation(*row) if row else None
    return reservation if reservation is not None and reservation.account == account else None


def load_reservations(connection: sqlite3.Connection, root: str) -> tuple[Reservation, ...]:
    """Return every reservation of a root that has not been ended, lapsed or not."""
    query = f"SELECT {RESERVATION} FROM reservations WHERE root = ?"  # noqa: S608 - a constant
    return tuple(_reservation(*row) for row in connection.execute(query, (root,)))


def write_change(connection: sqlite3.Connection, request: Request, change: Change) -> None:
    """Write all of a change; the caller begins and ends the transaction."""
    root = request.account.root
    record = change.root
    fields = (root, record.unit_id, record.last_time, record.limits_version)
    connection.execute("INSERT OR REPLACE INTO roots VALUES (?, ?, ?, ?)", fields)
    rows = [_balance_row(level, balance) for level, balance in change.balances.items()]
    connection.executemany("INSERT OR REPLACE INTO balances VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    ended = [(root, id_) for id_ in change.ended]
    connection.executemany("DELETE FROM reservations WHERE root = ? AND reservation_id = ?", ended)
    opened = () if change.opened is None else (change.opened,)
    connection.executemany(INSERT_RESERVATION, map(_reservation_row, opened))
    connection.executemany(INSERT_ENTRY, map(_journal_row, change.journal))
    if change.payment is not None and not isinstance(request, SetLimits):
        _write_payment(connection, payer_of(request), change.payment)
    _write_limits(connection, root, change.limits)
    _write_outcome(connection, request, change.remembered)
    _purge(connection, request, record.last_time)


def load_limits(connection: sqlite3.Connection, account: Account) -> StoredLimits:
    """Return the limits that are set on the levels of an account."""
    version = load_root(connection, account.root).limits_version
    if not version:
        return StoredLimits()
    query = "SELECT limit_text FROM limits WHERE root = ? AND level = ?"
    levels = (account.level(depth) for depth in range(1, account.depth + 1))
    rows = ((level, connection.execute(query, (account.root, level.text)).fetchone()) for level in levels)
    return StoredLimits(version, {level: parse_limit(row[0]) for level, row in rows if row})


def _count_limits(connection: sqlite3.Connection, root: str) -> int:
    row: tuple[int] = connection.execute("SELECT count(*) FROM limits WHERE root = ?", (root,)).fetchone()
    return row[0]


def _write_limits(
    connection: sqlite3.Connection, root: str, limits: tuple[tuple[Account, Limit | None], ...]
) -> None:
    removed = [(root, level.text) for level, limit in limits if limit is None]
    stored = [(root, level.text, limit_text(limit)) for level, limit in limits if limit is not None]
    connection.executemany("DELETE FROM limits WHERE root = ? AND level = ?", removed)
    connection.executemany("INSERT OR REPLACE INTO limits VALUES (?, ?, ?)", stored)


def _load_remembered(connection: sqlite3.Connection, request: Request) -> Remembered | None:
    query = "SELECT fingerprint, outcome, keep_until FROM outcomes WHERE root = ? AND request_id = ?"
    row = connection.execute(query, (request.account.root, request.request_id)).fetchone()
    return Remembered(row[0], decode_outcome(row[1]), row[2]) if row else None


def _load_due(connection: sqlite3.Connection, root: str, now: Microseconds) -> tuple[Reservation, ...]:
    query = (
        f"SELECT {RESERVATION} FROM reservations WHERE root = ? AND expires_at <= ? "  # noqa: S608 - a constant
        "ORDER BY expires_at, reservation_id LIMIT ?"
    )
    rows = connection.execute(query, (root, now, MAX_EXPIRED_AT_ONCE))
    return tuple(_reservation(*row) for row in rows)


def _load_named_reservation(connection: sqlite3.Connection, request: BudgetRequest) -> Reservation | None:
    if isinstance(request, Reserve):
        return None
    return load_reservation(connection, request.account, request.reservation_id)


def _load_balances(connection: sqlite3.Connection, levels: Iterable[Account]) -> dict[Account, Balance]:
    query = "SELECT * FROM balances WHERE level = ?"
    rows = ((level, connection.execute(query, (level.text,)).fetchone()) for level in levels)
    return {level: read_balance(*row) for level, row in rows if row}


def _load_query_paid(
    connection: sqlite3.Connection, request: BudgetRequest, reservation: Reservation | None
) -> PaidQuery | None:
    if isinstance(request, Reserve | Charge):
        query_id = request.query_id if reservation is None else reservation.query_id
        row = _load_payment(connection, payer_of(request), "query", query_id)
        return PaidQuery(*row) if row else None
    return None


def _load_release_paid(connection: sqlite3.Connection, request: Request) -> Microseconds | None:
    if isinstance(request, Charge):
        row = _load_payment(connection, payer_of(request), "release", request.release_id)
        return row[1] if row else None
    return None


def _load_payment(connection: sqlite3.Connection, payer: str, kind: str, id_: str) -> tuple[str, int] | None:
    query = "SELECT release_id, window_start FROM payments WHERE account = ? AND kind = ? AND id = ?"
    row: tuple[str, int] | None = connection.execute(query, (payer, kind, id_)).fetchone()
    return row


def _write_payment(connection: sqlite3.Connection, payer: str, payment: Payment) -> None:
    named = [("release", payment.release_id)]
    if payment.query_id:
        named.append(("query", payment.query_id))
    rows = [
        (payer, kind, id_, payment.release_id, payment.window_start, payment.keep_until)
        for kind, id_ in named
    ]
    connection.executemany("INSERT OR REPLACE INTO payments VALUES (?, ?, ?, ?, ?, ?)", rows)


def _write_outcome(connection: sqlite3.Connection, request: Request, remembered: Remembered) -> None:
    key = (request.account.root, request.request_id)
    row = (*key, remembered.fingerprint, encode_outcome(remembered.outcome), remembered.keep_until)
    connection.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?)", row)


def _purge(connection: sqlite3.Connection, request: Request, now: Microseconds) -> None:
    payer = "" if isinstance(request, SetLimits) else payer_of(request)
    for table, owner, key, value in (
        ("outcomes", "root", "root, request_id", request.account.root),
        ("payments", "account", "account, kind, id", payer),
    ):
        stale = f"SELECT {key} FROM {table} WHERE {owner} = ? AND keep_until <= ? LIMIT ?"  # noqa: S608 - constants
        delete = f"DELETE FROM {table} WHERE ({key}) IN ({stale})"  # noqa: S608 - constants
        connection.execute(delete, (value, now, PURGED_AT_ONCE))


def _levels(levels: Iterable[LevelLimit]) -> list[Account]:
    return [each.level for each in levels]


def _held_levels(reservations: Iterable[Reservation]) -> list[Account]:
    return [each.account.level(hold.depth) for each in reservations for hold in each.holds]


def read_balance(_level: str, start: int, end: int | None, *rest: Any) -> Balance:
    """Return the balance of a row of its table."""
    *used, reserved_since, leaves_at, earlier = rest
    return Balance(
        Window(start, end), Cost(*used[:2]), Cost(*used[2:]), reserved_since, leaves_at, decode_days(earlier)
    )


def _balance_row(level: Account, balance: Balance) -> tuple[Any, ...]:
    window, spent, reserved = balance.window, balance.spent, balance.reserved
    amounts = (spent.information, spent.calls, reserved.information, reserved.calls)
    days = (balance.reserved_since, balance.leaves_at, encode_days(balance.earlier))
    return (level.text, window.start, window.end, *amounts, *days)


def _reservation(*row: Any) -> Reservation:
    (
        id_,
        account,
        request_id,
        query_id,
        information,
        calls,
        expires_at,
        paid_release_id,
        forfeits,
        holds,
        unit_id,
    ) = row
    return Reservation(
        reservation_id=id_,
        account=Account(tuple(account.split("/"))),
        request_id=request_id,
        query_id=query_id,
        held=Cost(information, calls),
        unit_id=unit_id,
        expires_at=expires_at,
        paid_release_id=paid_release_id,
        forfeits=bool(forfeits),
        holds=tuple(Hold(*each) for each in json.loads(holds)),
    )


def _reservation_row(each: Reservation) -> tuple[Any, ...]:
    ids = (each.account.root, each.reservation_id, each.account.text, each.request_id, each.query_id)
    held = (each.held.information, each.held.calls)
    flags = (each.expires_at, each.paid_release_id, int(each.forfeits))
    return (*ids, *held, *flags, _holds_text(each.holds), each.unit_id)


def _journal_row(entry: JournalEntry) -> tuple[Any, ...]:
    cost = (entry.cost.information, entry.cost.calls, entry.unit_id)
    ids = (entry.request_id, entry.release_id, entry.query_id)
    return (entry.kind.value, entry.account.text, *cost, *ids, entry.time, _holds_text(entry.holds))


def _holds_text(holds: Iterable[Hold]) -> str:
    return json.dumps([[hold.depth, hold.window_start] for hold in holds], separators=(",", ":"))
