"""Limits that an administrator has set in the ledger, beside those of the configuration, and their text."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from budget_service.ledger.values import Account, Cost, Limit, Mode
from budget_service.ledger.windows import Period, WindowRule

# One request changes at most so many, and one root has at most so many: everything that grows has an end.
MAX_CHANGED_AT_ONCE = 1000
MAX_STORED_LIMITS = 100_000


class LimitsChangedError(Exception):
    """A request was made with limits that are no longer those of the ledger; ask for them and make it again."""


class StoredLimits(Struct, frozen=True, gc=False):
    """The limits that are set on the levels of one account; `version` counts the changes of its whole root."""

    version: int = 0
    limits: Mapping[Account, Limit] = field(default_factory=dict)


def limit_text(limit: Limit) -> str:
    """Return a limit in one line; no part of it holds a colon."""
    maximum, rule = limit.maximum, limit.window
    amounts = (str(maximum.information), str(maximum.calls))
    return ":".join((*amounts, limit.mode.value, rule.period.value, str(rule.days), rule.zone))


def parse_limit(text: str) -> Limit:
    """Return the limit of a text made by `limit_text`."""
    information, calls, mode, period, days, zone = text.split(":")
    rule = WindowRule(Period(period), zone, int(days))
    return Limit(Cost(int(information), int(calls)), Mode(mode), rule)
