"""How outcomes are written into a store: JSON lists, integers as decimal strings."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from msgspec.json import Decoder
from msgspec.structs import replace

from budget_service.ledger.balances import Day
from budget_service.ledger.currency import Currency
from budget_service.ledger.outcomes import (
    Cancelled,
    Charged,
    ClockResumed,
    CurrencyChanged,
    Exhausted,
    Held,
    Lent,
    LevelStatus,
    LimitsSet,
    Outcome,
    Reason,
    Refused,
    Reserved,
    RootOutcome,
    Shortfall,
)
from budget_service.ledger.values import NOTHING, Account, Cost, Hold, Mode, Unit
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import Microseconds, Period, Window, WindowRule

NEVER = ""
_DECODER = Decoder()
_KEPT_LIMITS = 1000
_SHORTAGES: dict[str, type[Exhausted | Held]] = {"exhausted": Exhausted, "held": Held}
_MODES = {mode.value: mode for mode in Mode}


def encode_outcome(outcome: Outcome) -> str:
    """Return the text of an outcome."""
    if isinstance(outcome, Charged):
        return _charged_text(outcome)
    return json.dumps(_outcome_parts(outcome), separators=(",", ":"))


def decode_outcome(text: str | bytes) -> Outcome:
    """Return the outcome of a text made by `encode_outcome`."""
    kind, *parts = _DECODER.decode(text)
    if kind == "reserved":
        id_, information, calls, expires_at, already_paid, *lent = parts
        found = Reserved(id_, _cost(information, calls), int(expires_at), already_paid == "1")
        return replace(found, lent=_lent(*lent)) if lent else found
    if kind == "charged":
        information, calls, already_paid, levels, *reported = parts
        found_levels = tuple([_level(each) for each in levels])
        reported_cost = _cost(*reported) if reported else NOTHING
        return Charged(_cost(information, calls), already_paid == "1", found_levels, reported_cost)
    if kind == "released":
        information, calls, unit_id = parts
        return Cancelled(_cost(information, calls), unit_id)
    if kind in _SHORTAGES:
        decided_at, missing = parts
        return _SHORTAGES[kind](int(decided_at), tuple(_shortfall(*each) for each in missing))
    if kind == "refused":
        reason, *differs = parts
        return Refused(Reason(reason), *map(tuple, differs))
    return _root_outcome(kind, *parts)


def _root_outcome(kind: str, *parts: str) -> RootOutcome:
    match kind, parts:
        case "limits", (version,):
            return LimitsSet(int(version))
        case "currency", (unit_id, begins_at):
            return CurrencyChanged(unit_id, int(begins_at))
        case "clock", (ahead,):
            return ClockResumed(int(ahead))
    raise ValueError("not an outcome of this version")


def encode_end(end: int | None) -> str:
    """Return the text of a window's end."""
    return NEVER if end is None else str(end)


def decode_end(text: str) -> int | None:
    """Return the end of a window from its text."""
    return None if text == NEVER else int(text)


def encode_days(days: Iterable[Day]) -> str:
    """Return the text of the earlier days of a sliding window, `start,leaves at,information,calls;` for each."""
    return "".join(f"{day.start},{day.leaves_at},{day.spent.information},{day.spent.calls};" for day in days)


def decode_days(text: str) -> tuple[Day, ...]:
    """Return the days of a text made by `encode_days`."""
    parts = (day.split(",") for day in text.split(";")[:-1])
    return tuple(Day(int(start), int(leaves_at), _cost(*spent)) for start, leaves_at, *spent in parts)


def encode_rule(rule: WindowRule | None) -> str:
    """Return the text of a window rule, `period,days,zone`; none has an empty one."""
    return "" if rule is None else f"{rule.period.value},{rule.days},{rule.zone}"


@lru_cache(maxsize=_KEPT_LIMITS)
def decode_rule(text: str) -> WindowRule | None:
    """Return the rule of a text made by `encode_rule`."""
    if not text:
        return None
    period, days, zone = text.split(",")
    return WindowRule(Period(period), zone, int(days))


def encode_root(checkpoint: Checkpoint) -> str:
    """Return what a checkpoint says of its root: `unit,since,next unit,next since,time,ahead`."""
    currency = checkpoint.currency
    planned = f"{currency.next_unit_id},{currency.next_since}"
    return f"{currency.unit_id},{currency.since},{planned},{checkpoint.time},{checkpoint.ahead}"


def decode_root(text: str) -> tuple[Currency, Microseconds, Microseconds]:
    """Return the currency, the time and how far it is ahead of a text made by `encode_root`."""
    unit_id, since, next_unit_id, next_since, time, ahead = text.split(",")
    return Currency(unit_id, int(since), next_unit_id, int(next_since)), int(time), int(ahead)


