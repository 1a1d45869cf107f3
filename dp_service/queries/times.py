"""What the values of a time column mean, and when its closed periods end.

A value in days is a calendar day of the column's zone and begins with it, so a day can have 23 or 25 hours; any other
value counts its unit from 1970-01-01T00:00Z, and the zone decides only where periods begin.

A closed period is one that has ended and whose rows have all arrived. With `refresh`, questions see only closed
periods, so that rows that arrive during a period do not change an answer.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from enum import Enum, StrEnum
from zoneinfo import ZoneInfo

from dp_service.queries.elements import date_of
from dp_service.queries.errors import QuestionError
from dp_service.queries.intervals import ordinal

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


class TimeUnit(Enum):
    """The unit of a time column's values, in microseconds."""

    MILLISECONDS = 1_000
    SECONDS = 1_000_000
    DAYS = 86_400_000_000


class Refresh(StrEnum):
    """The length of a period: a day, a week that begins on Monday, or a calendar month."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True)
class ClosedPeriods:
    """Questions see only periods that ended at least `delay_minutes` ago.

    The delay is for rows that arrive late and for replicas whose clocks differ.
    """

    refresh: Refresh
    delay_minutes: int


@dataclass(frozen=True)
class TimeColumn:
    """The column that time ranges restrict; `zone` is an IANA name, `closed` None: rows count as they arrive."""

    name: str
    unit: TimeUnit
    zone: str = "UTC"
    closed: ClosedPeriods | None = None

    def first_value_from(self, timestamp: datetime.datetime) -> int:
        """Return the smallest value that does not stand for a time before `timestamp`, which is in UTC.

        Raises:
            QuestionError: The zone has no such day between the years 1 and 9999.
        """
        if self.unit is not TimeUnit.DAYS:
            return -(-((timestamp - _EPOCH) // _MICROSECOND) // self._microseconds)
        try:
            day = timestamp.astimezone(ZoneInfo(self.zone)).date()
            return ordinal(day) + (self._start_of(day) < timestamp)
        except OverflowError:
            raise QuestionError("time_range", "expected timestamps between the years 1 and 9999") from None

    def closed_before(self, now: int) -> int | None:
        """Return the first value that is in no closed period at `now`, seconds since 1970; None: questions see all."""
        if self.closed is None:
            return None
        settled = _EPOCH + datetime.timedelta(seconds=now, minutes=-self.closed.delay_minutes)
        day = _first_day(settled.astimezone(ZoneInfo(self.zone)).date(), self.closed.refresh)
        if self.unit is TimeUnit.DAYS:
            return ordinal(day)
        # In a zone that skipped the minutes around midnight, the start of the day could still lie ahead.
        return self.first_value_from(min(self._start_of(day), settled))

    def format_value(self, value: int) -> str:
        """Return a value as an ISO 8601 day, or as the timestamp in UTC that it stands for."""
        if self.unit is TimeUnit.DAYS:
            return date_of(value).isoformat()
        return (_EPOCH + value * self._microseconds * _MICROSECOND).isoformat()

    @property
    def _microseconds(self) -> int:
        return int(self.unit.value)

    def _start_of(self, day: datetime.date) -> datetime.datetime:
        """Return when a day begins, in UTC; where clocks skip midnight, when they do so."""
        midnight = datetime.datetime.combine(day, datetime.time.min, ZoneInfo(self.zone))
        return midnight.astimezone(datetime.UTC)


def _first_day(day: datetime.date, refresh: Refresh) -> datetime.date:
    match refresh:
        case Refresh.DAY:
            return day
        case Refresh.WEEK:
            return day - datetime.timedelta(days=day.weekday())
        case Refresh.MONTH:
            return day.replace(day=1)
