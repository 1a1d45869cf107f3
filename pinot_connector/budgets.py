"""Budgets as values: costs, levels, and what is missing."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from google.protobuf import timestamp_pb2
from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from gris_api.common.v1 import cost_pb2

from pinot_connector.errors import IntegrityError, Shortfall

INFORMATION = "information"


@dataclass(frozen=True)
class Cost:
    """What a question costs: information units and calls of the currency `unit_id`."""

    information: int
    calls: int
    unit_id: str


class Mode(Enum):
    """How a limit is applied: `ENFORCE` refuses what does not fit, `TRACK` records and never refuses."""

    ENFORCE = "enforce"
    TRACK = "track"


@dataclass(frozen=True)
class Level:
    """One level of an account that has a limit.

    `remaining` is what may still be reserved, never below 0. `window_end` is None where the budget is never refreshed.
    """

    path: tuple[str, ...]
    limit: Cost
    spent: Cost
    reserved: Cost
    remaining: Cost
    mode: Mode
    window_start: datetime.datetime | None
    window_end: datetime.datetime | None


@dataclass(frozen=True)
class Charge:
    """What was charged this time, and what is left on every level."""

    charged: Cost
    remaining: tuple[Level, ...]


def questions_left(levels: Iterable[Level], price: Cost, *, together: int = 1) -> int | None:
    """Returns how many more questions the budget pays for, on the level that is used up first.

    With the worst-case cost of one question as the price, so many can certainly be asked.

    Args:
        levels: the levels of an account.
        price: what `together` questions cost, in information units and calls.
        together: how many questions the price is for.

    Returns:
        A number of questions; None if no level enforces a limit, or the price is 0.
    """
    prices = ((level.remaining, level.mode) for level in levels)
    lasting = [
        left * together // unit
        for remaining, mode in prices
        if mode is Mode.ENFORCE
        for left, unit in ((remaining.information, price.information), (remaining.calls, price.calls))
        if unit > 0
    ]
    return min(lasting, default=None)


@dataclass(frozen=True)
class Share:
    """How much of one level's budget a question takes at most, in one unit ("information" or "calls").

    `of_limit` is the part of the whole limit, None where the limit is 0; `remaining` is what may still be reserved.
    """

    path: tuple[str, ...]
    unit: str
    cost: int
    limit: int
    remaining: int
    of_limit: Fraction | None
    mode: Mode


def shares_of(levels: Iterable[Level], price: Cost) -> tuple[Share, ...]:
    """Returns the share of every level, from the root account on, that a price takes in each of its units."""
    return tuple(
        Share(level.path, unit, cost, limit, remaining, _part(cost, limit), level.mode)
        for level in levels
        for unit, cost, limit, remaining in (
            (INFORMATION, price.information, level.limit.information, level.remaining.information),
            ("calls", price.calls, level.limit.calls, level.remaining.calls),
        )
        if cost > 0
    )


def share_of(message: app_pb2.BudgetShare) -> Share:
    """Returns the share that a message holds.

    Raises:
        IntegrityError: the message has no mode, or takes nothing.
    """
    if message.mode not in _MODES or message.cost < 1:
        raise IntegrityError("the gateway sent a share of a budget without a mode or a cost")
    return Share(
        path=tuple(message.path),
        unit=message.unit,
        cost=message.cost,
        limit=message.limit,
        remaining=message.remaining,
        of_limit=_part(message.cost, message.limit),
        mode=_MODES[message.mode],
    )


def _part(cost: int, limit: int) -> Fraction | None:
    return Fraction(cost, limit) if limit else None


def narrowest(shares: Iterable[Share]) -> Share | None:
    """Returns the share of the limit that is used up first by such questions; None if no limit is enforced."""
    enforced = (share for share in shares if share.mode is Mode.ENFORCE)
    return min(enforced, key=lambda share: Fraction(share.remaining, share.cost), default=None)


_MODES = {budget_pb2.MODE_ENFORCE: Mode.ENFORCE, budget_pb2.MODE_TRACK: Mode.TRACK}


def cost_of(message: cost_pb2.Cost) -> Cost:
    """Returns the cost that a message holds."""
    return Cost(message.information, message.calls, message.unit_id)


def level_of(message: budget_pb2.Level) -> Level:
    """Returns the level that a message holds.

    Raises:
        IntegrityError: the message has no mode, or a timestamp outside the years 1 to 9999.
    """
    if message.mode not in _MODES:
        raise IntegrityError("budget_service sent a limit without a mode")
    return Level(
        path=tuple(message.path),
        limit=cost_of(message.limit),
        spent=cost_of(message.spent),
        reserved=cost_of(message.reserved),
        remaining=cost_of(message.remaining),
        mode=_MODES[message.mode],
        window_start=_datetime(message.window_start) if message.HasField("window_start") else None,
        window_end=_datetime(message.window_end) if message.HasField("window_end") else None,
    )


def charge_of(message: budget_pb2.UpdateBudgetResponse) -> Charge:
    """Returns the charge that a message holds.

    Raises:
        IntegrityError: as for `level_of`.
    """
    return Charge(cost_of(message.charged), tuple(level_of(level) for level in message.levels))


def shortfall_of(message: budget_pb2.Shortfall) -> Shortfall:
    """Returns the shortfall that a message holds.

    Raises:
        IntegrityError: it has a timestamp outside the years 1 to 9999.
    """
    return Shortfall(
        level=tuple(message.path),
        unit=message.unit,
        requested=message.requested,
        remaining=message.remaining,
        refreshes_at=_datetime(message.refreshes_at) if message.HasField("refreshes_at") else None,
    )


def largest_k(shortfalls: Sequence[Shortfall], k: int, information_per_element: int) -> int | None:
    """Returns the largest k with which a refused question would fit; None where there is none.

    Args:
        shortfalls: all that is missing, on every level.
        k: the question's.
        information_per_element: what one element more adds to the worst case; 0: its price does not depend on k.
    """
    if not information_per_element or not shortfalls or any(each.unit != INFORMATION for each in shortfalls):
        return None
    missing = max(each.requested - each.remaining for each in shortfalls)
    smaller = k + -missing // information_per_element
    return smaller if 1 <= smaller < k else None


def _datetime(message: timestamp_pb2.Timestamp) -> datetime.datetime:
    try:
        return message.ToDatetime(tzinfo=datetime.UTC)
    except (ValueError, OverflowError):
        raise IntegrityError("budget_service sent a timestamp outside the years 1 to 9999") from None
