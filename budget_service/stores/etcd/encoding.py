"""How the ledger's values are JSON in etcd."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, json

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.currency import Currency
from budget_service.ledger.journal import require_well_formed
from budget_service.ledger.state import (
    EntryKind,
    JournalEntry,
    PaidQuery,
    Payment,
    Reservation,
    RootRecord,
    StoredOutcome,
)
from budget_service.ledger.values import Account, Cost, Hold
from budget_service.ledger.windows import DaySpan, Microseconds, Window
from budget_service.stores.codec import (
    decode_days,
    decode_outcome,
    decode_rule,
    encode_days,
    encode_outcome,
    encode_rule,
)
from budget_service.stores.damaged_rows import reads


class Root(Struct, frozen=True, gc=False):
    """The record of a root account, the number of its last journal entry, and whether a change is pending."""

    record: RootRecord = RootRecord()
    entries: int = 0
    is_pending: bool = False


def key_text(key: bytes) -> str:
    """Return what names a damaged value."""
    return key.decode(errors="replace")


def root_text(root: Root) -> bytes:
    """Return the text of a root's record."""
    record, currency = root.record, root.record.currency
    times = [record.last_time, record.limits_version, record.ahead]
    units = [currency.unit_id, currency.since, currency.next_unit_id, currency.next_since]
    return json.encode([*times, *units, root.entries, int(root.is_pending)])


@reads("roots", key_text)
def read_root(_key: bytes, text: bytes) -> Root:
    """Return the record of a root from its text."""
    last_time, limits_version, ahead, *units, entries, is_pending = json.decode(text)
    return Root(RootRecord(Currency(*units), last_time, limits_version, ahead), entries, bool(is_pending))


def balance_text(balance: Balance) -> bytes:
    """Return the text of a balance."""
    window, spent, reserved, today = balance.window, balance.spent, balance.reserved, balance.today
    amounts = [*_amounts(spent), *_amounts(reserved), *_amounts(today)]
    days = [balance.reserved_since, balance.leaves_at, encode_days(balance.earlier)]
    return json.encode([window.start, window.end, *balance.day, encode_rule(balance.rule), *amounts, *days])


@reads("balances", key_text)
def read_balance(_key: bytes, text: bytes) -> Balance:
    """Return the balance of a text."""
    start, end, day_start, day_end, rule, *amounts, since, leaves_at, earlier = json.decode(text)
    spent, reserved, today = (Cost(*amounts[first : first + 2]) for first in (0, 2, 4))
    return Balance(
        Window(start, end),
        DaySpan(day_start, day_end),
        decode_rule(rule),
        spent,
        reserved,
        since,
        leaves_at,
        decode_days(earlier),
        today,
    )


def day_text(day: PastDay) -> bytes:
    """Return the text of a past day, whose start is in its key."""
    return json.encode([day.end, *_amounts(day.spent)])


@reads("days", key_text)
def read_day(key: bytes, text: bytes) -> PastDay:
    """Return the past day of a key and its text."""
    end, *amounts = json.decode(text)
    return PastDay(int(key.rpartition(b"\0")[2]), end, Cost(*amounts))


def outcome_text(each: StoredOutcome) -> bytes:
    """Return the text of an answer that is remembered."""
    return json.encode([each.keep_until, each.fingerprint, encode_outcome(each.outcome)])


@reads("outcomes", key_text)
def read_outcome(_key: bytes, text: bytes) -> StoredOutcome:
    """Return the answer of a text."""
    keep_until, fingerprint, outcome = json.decode(text)
    return StoredOutcome(fingerprint, decode_outcome(outcome), keep_until)


def payment_text(each: Payment) -> bytes:
    """Return the text of a payment."""
    return json.encode([each.keep_until, each.release_id, each.window_start])


@reads("payments", key_text)
def read_payment(_key: bytes, text: bytes) -> PaidQuery:
    """Return what was paid for from its text."""
    _, release_id, window_start = json.decode(text)
    return PaidQuery(release_id, window_start)


@reads("outcomes and payments", key_text)
def kept_until(_key: bytes, text: bytes) -> Microseconds | None:
    """Return until when an answer or a payment counts, None for good."""
    until: Microseconds | None = json.decode(text)[0]
    return until


def reservation_text(each: Reservation) -> bytes:
    """Return the text of a reservation."""
    ids = [each.reservation_id, each.account.text, each.request_id, each.query_id]
    held = [*_amounts(each.held), each.unit_id, each.expires_at, each.paid_release_id, int(each.forfeits)]
    return json.encode([*ids, *held, each.holds])


@reads("reservations", key_text)
def read_reservation(_key: bytes, text: bytes) -> Reservation:
    """Return the reservation of a text."""
    id_, account, request_id, query_id, information, calls, unit_id, *rest = json.decode(text)
    expires_at, paid_release_id, forfeits, holds = rest
    return Reservation(
        reservation_id=id_,
        account=read_account(account),
        request_id=request_id,
        query_id=query_id,
        held=Cost(information, calls),
        unit_id=unit_id,
        expires_at=expires_at,
        paid_release_id=paid_release_id,
        forfeits=bool(forfeits),
        holds=_holds(holds),
    )


def entries_text(entries: Iterable[JournalEntry]) -> bytes:
    """Return the text of the journal entries of one change."""
    return json.encode([_entry(each) for each in entries])


@reads("journal", key_text)
def read_entries(key: bytes, text: bytes) -> list[tuple[int, JournalEntry]]:
    """Return the numbered entries of a key and its text."""
    entries = [_read_entry(each) for each in json.decode(text)]
    first = int(key.rpartition(b"/")[2]) - len(entries) + 1
    return list(enumerate(entries, first))


def _entry(entry: JournalEntry) -> list[Any]:
    named = [entry.kind.value, entry.account.text, *_amounts(entry.cost), entry.unit_id]
    ids = [entry.request_id, entry.release_id, entry.query_id]
    shared = None if entry.shared_cost is None else _amounts(entry.shared_cost)
    return [*named, *ids, entry.time, entry.holds, entry.policy_statement, shared, entry.reason]


def _read_entry(row: list[Any]) -> JournalEntry:
    kind, account, information, calls, unit_id, request_id, release_id, query_id, time, holds, *more = row
    policy_statement, shared, reason = more
    entry = JournalEntry(
        kind=EntryKind(kind),
        account=read_account(account),
        cost=Cost(information, calls),
        unit_id=unit_id,
        request_id=request_id,
        release_id=release_id,
        query_id=query_id,
        time=time,
        holds=_holds(holds),
        policy_statement=policy_statement,
        shared_cost=None if shared is None else Cost(*shared),
        reason=reason,
    )
    require_well_formed(entry)
    return entry


def read_account(text: str) -> Account:
    """Return an account from its path joined by slashes."""
    return Account(tuple(text.split("/")))


def _holds(rows: Iterable[Sequence[int]]) -> tuple[Hold, ...]:
    return tuple(Hold(depth, start) for depth, start in rows)


def _amounts(cost: Cost) -> tuple[int, int]:
    return cost.information, cost.calls
