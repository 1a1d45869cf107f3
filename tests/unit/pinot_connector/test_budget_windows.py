"""How often a shared window counts: never less than those that real rules put into an account's window."""

from __future__ import annotations

import datetime
import itertools
from functools import cache

import pytest

from budget_service.ledger.balances import Balance
from budget_service.ledger.values import Cost as Units
from budget_service.ledger.windows import (
    DAY,
    Microseconds,
    Period,
    Window,
    WindowRule,
    datetime_of,
    microseconds_of,
)
from pinot_connector.budget_windows import overlapping_windows
from pinot_connector.budgets import Cost, Level, Mode
from tests.support.some import some

START = microseconds_of(datetime.datetime(2026, 10, 1, 12, tzinfo=datetime.UTC))
CALENDAR = [
    WindowRule(period, zone)
    for period in (Period.DAY, Period.WEEK, Period.MONTH)
    for zone in ("UTC", "Europe/Berlin", "Pacific/Auckland", "Australia/Lord_Howe")
]
SLIDING = [WindowRule(Period.SLIDING, "Europe/Berlin", days) for days in (2, 7, 30)]


def level(start: Microseconds, end: Microseconds | None) -> Level:
    """Return a level with this window."""
    nothing = Cost(0, 0, "")
    until = None if end is None else datetime_of(end)
    return Level(("a",), nothing, nothing, nothing, nothing, Mode.ENFORCE, datetime_of(start), until)


@cache
def windows(rule: WindowRule, start: Microseconds, end: Microseconds) -> int:
    """Return how many windows of a calendar rule meet a span."""
    found, timestamp = 0, start
    while timestamp < end:
        found, timestamp = found + 1, rule.around(timestamp).window.end or end
    return found


@cache
def half_a_year(rule: WindowRule) -> list[Window]:
    """Return the window of each day."""
    return [rule.around(START + day * DAY).window for day in range(180)]


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "own"), list(itertools.product(CALENDAR, CALENDAR)))
def test_no_window_that_meets_the_accounts_is_left_out(shared: WindowRule, own: WindowRule) -> None:
    """On each day of half a year, with the changes of the clocks in four zones."""
    for theirs, mine in some(set(zip(half_a_year(shared), half_a_year(own), strict=True))):
        assert mine.end is not None
        reported = overlapping_windows(level(*theirs), level(*mine))
        assert reported is not None
        assert reported >= windows(shared, mine.start, mine.end)


@pytest.mark.parametrize(
    ("shared", "days", "gap"), [(each, each.days, gap) for each in SLIDING for gap in (1, 2, 5)]
)
def test_a_sliding_window_is_not_taken_for_a_longer_one(shared: WindowRule, days: int, gap: int) -> None:
    """Of which the ledger tells up to two, whatever was charged on which days."""
    month = WindowRule(Period.MONTH, "UTC")
    balance = Balance.opened(shared, shared.around(START))
    for day in range(90):
        now = START + day * DAY
        span = shared.around(now)
        balance, ended = balance.on(now, span.day, 0)
        rolled = balance.rolled(now, span, ended)
        assert rolled is not None
        balance = rolled
        if day % gap == 0:
            balance = balance.charged(balance.day.start, Units(1, 1))
        mine = month.around(now).window
        assert mine.end is not None
        reported = overlapping_windows(level(*balance.counted_window()), level(*mine))
        assert reported is not None
        assert reported * days * DAY >= mine.end - mine.start


def test_the_same_window_counts_once() -> None:
    """As where every level has its month."""
    month = WindowRule(Period.MONTH, "UTC").around(START).window
    assert 1 == overlapping_windows(level(*month), level(*month))
    assert 1 == overlapping_windows(level(0, None), level(*month))
    assert overlapping_windows(level(*month), level(0, None)) is None
