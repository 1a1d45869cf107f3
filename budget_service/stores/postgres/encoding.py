"""How the ledger's values are JSON for PostgreSQL: the parameters of `statements`, and what they return."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from msgspec import json

from budget_service.ledger.balances import Balance, Day, PastDay
from budget_service.ledger.currency import Currency
from budget_service.ledger.limits import StoredLimits, limit_text
from budget_service.ledger.state import (
    DayChange,
    JournalEntry,
    PaidQuery,
    Reservation,
    RootRecord,
    StoredOutcome,
)
from budget_service.ledger.values import Account, Cost, Hold
from budget_service.ledger.windows import DaySpan, Microseconds, Window
from budget_service.stores.codec import decode_outcome, decode_rule, encode_rule, encoded
from budget_service.stores.damaged_rows import read_limit, reading_row, reads
from budget_service.stores.transactions import Changes, Loaded, Wanted

# What is out of date goes a little at a time, faster than it comes, so that no request pays for a month.
PURGED_PER_REQUEST = 4


def load_parameters(wanted: Wanted, clock: Microseconds | None, most_due: int) -> dict[str, Any]:
    """Return the parameters of LOAD for one root; `clock` replaces PostgreSQL's own time."""
    (root,) = wanted.roots
    return {
        "root": root,
        "clock": clock,
        "most_due": most_due,
        "levels": json.encode([level.text for level in wanted.levels]),
        "outcomes": json.encode([escaped(request_id) for _, request_id in wanted.outcomes]),
        "payments": json.encode(
            [{"payer": payer, "kind": kind, "id": escaped(id_)} for payer, kind, id_ in wanted.payments]
        ),
        "reservations": json.encode(
            [{"reservation_id": escaped(id_), "payer": payer} for (_, id_), payer in wanted.reservations]
        ),
        "history": wanted.history,
        "blocks": json.encode(list(dict.fromkeys([level.text for level in wanted.blocks]))),
        "opening": bool(wanted.opening),
    }


def administered_parameters(wanted: Wanted) -> dict[str, Any]:
    """Return the parameters of LOAD_ADMINISTERED for one root."""
    (root,) = wanted.roots
    levels = {"limits": wanted.limits, "closed": wanted.closed}
    texts = {name: json.encode([level.text for level in each]) for name, each in levels.items()}
    return {"root": root, **texts}


def read_administered(found: str | bytes, wanted: Wanted, loaded: Loaded) -> None:
    """Add what LOAD_ADMINISTERED found."""
    row = json.decode(found)
    (root,) = wanted.roots
    loaded.stored_limits = {root: row["stored_limits"]}
    loaded.limits = {Account.of_text(level): read_limit(level, each) for level, each in row["limits"] or ()}
    loaded.closed = set(map(Account.of_text, row["closed"] or ()))


def read_loaded(found: str | bytes, wanted: Wanted, most_due: int) -> Loaded:
    """Return what LOAD found."""
    row = json.decode(found)
    (root,) = wanted.roots
    due = tuple([read_reservation(each) for each in row["due"] or ()])
    loaded = Loaded(
        clock=row["clock"],
        roots={} if row["root"] is None else {root: read_root(row["root"])},
        balances={Account.of_text(each["level"]): read_balance(each) for each in row["balances"] or ()},
        payments=dict.fromkeys(wanted.payments),
        due={root: due},
        due_further={root} if len(due) == most_due else set(),
    )
    loaded.note_blocks(wanted.blocks)
    loaded.block_counts = {root: row["block_count"]}
    if wanted.history:
        loaded.past = {}
        for each in row["past"] or ():
            days = loaded.past.setdefault(Account.of_text(each["level"]), {})
            days[each["day_start"]] = read_past_day(each)
        loaded.open = {root: tuple([read_reservation(each) for each in row["open"] or ()])}
    for request_id, fingerprint, outcome, keep_until in row["outcomes"] or ():
        with reading_row("outcomes", request_id):
            remembered = StoredOutcome(fingerprint, decode_outcome(outcome), keep_until)
        loaded.outcomes[root, unescaped(request_id)] = remembered
    for payer, each in row["reservations"] or ():
        reservation = read_reservation(each)
        loaded.reservations[root, reservation.reservation_id] = reservation
        loaded.payments[payer, "query", reservation.query_id] = None
    for each in row["payments"] or ():
        paid = PaidQuery(unescaped(each["release_id"]), each["window_start"])
        loaded.payments[each["payer"], each["kind"], unescaped(each["id"])] = paid
    return loaded


