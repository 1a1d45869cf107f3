"""Windows: the spans of time that a limit applies to, and how one follows another.

Every time is a whole number of microseconds since 1970-01-01 UTC on the store's clock.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from enum import Enum
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Struct

Microseconds: TypeAlias = int

SECOND: Microseconds = 1_000_000
DAY: Microseconds = 86_400 * SECOND
# One day is a calendar window; a sum for each of more days than this would make every charge slow.
MIN_SLIDING_DAYS = 2
MAX_SLIDING_DAYS = 400
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# These names mean another zone on another machine.
OF_THE_MACHINE = frozenset({"localtime", "Factory"})


@cache
def zones() -> frozenset[str]:
    """Return the names of all IANA time zones; `ZoneInfo` also opens files that are none, such as `right/...`."""
    return frozenset(available_timezones()) - OF_THE_MACHINE


class Period(Enum):
    """How long a window lasts, or that it slides."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    NEVER = "never"
    SLIDING = "sliding"


class Window(NamedTuple):
    """The half-open span [start, end); `end` is None if the budget is never refreshed."""

    start: Microseconds
    end: Microseconds | None

    def since(self, time: Microseconds) -> Window:
        """Return the part of the span from a time on."""
        return self if time <= self.start else Window(time, self.end)

    @staticmethod
    def around_both(first: Window | None, second: Window | None) -> Window | None:
        """Return the span from the start of the earlier one to the end of the later one, of those that there are."""
        if first is None or second is None:
            return first or second
        ends = [each.end for each in (first, second) if each.end is not None]
        return Window(min(first.start, second.start), max(ends) if len(ends) > 1 else None)

    @property
    def until(self) -> tuple[bool, Microseconds]:
        """What orders windows by their ends; one without an end is after all others."""
        return (self.end is None, self.end or 0)


class DaySpan(NamedTuple):
    """The half-open span [start, end) of a day."""

    start: Microseconds
    end: Microseconds

    def contains(self, time: Microseconds) -> bool:
        """Return whether a time is on the day."""
        return self.start <= time < self.end

    def since(self, time: Microseconds) -> DaySpan:
        """Return the part of the day from a time on."""
        return self if time <= self.start else DaySpan(time, self.end)


class Span(Struct, frozen=True, gc=False):
    """What a rule means at one time: the window that admits charges, and what else counts.

    For a calendar rule only the window counts. For a sliding one the window is the day; days that began at
    `counts_from` or later count too, and today's charges count until `leaves_at`. `day` is the day in the rule's zone.
    """

    window: Window
    counts_from: Microseconds
    day: DaySpan
    leaves_at: Microseconds | None = None


class WindowRule(Struct, frozen=True, gc=False, cache_hash=True, array_like=True):
    """A calendar period in an IANA zone, or the last `days` days there; weeks begin on Monday."""

    period: Period
    zone: str
    days: int = 0

    def around(self, now: Microseconds) -> Span:
        """Return the span that contains `now`."""
        last = _last_spans.get(self)
        if last is not None and last.day.contains(now):
            return last
        if len(_last_spans) >= MAX_LAST_SPANS:
            _last_spans.clear()
        found = _last_spans[self] = self._find(now)
        return found

    def leaves_at(self, end: Microseconds) -> Microseconds:
        """Return when charges made just before `end` stop counting by this rule, which is a sliding one."""
        return _midnight(self._date(end - 1) + timedelta(days=self.days), self.zone)

    def _find(self, now: Microseconds) -> Span:
        today = self._date(now)
        if self.period is Period.NEVER:
            return Span(Window(0, None), 0, _day(today, self.zone))
        if self.period is Period.SLIDING:
            return _sliding_span(self.days, self.zone, today)
        return _calendar_span(self.period, self.zone, today)

    def _date(self, time: Microseconds) -> date:
        return datetime_of(time).astimezone(ZoneInfo(self.zone)).date()


def day_around(now: Microseconds, zone: str) -> DaySpan:
    """Return the day in a zone that contains `now`."""
    return WindowRule(Period.DAY, zone).around(now).day


# The last span of each rule: the calendar is computed once per day, not once per request.
_last_spans: dict[WindowRule, Span] = {}
MAX_LAST_SPANS = 1024


@lru_cache(maxsize=1024)
def _sliding_span(days: int, zone: str, today: date) -> Span:
    day = _day(today, zone)
    first, after = today - timedelta(days=days - 1), today + timedelta(days=days)
    return Span(Window(*day), _midnight(first, zone), day, _midnight(after, zone))


@lru_cache(maxsize=1024)
def _calendar_span(period: Period, zone: str, today: date) -> Span:
    if period is Period.DAY:
        first, after = today, today + timedelta(days=1)
    elif period is Period.WEEK:
        first = today - timedelta(days=today.weekday())
        after = first + timedelta(days=7)
    else:
        first = today.replace(day=1)
        after = (first + timedelta(days=31)).replace(day=1)
    window = Window(_midnight(first, zone), _midnight(after, zone))
    return Span(window, window.start, _day(today, zone))


def _day(today: date, zone: str) -> DaySpan:
    return DaySpan(_midnight(today, zone), _midnight(today + timedelta(days=1), zone))


def _midnight(day: date, zone: str) -> Microseconds:
    # Where clocks skip midnight, `fold=0` is the time of the jump; where midnight comes twice, the first one.
    return microseconds_of(datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)))


def datetime_of(time: Microseconds) -> datetime:
    """Return a time as a datetime in UTC, exactly."""
    return EPOCH + timedelta(microseconds=time)


def microseconds_of(time: datetime) -> Microseconds:
    """Return an aware datetime as microseconds, exactly."""
    return (time - EPOCH) // timedelta(microseconds=1)
