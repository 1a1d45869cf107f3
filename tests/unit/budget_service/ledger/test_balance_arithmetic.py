"""How a balance moves on with time, where zones, currencies and windows meet in ways that are rare in a history."""

from __future__ import annotations

import pytest

from budget_service.ledger.balances import Balance, Day, PastDay
from budget_service.ledger.values import NOTHING, Cost
from budget_service.ledger.windows import DaySpan, Period, Span, Window, WindowRule

ONE, TWO = Cost(1, 1), Cost(2, 2)
MONTH = WindowRule(Period.MONTH, "UTC")
SLIDING = WindowRule(Period.DAY, "UTC", days=3)


def test_a_day_that_the_rule_still_counts_counts_whenever_it_was_to_leave() -> None:
    """The zone may have changed since the day ended; either reason is enough."""
    span = Span(Window(70, 80), 40, DaySpan(70, 80), leaves_at=110)
    assert Day(50, 60, ONE).counts(70, span)
    assert Day(30, 75, ONE).counts(70, span)
    assert not Day(30, 60, ONE).counts(70, span)


@pytest.mark.parametrize(("today", "last"), [(ONE, 110), (NOTHING, 90)], ids=["charged today", "not today"])
def test_a_budget_begins_to_return_with_its_first_day_and_is_whole_after_its_last(
    today: Cost, last: int
) -> None:
    """A currency that has to wait for old charges waits for those of today too."""
    earlier = (Day(10, 80, ONE), Day(20, 90, ONE))
    balance = Balance(
        Window(30, 40), DaySpan(30, 40), SLIDING, TWO, leaves_at=110, earlier=earlier, today=today
    )
    assert Window(10, 80) == balance.counted_window()
    assert Window(10, last) == balance.counted_window(as_one=True)


def test_a_day_that_reaches_into_a_new_window_is_not_forgotten() -> None:
    """It began by another zone: only the past days tell what of it counts in the new window."""
    balance = Balance(Window(0, 100), DaySpan(90, 110), MONTH, ONE, today=ONE)
    span = Span(Window(100, 200), 100, DaySpan(110, 120))
    assert balance.rolled(115, span, PastDay(90, 110, ONE)) is None
    rolled = balance.rolled(115, span, PastDay(90, 100, ONE))
    assert rolled is not None
    assert (span.window, NOTHING) == (rolled.window, rolled.spent)


@pytest.mark.parametrize(
    ("last", "day", "since", "begins", "ended"),
    [
        (DaySpan(0, 100), DaySpan(0, 100), 50, 50, 50),
        (DaySpan(0, 10), DaySpan(20, 70), 0, 20, 10),
        (DaySpan(5, 22), DaySpan(20, 70), 0, 22, 22),
        (DaySpan(0, 100), DaySpan(40, 140), 0, 60, 60),
    ],
    ids=["currency", "days without a charge", "later zone", "earlier zone"],
)
def test_a_day_begins_where_the_last_one_ends_or_later(
    last: DaySpan, day: DaySpan, since: int, begins: int, ended: int
) -> None:
    """No two days overlap, and none has charges of two currencies."""
    moved, over = Balance(Window(0, 100), last, MONTH, ONE, today=ONE).on(60, day, since)
    assert (DaySpan(begins, day.end), NOTHING) == (moved.day, moved.today)
    assert PastDay(last.start, ended, ONE) == over