def write_parameters(root: str, changes: Changes, now: Microseconds) -> tuple[list[str], dict[str, Any]]:
    """Return the parts of `statements.writing` that have something to do, and their parameters.

    Args:
        root: The root account that is locked.
        changes: What is written.
        now: The root's time, by which outcomes and payments are out of date.
    """
    rows: dict[str, list[dict[str, Any]]] = {
        "roots": [_root_row(each, record) for each, record in changes.roots.items()],
        "balances": [_balance_row(level, balance) for level, balance in changes.balances.items()],
        "days": [_day_row(each) for each in changes.days.values()],
        "outcomes": [_outcome_row(*key, each) for key, each in changes.outcomes.items()],
        "opened": [_reservation_row(each) for each in changes.reservations.values() if each is not None],
        "ended": [
            {"root": root, "reservation_id": escaped(id_)}
            for (_, id_), each in changes.reservations.items()
            if each is None
        ],
        "journal": [_entry_row(entry) for entry in changes.journal],
        **_payment_rows(changes),
        **_limit_rows(changes),
        **_closed_rows(changes),
    }
    given = {part: json.encode(each) for part, each in rows.items() if each}
    purge = {
        "root": root,
        "now": now,
        "purged": PURGED_PER_REQUEST * len(changes.outcomes),
        "payers": json.encode(list(changes.payers)),
        "payments": b"[]",
        "outcomes": b"[]",
    }
    return [*given, "purged_outcomes", "purged_payments"], purge | given


def parse_limits(version: int, limits: dict[str, str], closed: list[str]) -> StoredLimits:
    """Return the stored limits of an account from their texts by level, with the levels that are closed."""
    return StoredLimits(
        version,
        {Account.of_text(level): read_limit(level, each) for level, each in limits.items()},
        frozenset(map(Account.of_text, closed)),
    )


def escaped(id_: str) -> str:
    r"""Return an id as PostgreSQL can keep it: its texts hold every character but the zero byte.

    >>> escaped("a\0b\\")
    'a\\0b\\\\'
    """
    return id_.replace("\\", "\\\\").replace("\0", "\\0")


def unescaped(text: str) -> str:
    """Return the id that `escaped` has made this text of."""
    if "\\" not in text:
        return text
    return re.sub(r"\\(.)", lambda found: "\0" if found[1] == "0" else found[1], text)


def _payment_rows(changes: Changes) -> dict[str, list[dict[str, Any]]]:
    paid, unpaid = [], []
    for (payer, kind, id_), each in changes.payments.items():
        key = {"payer": payer, "kind": kind, "id": escaped(id_)}
        if each is None:
            unpaid.append(key)
        else:
            fields = {"window_start": each.window_start, "keep_until": each.keep_until}
            paid.append(key | fields | {"release_id": escaped(each.release_id)})
    return {"payments": paid, "unpaid": unpaid}


def _limit_rows(changes: Changes) -> dict[str, list[dict[str, Any]]]:
    limits, unlimited = [], []
    for level, limit in changes.limits.items():
        key = {"root": level.root, "level": level.text}
        if limit is None:
            unlimited.append(key)
        else:
            limits.append(key | {"limit_text": limit_text(limit)})
    return {"limits": limits, "unlimited": unlimited}


def _closed_rows(changes: Changes) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {"closed": [], "reopened": []}
    for level, is_closed in changes.closed.items():
        rows["closed" if is_closed else "reopened"].append({"root": level.root, "level": level.text})
    return rows


def _outcome_row(root: str, request_id: str, each: StoredOutcome) -> dict[str, Any]:
    return {
        "root": root,
        "request_id": escaped(request_id),
        "fingerprint": each.fingerprint,
        "outcome": encoded(each.outcome),
        "keep_until": each.keep_until,
    }


def _root_row(root: str, record: RootRecord) -> dict[str, Any]:
    currency = record.currency
    return {
        "root": root,
        "unit_id": currency.unit_id,
        "last_time": record.last_time,
        "limits_version": record.limits_version,
        "currency_since": currency.since,
        "next_unit_id": currency.next_unit_id,
        "next_since": currency.next_since,
        "ahead": record.ahead,
        "entries": record.entries,
        "digest": record.digest,
    }


@reads("roots", itemgetter("root"))
def read_root(row: Mapping[str, Any]) -> RootRecord:
    """Return the record of a row of its table."""
    chain = (row["entries"], row["digest"])
    return RootRecord(read_currency(row), row["last_time"], row["limits_version"], row["ahead"], *chain)


