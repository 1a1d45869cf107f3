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
from typing import Annotated, Literal, TypeVar
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.elements import date_of, microseconds_of, timestamp_of
from dp_service.queries.errors import QuestionError
from dp_service.queries.intervals import UNIVERSES, Interval, ordinal
from dp_service.queries.policy_types import (
    DEFAULT_DELAY_MINUTES,
    MAXIMUM_DELAY_MINUTES,
    MAXIMUM_DOMAIN_SIZE,
    Day,
    Identifier,
    Stated,
    TimestampUnit,
    Zone,
)
from dp_service.queries.time_parts import TimePart
from dp_service.terms import ColumnType


class TimeUnit(Enum):
    """The unit of a time column's values, in microseconds."""

    MICROSECONDS = 1
    MILLISECONDS = 1_000
    SECONDS = 1_000_000
    DAYS = 86_400_000_000

    @classmethod
    def named(cls, name: str) -> TimeUnit:
        """Return a unit by its name in a policy."""
        return cls[name.upper()]


class Refresh(StrEnum):
    """The length of a period: a day, a week that begins on Monday, or a calendar month."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class CompleteBy(StrEnum):
    """How it is known that all rows of a closed period have been taken in from a stream.

    By the offsets of the stream's end, read after the period was closed; or by the delay alone.
    """

    OFFSETS = "offsets"
    DELAY = "delay"


class ReplacedRows(StrEnum):
    """Which rows newer ones may replace: those of periods that are not closed, by a key that the member is part of.

    By the same member: the member may not be part of the key, but rows with one key are of one member.
    """

    UNTIL_CLOSED = "until_closed"
    UNTIL_CLOSED_BY_SAME_MEMBER = "until_closed_by_same_member"


_Offered = TypeVar("_Offered", BucketLength, TimePart)


def _each_once(offered: object) -> object:
    """Return a list as a mapping that says no numbers."""
    if not isinstance(offered, list):
        return offered
    found: dict[object, None] = {str(each): None for each in offered}
    if len(found) < len(offered):
        raise ValueError("expected each of them once")
    return found


def _in_order(offered: dict[_Offered, int | None]) -> dict[_Offered, int | None]:
    kinds = type(next(iter(offered))) if offered else ()
    return {each: offered[each] for each in kinds if each in offered}


_Typical = Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)] | None


class TimeColumn(Stated):
    """The column that time ranges restrict; it holds days, timestamps, or integers since 1970-01-01.

    Attributes:
        name: The name of the column.
        type: What it holds.
        counts: What its integers count, from 1970-01-01T00:00Z; None: it holds days, or the engine's own timestamps.
        zone: The IANA name of the zone in which days begin.
        refresh: How long a closed period is: questions see no others; None: rows count as they arrive.
        delay_minutes: How long ago a closed period ended at least, for rows that arrive late and for replicas whose
            clocks differ.
        complete_by: How it is known that all rows of a closed period are in; None: the policy knows of no stream.
        replaced_rows: Newer rows of the stream may replace older ones, but none of a closed period. Its author promises
            this and the one below.
        offline_part: The table may have an offline part, which holds every row of each day up to its last one.
        buckets: Into which buckets questions may divide the column, from the shortest on, and in how many of them a
            member typically has rows; None: the query bounds no members.
        parts: By which parts of its times questions may group, such as their hour, with the same numbers.
        begins: The first day that series and first times count where they do not say from when.
        ends: The first day that they no longer count where they do not say until when.
    """

    name: Annotated[Identifier, Field(alias="column")]
    type: Literal["date", "int64", "timestamp"]
    counts: Annotated[Literal["days"] | TimestampUnit | None, Field(alias="unit")] = None
    zone: Zone = "UTC"
    refresh: Annotated[Refresh, Field(strict=False)] | None = None
    delay_minutes: Annotated[int, Field(ge=0, le=MAXIMUM_DELAY_MINUTES)] = DEFAULT_DELAY_MINUTES
    complete_by: Annotated[CompleteBy, Field(strict=False)] | None = None
    replaced_rows: Annotated[ReplacedRows, Field(strict=False)] | None = None
    offline_part: Literal["whole_days"] | None = None
    buckets: Annotated[
        dict[Annotated[BucketLength, Field(strict=False)], _Typical],
        BeforeValidator(_each_once),
        AfterValidator(_in_order),
    ] = Field(default_factory=dict)
    parts: Annotated[
        dict[Annotated[TimePart, Field(strict=False)], _Typical],
        BeforeValidator(_each_once),
        AfterValidator(_in_order),
    ] = Field(default_factory=dict)
    begins: Annotated[Day | None, Field(alias="from")] = None
    ends: Annotated[Day | None, Field(alias="to")] = None

    @property
    def unit(self) -> TimeUnit:
        """The unit of its values; an engine's own timestamps are counted in microseconds."""
        if self.counts is not None:
            return TimeUnit.named(self.counts)
        return TimeUnit.DAYS if self.type == "date" else TimeUnit.MICROSECONDS

    def first_value_from(self, bound: datetime.date) -> int:
        """Return the smallest value that stands for no time before a timestamp in UTC, or before a day of the zone.

        Raises:
            QuestionError: The zone has no such day between the years 1 and 9999.
        """
        try:
            if self.unit is TimeUnit.DAYS:
                return self._first_day(bound)
            at = bound if isinstance(bound, datetime.datetime) else start_of_day(bound, self.zone)
            return _rounded_up(microseconds_of(at), self._microseconds)
        except OverflowError:
            raise QuestionError("time_range", BEYOND_ALL_TIMESTAMPS) from None

    def _first_day(self, bound: datetime.date) -> int:
        if not isinstance(bound, datetime.datetime):
            return ordinal(bound)
        day = bound.astimezone(ZoneInfo(self.zone)).date()
        return ordinal(day) + (start_of_day(day, self.zone) < bound)

    def closed_before(self, now: int) -> int | None:
        """Return the first value that is in no closed period at `now`, seconds since 1970; None: questions see all."""
        if self.refresh is None:
            return None
        settled = timestamp_of(0) + datetime.timedelta(seconds=now, minutes=-self.delay_minutes)
        day = BucketLength(self.refresh).first_day(settled.astimezone(ZoneInfo(self.zone)).date())
        if self.unit is TimeUnit.DAYS:
            return ordinal(day)
        # In a zone that skipped the minutes around midnight, the start of the day could still lie ahead.
        return self.first_value_from(min(start_of_day(day, self.zone), settled))

    def format_value(self, value: int) -> str:
        """Return a value as an ISO 8601 day, or as the timestamp in UTC that it stands for."""
        if self.unit is TimeUnit.DAYS:
            return date_of(value).isoformat()
        return timestamp_of(value * self._microseconds).isoformat()

    @property
    def calendar(self) -> Interval:
        """The values that stand for times of which every engine knows the calendar."""
        if self.unit is TimeUnit.DAYS:
            return UNIVERSES[ColumnType.DATE]
        times = UNIVERSES[ColumnType.TIMESTAMP]
        return Interval(*(_rounded_up(end, self._microseconds) for end in (times.start, times.end)))

    def ends_in(self, values: Interval) -> tuple[bool, bool]:
        """Return whether values begin and end with a time, as the integer beside the one for NULL does not."""
        return values.start > self.calendar.start, values.end < self.calendar.end

    @property
    def _microseconds(self) -> int:
        return int(self.unit.value)


