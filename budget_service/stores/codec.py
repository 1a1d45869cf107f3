"""How values are written into a store: as JSON by their types, rules and days of SQLite as texts of their own."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from msgspec.json import Decoder, Encoder

from budget_service.ledger.balances import Balance, Day
from budget_service.ledger.base import Base
from budget_service.ledger.outcomes import Outcome
from budget_service.ledger.state import Reservation
from budget_service.ledger.values import Cost
from budget_service.ledger.windows import Period, WindowRule
from budget_service.stores.damaged_rows import reading_row

_KEPT_LIMITS = 1000
_ENCODER = Encoder()
_DECODER: Decoder[Outcome] = Decoder(Outcome)
_BASES = Decoder(Base)


def encoded(value: Outcome | Reservation | Balance | Base) -> str:
    """Return the JSON of a value."""
    return _ENCODER.encode(value).decode()


def decode_outcome(text: str | bytes) -> Outcome:
    """Return the outcome of a text made by `encoded`."""
    return _DECODER.decode(text)


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


def decode_base(root: str, text: str | None) -> Base:
    """Return the base of a root from its JSON, an empty one if there is none. Raises StoreDamagedError."""
    with reading_row("bases", root):
        return Base() if text is None else _BASES.decode(text)
