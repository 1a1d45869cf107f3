"""The argument of the changing scripts: a request with the limits and windows it is decided by."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec.json import Encoder

from budget_service.ledger.account_states import MAX_FORMER_NAMES
from budget_service.ledger.administration import CLOCK_TOLERANCE, RETENTION, SHORT_RETENTION
from budget_service.ledger.closing import is_closed_to
from budget_service.ledger.currency import window_before
from budget_service.ledger.limits import (
    AppliedLimits,
    limit_text,
)
from budget_service.ledger.requests import (
    AccountRequest,
    BudgetRequest,
    CancelReservation,
    ChangeCurrency,
    Charge,
    CloseAccount,
    MoveAccount,
    Refund,
    ReopenAccount,
    ReportCharge,
    Request,
    Reserve,
    ResumeClock,
    ReturnLease,
    SetLimits,
    WriteOff,
    counting_levels,
)
from budget_service.ledger.state import (
    EntryKind,
)
from budget_service.ledger.values import Account, Cost, LevelLimit
from budget_service.ledger.windows import Microseconds, Span, day_around
from budget_service.stores.codec import (
    encode_end,
    encode_rule,
)

# About 10 MB.
_KEPT_LEVELS = 10_000
_ENCODER = Encoder()
# Of a request that uses no budget. Reservations lapse when one is used.
_WITHOUT_LEVELS: dict[str, Any] = {
    "limits_version": "",
    "levels": [],
    "path": [],
    "others": [],
    "expired_at_once": "0",
}


Leaving: TypeAlias = dict[str, dict[str, str]]


def argument(
    request: Request,
    limits: AppliedLimits,
    guess: Microseconds,
    clock: str,
    *,
    expired_at_once: int,
    leaving: Leaving,
) -> bytes:
    """Return the argument of a changing script; the windows are those around `guess`.

    `leaving` is empty, or what `leaving_days` returned.
    """
    header: dict[str, Any] = {
        "clock": clock,
        "account": request.account.text,
        "fingerprint": request.fingerprint(),
        "retention": str(RETENTION),
        "short_retention": str(SHORT_RETENTION),
        "request_id": request.request_id,
    }
    if leaving:
        header["leaving"] = leaving
    return _ENCODER.encode(header | _fields(request, limits, guess, expired_at_once))


def leaving_days(limits: AppliedLimits, unknown: str) -> Leaving:
    """Return when past days stop counting in sliding windows, by level and start, from what a script did not know."""
    rules = {each.level.text: each.limit.window for each in limits.levels}
    return {
        level: {start: str(rules[level].leaves_at(int(end))) for start, end in days.items()}
        for level, days in json.loads(unknown).items()
    }


def _fields(
    request: Request, limits: AppliedLimits, guess: Microseconds, expired_at_once: int
) -> dict[str, Any]:
    match request:
        case SetLimits():
            return _limit_fields(request, limits)
        case ChangeCurrency():
            return _currency_fields(request, limits, guess, expired_at_once)
        case ResumeClock():
            return _clock_fields(request)
        case CloseAccount() | ReopenAccount() | MoveAccount():
            return _account_fields(request, limits)
        case _ if is_closed_to(request, limits):
            return _WITHOUT_LEVELS | {"closed": "1", "limits_version": str(limits.version)}
        case _:
            return _budget_fields(request, limits, guess, expired_at_once)


def _currency_fields(
    request: ChangeCurrency, limits: AppliedLimits, guess: Microseconds, expired_at_once: int
) -> dict[str, Any]:
    window = window_before(limits.rules, guess)
    return _WITHOUT_LEVELS | {
        "limits_version": str(limits.version),
        "unit_id": request.unit_id,
        "window": [str(window.start), encode_end(window.end)],
        "expired_at_once": str(expired_at_once),
    }


def _clock_fields(request: ResumeClock) -> dict[str, Any]:
    return _WITHOUT_LEVELS | {
        "told_time": str(request.true_time),
        "clock_tolerance": str(CLOCK_TOLERANCE),
    }


def _limit_fields(request: SetLimits, limits: AppliedLimits) -> dict[str, Any]:
    changes = ((level.text, "" if limit is None else limit_text(limit)) for level, limit in request.changes)
    return _WITHOUT_LEVELS | {
        "changes": list(changes),
        "most_limits": str(limits.most_stored),
    }


def _account_fields(request: AccountRequest, limits: AppliedLimits) -> dict[str, Any]:
    if not isinstance(request, MoveAccount):
        act = EntryKind.CLOSE if isinstance(request, CloseAccount) else EntryKind.REOPEN
        own: dict[str, Any] = {"act": act.value, "reason": request.reason}
    else:
        account = request.account
        own = {
            "target": request.target.text,
            "name": account.path[-1],
            "above": [account.level(depth).text for depth in range(1, account.depth)],
            "most_names": str(MAX_FORMER_NAMES),
            "reason": request.noted_reason,
        }
    return _WITHOUT_LEVELS | {"most_limits": str(limits.most_stored)} | own


def _budget_fields(
    request: BudgetRequest, limits: AppliedLimits, guess: Microseconds, expired_at_once: int
) -> dict[str, Any]:
    path = counting_levels(request)
    return {
        "levels": [_level(each, each.limit.window.around(guess)) for each in limits.levels],
        "path": [level.text for level in path],
        "others": _others(path, limits.levels, guess) if len(path) > len(limits.levels) else [],
        "limits_version": str(limits.version),
        "expired_at_once": str(expired_at_once),
        "reservation_id": "" if isinstance(request, WriteOff | Refund) else request.reservation_id,
        **_own_fields(request),
    }


def _others(
    path: Iterable[Account], levels: tuple[LevelLimit, ...], guess: Microseconds
) -> list[tuple[str, str, str]]:
    limited = {each.level for each in levels}
    day = day_around(guess, levels[-1].limit.window.zone)
    return [(level.text, str(day.start), encode_end(day.end)) for level in path if level not in limited]


def _own_fields(request: BudgetRequest) -> dict[str, Any]:
    match request:
        case ReportCharge() | ReturnLease():
            raise TypeError("a ledger in Redis lends nothing to regions, so none reports to it")
        case Reserve():
            own = {
                "ttl": str(request.ttl),
                "forfeits": "1" if request.forfeits else "0",
                "query_id": request.query_id,
            }
            return own | _cost_fields(request.max_cost, request.unit_id)
        case Charge():
            own = {"release_id": request.release_id, "query_id": request.query_id}
            own["policy_statement"] = request.policy_statement
            own["worst_case_above"] = "1" if request.worst_case_above else "0"
            return own | _cost_fields(request.cost, request.unit_id)
        case Refund():
            return _refund_fields(request)
        case CancelReservation() | WriteOff():
            return {}


def _refund_fields(request: Refund) -> dict[str, Any]:
    shared = request.shared_cost
    ids = {"release_id": request.release_id, "query_id": request.query_id, "reason": request.reason}
    amounts = ("", "") if shared is None else (str(shared.information), str(shared.calls))
    holds = [[request.account.level(each.depth).text, str(each.window_start)] for each in request.holds]
    fields = ids | dict(zip(("shared_information", "shared_calls"), amounts, strict=True))
    return fields | _cost_fields(request.cost, request.unit_id) | {"holds": holds}


def _cost_fields(cost: Cost, unit_id: str) -> dict[str, str]:
    return {"information": str(cost.information), "calls": str(cost.calls), "unit_id": unit_id}


@lru_cache(maxsize=_KEPT_LEVELS)
def _level(each: LevelLimit, span: Span) -> tuple[str, ...]:
    limit = each.limit
    maximum = (str(limit.maximum.information), str(limit.maximum.calls))
    bounds = (str(span.window.start), encode_end(span.window.end))
    days = (str(span.counts_from), encode_end(span.leaves_at))
    day = (encode_rule(limit.window), str(span.day.start), encode_end(span.day.end))
    return (each.level.text, str(each.level.depth), *maximum, limit.mode.value, *bounds, *days, *day)