@dataclass(frozen=True)
class Timestamps:
    """What a column of timestamps holds.

    Attributes:
        stored: The unit of the integers that it holds, counted from 1970-01-01T00:00Z; None: it has the engine's own
            type for timestamps, and they are counted in microseconds here.
        zone: The IANA name of the zone in which days begin, and in which times without an offset are read.
    """

    stored: TimeUnit | None
    zone: str = "UTC"

    @property
    def unit(self) -> TimeUnit:
        """The unit in which timestamps of this column are counted."""
        return self.stored or TimeUnit.MICROSECONDS

    def first_from(self, value: datetime.date) -> int:
        """Return the smallest number that does not stand for a time before a timestamp, or before a day begins."""
        return _rounded_up(self._microseconds(value), int(self.unit.value))

    def first_after(self, value: datetime.date) -> int:
        """Return the smallest number that stands for a time after a timestamp, or after the beginning of a day."""
        return self._microseconds(value) // int(self.unit.value) + 1

    def _microseconds(self, value: datetime.date) -> int:
        if isinstance(value, datetime.datetime):
            return microseconds_of(value)
        try:
            return microseconds_of(start_of_day(value, self.zone))
        except OverflowError:
            raise QuestionError("filters", BEYOND_ALL_TIMESTAMPS) from None


BEYOND_ALL_TIMESTAMPS = "expected timestamps between the years 1 and 9999"


def start_of_day(day: datetime.date, zone: str) -> datetime.datetime:
    """Return when a day of a zone begins, in UTC; where clocks skip midnight, when they do so.

    Raises:
        OverflowError: In UTC it is outside the years 1 to 9999.
    """
    midnight = datetime.datetime.combine(day, datetime.time.min, ZoneInfo(zone))
    return midnight.astimezone(datetime.UTC)


def instant_of(local: datetime.datetime, zone: str) -> datetime.datetime | None:
    """Return when the clocks of a zone show a time, in UTC.

    Midnight is the beginning of its day. Any other time that clocks show twice, or skip, stands for none.

    Args:
        local: The time, without an offset.
        zone: The IANA name of the zone.

    Returns:
        The timestamp, or None if the clocks show this time twice or not at all.

    Raises:
        OverflowError: In UTC it is outside the years 1 to 9999.
    """
    if local.time() == datetime.time.min:
        return start_of_day(local.date(), zone)
    first, second = (local.replace(tzinfo=ZoneInfo(zone), fold=fold) for fold in (0, 1))
    return first.astimezone(datetime.UTC) if first.utcoffset() == second.utcoffset() else None


def _rounded_up(microseconds: int, unit: int) -> int:
    return -(-microseconds // unit)
