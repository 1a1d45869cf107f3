"""How the ledger's values are rows of the SQLite store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from budget_service.ledger.balances import Balance
from budget_service.ledger.currency import Currency
from budget_service.ledger.journal import require_well_formed
from budget_service.ledger.state import DayChange, EntryKind, JournalEntry, Reservation, RootRecord
from budget_service.ledger.values import Account, Cost, Hold
from budget_service.ledger.windows import DaySpan, Window
from budget_service.stores.codec import decode_days, decode_rule, encode_days, encode_rule
from budget_service.stores.damaged_rows import reads

RESERVATION = (
    "reservation_id, account, request_id, query_id, information, calls, "
    "expires_at, paid_release_id, forfeits, holds, unit_id"
)
# All but its number.
JOURNAL = (
    "kind, account, information, calls, unit_id, request_id, release_id, query_id, time, holds, "
    "policy_statement, shared_information, shared_calls, reason, actor, change"
)


def root_row(root: str, record: RootRecord) -> tuple[Any, ...]:
    """Return the row of a root account."""
    each = record.currency
    currency = (each.since, each.next_unit_id, each.next_since)
    chain = (record.entries, record.digest)
    return (root, each.unit_id, record.last_time, record.limits_version, *currency, record.ahead, *chain)


@reads("roots")
def read_root(_root: str, unit_id: str, last_time: int, limits_version: int, *more: Any) -> RootRecord:
    """Return the record of a row of its table."""
    *currency, ahead, entries, digest = more
    return RootRecord(Currency(unit_id, *currency), last_time, limits_version, ahead, entries, digest)


def find_root(connection: sqlite3.Connection, root: str) -> RootRecord:
    """Return what the file says of a root account."""
    row = connection.execute("SELECT * FROM roots WHERE root = ?", (root,)).fetchone()
    return read_root(*row) if row else RootRecord()


@reads("balances")
def read_balance(_level: str, start: int, end: int | None, *rest: Any) -> Balance:
    """Return the balance of a row of its table."""
    spent, reserved, (reserved_since, leaves_at, earlier, rule, *day), today = (
        rest[:2],
        rest[2:4],
        rest[4:10],
        rest[10:],
    )
    return Balance(
        Window(start, end),
        DaySpan(*day),
        decode_rule(rule),
        Cost(*spent),
        Cost(*reserved),
        reserved_since,
        leaves_at,
        decode_days(earlier),
        Cost(*today),
    )


def balance_row(level: Account, balance: Balance) -> tuple[Any, ...]:
    """Return the row of a balance."""
    window, spent, reserved, today = balance.window, balance.spent, balance.reserved, balance.today
    amounts = (spent.information, spent.calls, reserved.information, reserved.calls)
    days = (balance.reserved_since, balance.leaves_at, encode_days(balance.earlier))
    present = (encode_rule(balance.rule), *balance.day, today.information, today.calls)
    return (level.text, window.start, window.end, *amounts, *days, *present)


def day_row(each: DayChange) -> tuple[Any, ...]:
    """Return the row that is added to the sum of a past day."""
    return (each.level.text, each.start, each.end, each.information, each.calls)


@reads("reservations")
def read_reservation(*row: Any) -> Reservation:
    """Return the reservation of the columns RESERVATION."""
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
        account=Account.of_text(account),
        request_id=request_id,
        query_id=query_id,
        held=Cost(information, calls),
        unit_id=unit_id,
        expires_at=expires_at,
        paid_release_id=paid_release_id,
        forfeits=bool(forfeits),
        holds=tuple(Hold(*each) for each in json.loads(holds)),
    )


def reservation_row(each: Reservation) -> tuple[Any, ...]:
    """Return the row of a reservation."""
    ids = (each.account.root, each.reservation_id, each.account.text, each.request_id, each.query_id)
    held = (each.held.information, each.held.calls)
    flags = (each.expires_at, each.paid_release_id, int(each.forfeits))
    return (*ids, *held, *flags, holds_text(each.holds), each.unit_id)


def journal_row(entry: JournalEntry) -> tuple[Any, ...]:
    """Return the row of an entry, without its number."""
    cost = (entry.cost.information, entry.cost.calls, entry.unit_id)
    ids = (entry.request_id, entry.release_id, entry.query_id)
    counted = (entry.time, holds_text(entry.holds), entry.policy_statement)
    each = entry.shared_cost
    shared = (None, None) if each is None else (each.information, each.calls)
    act = (entry.reason, entry.actor, entry.change)
    return (entry.kind.value, entry.account.text, *cost, *ids, *counted, *shared, *act)


@reads("journal")
def read_entry(_number: int, kind: str, account: str, *fields: Any) -> JournalEntry:
    """Return the entry of a row."""
    information, calls, unit_id, request_id, release_id, query_id, time, holds, *more = fields
    policy_statement, *shared, reason, actor, change = more
    entry = JournalEntry(
        kind=EntryKind(kind),
        account=Account.of_text(account),
        cost=Cost(information, calls),
        unit_id=unit_id,
        request_id=request_id,
        release_id=release_id,
        query_id=query_id,
        time=time,
        holds=tuple(Hold(*each) for each in json.loads(holds)),
        policy_statement=policy_statement,
        shared_cost=None if shared[0] is None else Cost(*shared),
        reason=reason,
        actor=actor,
        change=change,
    )
    require_well_formed(entry)
    return entry


def holds_text(holds: Iterable[Hold]) -> str:
    """Return the text of the days that something counts on."""
    return f"[{','.join([_hold_text(hold) for hold in holds])}]"


def _hold_text(hold: Hold) -> str:
    counted = f"{hold.depth},{hold.window_start}"
    return f'[{counted},"{hold.block}"]' if hold.block else f"[{counted}]"
