"""What the values of a time column mean, and where its closed periods end.

A value in days is a calendar day of the column's zone and begins with it, so a day can have 23 or 25 hours; any other
value counts its unit from 1970-01-01T00:00Z, and the zone says only where periods begin.

A closed period is one that has ended and whose rows have all arrived. Questions see nothing but closed periods, so that
rows that arrive during a period do not change an answer.
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
    """What one step of the time column's values is, in microseconds."""

    MILLISECONDS = 1_000
    SECONDS = 1_000_000
    DAYS = 86_400_000_000


class Refresh(StrEnum):
    """How long a period is: a day, a week from Monday on, or a calendar month."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True)
class ClosedPeriods:
    """Only periods that ended at least `delay_minutes` ago are asked about.

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

    def first_value_from(self, moment: datetime.datetime) -> int:
        """Return the smallest value that does not stand for a time before `moment`, which is in UTC.

        Raises QuestionError if the zone has no such day between the years 1 and 9999.
        """
        if self.unit is not TimeUnit.DAYS:
            return -(-((moment - _EPOCH) // _MICROSECOND) // self._microseconds)
        try:
            day = moment.astimezone(ZoneInfo(self.zone)).date()
            return ordinal(day) + (self._start_of(day) < moment)
        except OverflowError:
            raise QuestionError("time_range", "expected moments between the years 1 and 9999") from None

    def closed_before(self, now: int) -> int | None:
        """Return the first value that is in no closed period at `now`, seconds since 1970; None: all may be asked."""
        if self.closed is None:
            return None
        settled = _EPOCH + datetime.timedelta(seconds=now, minutes=-self.closed.delay_minutes)
        day = _first_day(settled.astimezone(ZoneInfo(self.zone)).date(), self.closed.refresh)
        if self.unit is TimeUnit.DAYS:
            return ordinal(day)
        # A zone that skipped the minutes around midnight could name a start that is still to come.
        return self.first_value_from(min(self._start_of(day), settled))

    def words_for(self, value: int) -> str:
        """Say a value as a day, or as the moment in UTC that it stands for."""
        if self.unit is TimeUnit.DAYS:
            return date_of(value).isoformat()
        return (_EPOCH + value * self._microseconds * _MICROSECOND).isoformat()

    @property
    def _microseconds(self) -> int:
        return int(self.unit.value)

    def _start_of(self, day: datetime.date) -> datetime.datetime:
        """Return the moment at which a day begins; where clocks skip midnight, the moment at which they do."""
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
