"""The arguments of the functions in `sql/`, and the parsing of their answers."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec.structs import replace

from budget_service.ledger.administration import CLOCK_TOLERANCE, REFUSAL_RETENTION, RETENTION
from budget_service.ledger.balances import Balance, Day
from budget_service.ledger.currency import Currency, window_before
from budget_service.ledger.limits import (
    AppliedLimits,
    StoredLimits,
    limit_text,
    parse_limit,
)
from budget_service.ledger.outcomes import Answer, Reserved
from budget_service.ledger.requests import (
    BudgetRequest,
    CancelReservation,
    ChangeCurrency,
    Charge,
    Refund,
    Request,
    Reserve,
    ResumeClock,
    SetLimits,
    WriteOff,
)
from budget_service.ledger.state import Reservation, RootRecord, Snapshot
from budget_service.ledger.values import Account, Cost, Hold, LevelLimit
from budget_service.ledger.windows import Microseconds, Window
from budget_service.stores.codec import REUSED, decode_outcome

_ENCODER = json.JSONEncoder(ensure_ascii=False)
# What is out of date goes a little at a time, faster than it comes.
PURGED_AT_ONCE = 20


def argument(
    request: Request,
    limits: AppliedLimits,
    guess: Microseconds,
    clock: Microseconds | None,
    expired_at_once: int,
) -> str:
    """Return the argument of `apply`; the windows are those around `guess`, `clock` replaces PostgreSQL's own time."""
    header = {
        "clock": clock,
        "root": request.account.root,
        "account": request.account.text,
        "fingerprint": request.fingerprint(),
        "request_id": escaped(request.request_id),
        "purged_at_once": PURGED_AT_ONCE,
        "retention": RETENTION,
        "refusal_retention": REFUSAL_RETENTION,
    }
    return _ENCODER.encode(header | _fields(request, limits, guess, expired_at_once))


def parse_answer(kind: str, text: str) -> Answer:
    """Return the answer of `apply`."""
    if kind == "reused":
        return REUSED
    outcome = decode_outcome(text)
    if isinstance(outcome, Reserved):
        outcome = replace(outcome, reservation_id=unescaped(outcome.reservation_id))
    return Answer(outcome, replayed=kind == "replayed")


def parse_reading(found: dict[str, Any]) -> tuple[Snapshot, Microseconds]:
    """Return the snapshot that `read` found, and its time."""
    snapshot = Snapshot(
        root=RootRecord(read_currency(found), found["last_time"], found["limits_version"], found["ahead"]),
        balances={read_account(each["level"]): read_balance(each) for each in found["balances"] or ()},
        due=tuple(read_reservation(each) for each in found["due"] or ()),
    )
    return snapshot, found["now"]


def parse_limits(version: int, limits: dict[str, str]) -> StoredLimits:
    """Return the stored limits of an account from their texts by level."""
    return StoredLimits(version, {read_account(level): parse_limit(each) for level, each in limits.items()})


def escaped(id_: str) -> str:
    r"""Return an id as PostgreSQL can keep it: its texts hold every character but the zero byte.

    >>> escaped("a\0b\\")
    'a\\0b\\\\'
    """
    return id_.replace("\\", "\\\\").replace("\0", "\\0")


def unescaped(text: str) -> str:
    """Return the id that `escaped` has made this text of."""
    return re.sub(r"\\(.)", lambda found: "\0" if found[1] == "0" else found[1], text)


def _fields(
    request: Request, limits: AppliedLimits, guess: Microseconds, expired_at_once: int
) -> dict[str, Any]:
    match request:
        case SetLimits():
            return _limit_fields(request, limits)
        case ChangeCurrency():
            return _currency_fields(request, limits, guess)
        case ResumeClock():
            fields = {"operation": "resume clock", "told_time": request.true_time}
            return fields | {"clock_tolerance": CLOCK_TOLERANCE}
        case _:
            return _budget_fields(request, limits, guess, expired_at_once)


def _currency_fields(request: ChangeCurrency, limits: AppliedLimits, guess: Microseconds) -> dict[str, Any]:
    window = window_before(limits.rules, guess)
    return {
        "operation": "change currency",
        "unit_id": request.unit_id,
        "limits_version": limits.version,
        "window_start": window.start,
        "window_end": window.end,
    }