def encode_closed(closed: Iterable[Account]) -> str:
    """Return the text of the closed accounts in a checkpoint."""
    return json.dumps(sorted(each.text for each in closed))


def decode_closed(text: str) -> frozenset[Account]:
    """Return the accounts of a text made by `encode_closed`."""
    return frozenset(map(Account.of_text, json.loads(text)))


def _charged_text(outcome: Charged) -> str:
    """Encode a charge without the JSON library, for speed: none of its texts comes from a client."""
    charged, levels = outcome.charged, ",".join([_level_text(each) for each in outcome.levels])
    paid, reported = _flag(outcome.already_paid), outcome.reported
    more = "" if reported == NOTHING else f',"{reported.information}","{reported.calls}"'
    return f'["charged","{charged.information}","{charged.calls}","{paid}",[{levels}]{more}]'


def _level_text(status: LevelStatus) -> str:
    spent, reserved = status.spent, status.reserved
    limit = _limit_text(status.depth, status.maximum, status.mode is Mode.TRACK, status.window)
    return f'[{limit},"{spent.information}","{spent.calls}","{reserved.information}","{reserved.calls}"]'


@lru_cache(maxsize=_KEPT_LIMITS)
def _limit_text(depth: int, maximum: Cost, is_tracked: bool, window: Window) -> str:
    mode = Mode.TRACK.value if is_tracked else Mode.ENFORCE.value
    bounds = f'"{window.start}","{encode_end(window.end)}"'
    return f'"{depth}","{maximum.information}","{maximum.calls}","{mode}",{bounds}'


def _outcome_parts(
    outcome: Reserved | Cancelled | RootOutcome | Exhausted | Held | Refused,
) -> list[Any]:
    match outcome:
        case Reserved():
            paid = _flag(outcome.already_paid)
            return [
                "reserved",
                outcome.reservation_id,
                *_amounts(outcome.held),
                str(outcome.expires_at),
                paid,
                *(() if outcome.lent is None else _lent_parts(outcome.lent)),
            ]
        case Cancelled():
            return ["released", *_amounts(outcome.returned), outcome.unit_id]
        case Exhausted() | Held():
            missing = [_shortfall_parts(each) for each in outcome.shortfalls]
            kind = "exhausted" if isinstance(outcome, Exhausted) else "held"
            return [kind, str(outcome.decided_at), missing]
        case Refused():
            differs = [outcome.expected, outcome.got] if outcome.expected or outcome.got else []
            return ["refused", outcome.reason.value, *differs]
        case _:
            return _root_outcome_parts(outcome)


def _lent_parts(lent: Lent) -> list[Any]:
    holds = [[str(hold.depth), str(hold.window_start)] for hold in lent.holds]
    return [lent.account.text, lent.region, str(lent.limits_version), holds]


def _lent(account: str, region: str, version: str, holds: list[list[str]]) -> Lent:
    found = tuple([Hold(int(depth), int(start)) for depth, start in holds])
    return Lent(Account.of_text(account), region, int(version), found)


def _root_outcome_parts(outcome: RootOutcome) -> list[str]:
    if isinstance(outcome, LimitsSet):
        return ["limits", str(outcome.version)]
    if isinstance(outcome, ClockResumed):
        return ["clock", str(outcome.ahead)]
    return ["currency", outcome.unit_id, str(outcome.begins_at)]


def _level(parts: list[str]) -> LevelStatus:
    depth, max_information, max_calls, mode, start, end, *used = parts
    spent_information, spent_calls, reserved_information, reserved_calls = used
    return LevelStatus(
        int(depth),
        Cost(int(max_information), int(max_calls)),
        _MODES[mode],
        Window(int(start), decode_end(end)),
        Cost(int(spent_information), int(spent_calls)),
        Cost(int(reserved_information), int(reserved_calls)),
    )


def _shortfall_parts(missing: Shortfall) -> list[str]:
    amounts = [str(missing.requested), str(missing.remaining)]
    return [str(missing.depth), missing.unit.value, *amounts, encode_end(missing.refreshes_at)]


def _shortfall(depth: str, unit: str, *rest: str) -> Shortfall:
    requested, remaining, refreshes_at = rest
    return Shortfall(int(depth), Unit(unit), int(requested), int(remaining), decode_end(refreshes_at))


def _amounts(cost: Cost) -> tuple[str, str]:
    return str(cost.information), str(cost.calls)


def _cost(information: str, calls: str) -> Cost:
    return Cost(int(information), int(calls))


def _flag(value: bool) -> str:
    return "1" if value else "0"