def _balance_row(level: Account, balance: Balance) -> dict[str, Any]:
    return {
        "level": level.text,
        "window_start": balance.window.start,
        "window_end": balance.window.end,
        "spent_information": balance.spent.information,
        "spent_calls": balance.spent.calls,
        "reserved_information": balance.reserved.information,
        "reserved_calls": balance.reserved.calls,
        "reserved_since": balance.reserved_since,
        "leaves_at": balance.leaves_at,
        "earlier": [
            {"start": day.start, "leaves_at": day.leaves_at} | _cost_fields(day.spent)
            for day in balance.earlier
        ],
        "rule": encode_rule(balance.rule),
        "day_start": balance.day.start,
        "day_end": balance.day.end,
        "today_information": balance.today.information,
        "today_calls": balance.today.calls,
    }


def _day_row(each: DayChange) -> dict[str, Any]:
    amounts = {"information": each.information, "calls": each.calls}
    return {"level": each.level.text, "day_start": each.start, "day_end": each.end} | amounts


def _reservation_row(each: Reservation) -> dict[str, Any]:
    return {
        "root": each.account.root,
        "reservation_id": escaped(each.reservation_id),
        "account": each.account.text,
        "request_id": escaped(each.request_id),
        "query_id": escaped(each.query_id),
        "unit_id": each.unit_id,
        "expires_at": each.expires_at,
        "paid_release_id": escaped(each.paid_release_id),
        "forfeits": each.forfeits,
        "holds": _hold_rows(each.account, each.holds),
        **_cost_fields(each.held),
    }


def _entry_row(entry: JournalEntry) -> dict[str, Any]:
    shared = entry.shared_cost
    return {
        "root": entry.account.root,
        "kind": entry.kind.value,
        "account": entry.account.text,
        "unit_id": entry.unit_id,
        "request_id": escaped(entry.request_id),
        "release_id": escaped(entry.release_id),
        "query_id": escaped(entry.query_id),
        "time": entry.time,
        "holds": _hold_rows(entry.account, entry.holds),
        "policy_statement": escaped(entry.policy_statement),
        "shared_information": None if shared is None else shared.information,
        "shared_calls": None if shared is None else shared.calls,
        "reason": escaped(entry.reason),
        "actor": escaped(entry.actor),
        "change": entry.change,
        **_cost_fields(entry.cost),
    }


def _cost_fields(cost: Cost) -> dict[str, int]:
    return {"information": cost.information, "calls": cost.calls}


def _hold_rows(account: Account, holds: Iterable[Hold]) -> list[dict[str, Any]]:
    return [{"level": each.level_of(account).text, "window_start": each.window_start} for each in holds]


@reads("balances", itemgetter("level"))
def read_balance(row: Mapping[str, Any]) -> Balance:
    """Return the balance of a row of its table."""
    return Balance(
        Window(row["window_start"], row["window_end"]),
        DaySpan(row["day_start"], row["day_end"]),
        decode_rule(row["rule"]),
        spent=Cost(row["spent_information"], row["spent_calls"]),
        reserved=Cost(row["reserved_information"], row["reserved_calls"]),
        reserved_since=row["reserved_since"],
        leaves_at=row["leaves_at"],
        earlier=tuple(_day(each) for each in row["earlier"]),
        today=Cost(row["today_information"], row["today_calls"]),
    )


@reads("days", itemgetter("level"))
def read_past_day(row: Mapping[str, Any]) -> PastDay:
    """Return the past day of a row of its table."""
    return PastDay(row["day_start"], row["day_end"], Cost(row["information"], row["calls"]))


def read_holds(rows: list[dict[str, Any]]) -> tuple[Hold, ...]:
    """Return the spans that something counts in."""
    levels = [(Account.of_text(each["level"]), each["window_start"]) for each in rows]
    return tuple([Hold(level.depth, start, level.block) for level, start in levels])


def _day(row: Mapping[str, Any]) -> Day:
    return Day(row["start"], row["leaves_at"], Cost(row["information"], row["calls"]))


@reads("reservations", itemgetter("reservation_id"))
def read_reservation(row: Mapping[str, Any]) -> Reservation:
    """Return the reservation of a row of its table."""
    return Reservation(
        reservation_id=unescaped(row["reservation_id"]),
        account=Account.of_text(row["account"]),
        request_id=unescaped(row["request_id"]),
        query_id=unescaped(row["query_id"]),
        held=Cost(row["information"], row["calls"]),
        unit_id=row["unit_id"],
        expires_at=row["expires_at"],
        paid_release_id=unescaped(row["paid_release_id"]),
        forfeits=row["forfeits"],
        holds=read_holds(row["holds"]),
    )


def read_currency(row: Mapping[str, Any]) -> Currency:
    """Return the currency of a row of a root."""
    return Currency(row["unit_id"], row["currency_since"], row["next_unit_id"], row["next_since"])
