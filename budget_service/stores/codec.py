"""How values are written into a store: outcomes as JSON, windows and days as texts of their own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache

from msgspec.json import Decoder, Encoder

from budget_service.ledger.balances import Day
from budget_service.ledger.currency import Currency
from budget_service.ledger.outcomes import Outcome
from budget_service.ledger.values import Account, Cost
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import Microseconds, Period, WindowRule

NEVER = ""
_KEPT_LIMITS = 1000
_ENCODER = Encoder()
_DECODER: Decoder[Outcome] = Decoder(Outcome)


def encode_outcome(outcome: Outcome) -> str:
    """Return the text of an outcome."""
    return _ENCODER.encode(outcome).decode()


def decode_outcome(text: str | bytes) -> Outcome:
    """Return the outcome of a text made by `encode_outcome`."""
    return _DECODER.decode(text)


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
    return tuple(
        Day(int(start), int(leaves_at), Cost(*map(int, spent))) for start, leaves_at, *spent in parts
    )


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