def _limit_fields(request: SetLimits, limits: AppliedLimits) -> dict[str, Any]:
    changes = [
        {"level": level.text, "limit_text": None if limit is None else limit_text(limit)}
        for level, limit in request.changes
    ]
    return {"operation": "set limits", "changes": changes, "most_limits": limits.most_stored}


def _budget_fields(
    request: BudgetRequest, limits: AppliedLimits, guess: Microseconds, expired_at_once: int
) -> dict[str, Any]:
    return {
        "payer": limits.payer(request.account),
        "levels": [_level(each, guess) for each in limits.levels],
        "limits_version": limits.version,
        "reservation_id": "" if isinstance(request, WriteOff | Refund) else escaped(request.reservation_id),
        "expired_at_once": expired_at_once,
        **_own_fields(request),
    }


def _own_fields(request: BudgetRequest) -> dict[str, Any]:
    match request:
        case Reserve():
            own = {"operation": "reserve", "ttl": request.ttl, "forfeits": request.forfeits}
            return own | _question(request.query_id) | _cost(request.max_cost, request.unit_id)
        case Charge():
            own = {"operation": "charge", "release_id": escaped(request.release_id)}
            own["policy_statement"] = escaped(request.policy_statement)
            own["worst_case_above"] = request.worst_case_above
            return own | _question(request.query_id) | _cost(request.cost, request.unit_id)
        case WriteOff():
            return {"operation": "write off"}
        case Refund():
            return _refund_fields(request)
        case CancelReservation():
            return {"operation": "release"}


def _refund_fields(request: Refund) -> dict[str, Any]:
    fields: dict[str, Any] = {"operation": "refund", "release_id": escaped(request.release_id)}
    fields["reason"] = escaped(request.reason)
    fields["holds"] = [
        {"level": request.account.level(each.depth).text, "window_start": each.window_start}
        for each in request.holds
    ]
    if (shared := request.shared_cost) is not None:
        fields |= {"shared_information": shared.information, "shared_calls": shared.calls}
    return fields | _question(request.query_id) | _cost(request.cost, request.unit_id)


def _question(query_id: str) -> dict[str, Any]:
    return {"query_id": escaped(query_id)}


def _cost(cost: Cost, unit_id: str) -> dict[str, Any]:
    return {"information": cost.information, "calls": cost.calls, "unit_id": unit_id}


def _level(each: LevelLimit, guess: Microseconds) -> dict[str, Any]:
    limit, span = each.limit, each.limit.window.around(guess)
    return {
        "level": each.level.text,
        "depth": each.level.depth,
        "information": limit.maximum.information,
        "calls": limit.maximum.calls,
        "mode": limit.mode.value,
        "window_start": span.window.start,
        "window_end": span.window.end,
        "counts_from": span.counts_from,
        "leaves_at": span.leaves_at,
    }


def read_balance(row: dict[str, Any]) -> Balance:
    """Return the balance of a row of its table."""
    return Balance(
        Window(row["window_start"], row["window_end"]),
        spent=Cost(row["spent_information"], row["spent_calls"]),
        reserved=Cost(row["reserved_information"], row["reserved_calls"]),
        reserved_since=row["reserved_since"],
        leaves_at=row["leaves_at"],
        earlier=tuple(_day(each) for each in row["earlier"]),
    )


def read_holds(rows: list[dict[str, Any]]) -> tuple[Hold, ...]:
    """Return the spans that something counts in."""
    return tuple(Hold(read_account(each["level"]).depth, each["window_start"]) for each in rows)


def _day(row: dict[str, Any]) -> Day:
    return Day(row["start"], row["leaves_at"], Cost(row["information"], row["calls"]))


def read_reservation(row: dict[str, Any]) -> Reservation:
    """Return the reservation of a row of its table."""
    return Reservation(
        reservation_id=unescaped(row["reservation_id"]),
        account=read_account(row["account"]),
        request_id=unescaped(row["request_id"]),
        query_id=unescaped(row["query_id"]),
        held=Cost(row["information"], row["calls"]),
        unit_id=row["unit_id"],
        expires_at=row["expires_at"],
        paid_release_id=unescaped(row["paid_release_id"]),
        forfeits=row["forfeits"],
        holds=read_holds(row["holds"]),
    )


def read_currency(row: dict[str, Any]) -> Currency:
    """Return the currency of a row of a root."""
    return Currency(row["unit_id"], row["currency_since"], row["next_unit_id"], row["next_since"])


def read_account(text: str) -> Account:
    """Return an account from its path joined by slashes."""
    return Account(tuple(text.split("/")))
