"""Translates limits between the administrator's protocol buffers and the ledger's values."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import budget_pb2

from budget_service.ledger.values import InvalidFieldError, Limit, Mode
from budget_service.ledger.windows import (
    MAX_SLIDING_DAYS,
    MIN_SLIDING_DAYS,
    SECOND,
    Microseconds,
    Period,
    WindowRule,
    zones,
)
from budget_service.server.messages import parse_cost

_MODES = {budget_pb2.MODE_ENFORCE: Mode.ENFORCE, budget_pb2.MODE_TRACK: Mode.TRACK}
_PERIODS = {
    pb.PERIOD_DAY: Period.DAY,
    pb.PERIOD_WEEK: Period.WEEK,
    pb.PERIOD_MONTH: Period.MONTH,
    pb.PERIOD_NEVER: Period.NEVER,
    pb.PERIOD_SLIDING: Period.SLIDING,
}


def parse_limit_message(message: pb.Limit, field: str) -> Limit:
    """Return a limit, or raise InvalidFieldError."""
    if message.mode not in _MODES:
        raise InvalidFieldError(f"{field}.mode", "must be MODE_ENFORCE or MODE_TRACK")
    return Limit(parse_cost(message, field), _MODES[message.mode], _rule(message, field))


def limit_message(limit: Limit) -> pb.Limit:
    """Return a limit as a message."""
    rule = limit.window
    return pb.Limit(
        information=limit.maximum.information,
        calls=limit.maximum.calls,
        mode=next(sent for sent, mode in _MODES.items() if mode is limit.mode),
        period=next(sent for sent, period in _PERIODS.items() if period is rule.period),
        sliding_days=rule.days,
        zone=rule.zone,
    )


def _rule(message: pb.Limit, field: str) -> WindowRule:
    period = _PERIODS.get(message.period)
    if period is None:
        raise InvalidFieldError(f"{field}.period", "must be one of the periods")
    days = message.sliding_days
    if days != 0 if period is not Period.SLIDING else not MIN_SLIDING_DAYS <= days <= MAX_SLIDING_DAYS:
        problem = f"must be {MIN_SLIDING_DAYS} to {MAX_SLIDING_DAYS} if the period is PERIOD_SLIDING, else 0"
        raise InvalidFieldError(f"{field}.sliding_days", problem)
    zone = message.zone or "UTC"
    if zone not in zones():
        raise InvalidFieldError(f"{field}.zone", "must be the name of an IANA time zone")
    return WindowRule(period, zone, days)


def parse_time(message: Timestamp, field: str) -> Microseconds:
    """Return a time, or raise InvalidFieldError."""
    time = message.seconds * SECOND + message.nanos // 1000
    if not 0 <= time < 2**53:
        raise InvalidFieldError(field, "must be between 1970 and 2255")
    return time
