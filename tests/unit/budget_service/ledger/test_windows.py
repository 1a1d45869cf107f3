"""Windows, and how one follows another."""

from datetime import UTC, datetime

import pytest

from budget_service.ledger.windows import (
    DAY,
    DaySpan,
    Microseconds,
    Period,
    Span,
    Window,
    WindowRule,
    datetime_of,
    microseconds_of,
)


def at(text: str) -> Microseconds:
    """Return the moment of an ISO text, in UTC unless it says otherwise."""
    timestamp = datetime.fromisoformat(text)
    return microseconds_of(timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("period", "zone", "now", "start", "end"),
    [
        (Period.MONTH, "UTC", "2026-02-28T23:59:59.999999", "2026-02-01", "2026-03-01"),
        (Period.MONTH, "UTC", "2026-12-31", "2026-12-01", "2027-01-01"),
        (Period.MONTH, "UTC", "2028-02-29", "2028-02-01", "2028-03-01"),
        # Already November in Tokyo, still October in Los Angeles.
        (Period.MONTH, "Asia/Tokyo", "2026-10-31T15:00", "2026-10-31T15:00", "2026-11-30T15:00"),
        (Period.MONTH, "America/Los_Angeles", "2026-11-01T06:59", "2026-10-01T07:00", "2026-11-01T07:00"),
        # The day on which clocks go back has 25 hours, the one on which they go forward 23.
        (Period.DAY, "Europe/Berlin", "2026-10-25T22:30", "2026-10-24T22:00", "2026-10-25T23:00"),
        (Period.DAY, "Europe/Berlin", "2026-03-29T12:00", "2026-03-28T23:00", "2026-03-29T22:00"),
        # Clocks jump over midnight in Cairo: the day begins when they jump.
        (Period.DAY, "Africa/Cairo", "2026-04-23T22:00", "2026-04-23T22:00", "2026-04-24T21:00"),
        (Period.WEEK, "UTC", "2026-10-18T23:59", "2026-10-12", "2026-10-19"),
        (Period.WEEK, "UTC", "2026-10-19T00:00", "2026-10-19", "2026-10-26"),
    ],
)
def test_a_window_has_the_bounds_of_its_zone(
    period: Period, zone: str, now: str, start: str, end: str
) -> None:
    """Windows begin and end at local midnight."""
    assert Window(at(start), at(end)) == WindowRule(period, zone).around(at(now)).window


def test_windows_of_a_decade_follow_each_other_without_gap() -> None:
    """Every window ends where the next begins, in a zone that changes its clocks."""
    for period in (Period.DAY, Period.WEEK, Period.MONTH):
        rule = WindowRule(period, "America/New_York")
        window = rule.around(at("2020-01-01")).window
        while window.end is not None and window.end < at("2030-01-01"):
            after = rule.around(window.end).window
            assert window.end == after.start
            assert window == rule.around(window.end - 1).window
            window = after


def test_a_window_that_is_never_refreshed_has_no_end() -> None:
    """`never` is one window for all time."""
    assert Window(0, None) == WindowRule(Period.NEVER, "UTC").around(at("2026-10-14")).window


def test_times_survive_the_way_to_a_datetime_and_back() -> None:
    """Microseconds are exact."""
    for timestamp in (0, 1, DAY - 1, at("2026-10-14") + 1):
        assert timestamp == microseconds_of(datetime_of(timestamp))


@pytest.mark.parametrize(
    ("now", "first", "today", "tomorrow", "leaves"),
    [
        ("2026-10-14T12:00", "2026-10-07T22:00", "2026-10-13T22:00", "2026-10-14T22:00", "2026-10-20T22:00"),
        # Clocks go back on 25 October: the days before and after it begin an hour apart.
        ("2026-10-25T12:00", "2026-10-18T22:00", "2026-10-24T22:00", "2026-10-25T23:00", "2026-10-31T23:00"),
    ],
)
def test_a_sliding_window_is_made_of_days_of_its_zone(
    now: str, first: str, today: str, tomorrow: str, leaves: str
) -> None:
    """Seven days with today; what is charged today counts until seven midnights have passed."""
    span = WindowRule(Period.SLIDING, "Europe/Berlin", 7).around(at(now))
    day = (at(today), at(tomorrow))
    assert Span(Window(*day), at(first), DaySpan(*day), at(leaves)) == span
    assert at(leaves) == WindowRule(Period.SLIDING, "Europe/Berlin", 7).leaves_at(at(tomorrow))
