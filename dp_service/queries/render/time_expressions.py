"""Functions of time as SQL: the first day of the bucket that a row's time falls into, or a part such as its hour.

A time is moved by how far the clocks of the policy's zone are ahead of UTC, which are numbers in the query
(`zone_offsets`), and what they show then is a time of a calendar without zones. So no zone of an engine takes part, and
a row has the bucket and the parts of Python's calendar on every engine.

Only rows whose time is in the question's range are given to these functions, which fail on some others; DuckDB also
tries them on the least value of a column while it plans (`duckdb_time`). Engines may try conditions in any order, so
in the WHERE of a second look a bucket is the range of its times, and a part is one of times brought into the range.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.canonical_columns import (
    OrdinalRestriction,
    QueryColumn,
    QueryTime,
)
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.elements import microseconds_of, timestamp_of
from dp_service.queries.intervals import Interval, Intervals, ordinal
from dp_service.queries.time_parts import TimePart
from dp_service.queries.times import TimeUnit
from dp_service.queries.zone_offsets import ZoneOffset, zone_offsets
from dp_service.terms import ColumnType

TimeFunction = BucketLength | TimePart
_MICROSECONDS_PER_SECOND = 1_000_000
_MICROSECONDS_PER_DAY = 86_400 * _MICROSECONDS_PER_SECOND
_UTC = "UTC"
_JAVA_UNITS = {
    TimeUnit.DAYS: "DAYS",
    TimeUnit.SECONDS: "SECONDS",
    TimeUnit.MILLISECONDS: "MILLISECONDS",
    TimeUnit.MICROSECONDS: "MICROSECONDS",
}
_PINOT_UNITS = {
    TimeUnit.DAYS: "DAY",
    TimeUnit.SECONDS: "SECOND",
    TimeUnit.MILLISECONDS: "MILLISECOND",
    TimeUnit.MICROSECONDS: "MILLISECOND",
}
_SPARK_PARTS = {
    TimePart.HOUR: "hour",
    TimePart.DAY: "dayofmonth",
    TimePart.WEEK: "weekofyear",
    TimePart.MONTH: "month",
    TimePart.QUARTER: "quarter",
}
_PINOT_PARTS = {
    TimePart.HOUR: "hour",
    TimePart.WEEKDAY: "dayOfWeek",
    TimePart.DAY: "dayOfMonth",
    TimePart.WEEK: "week",
    TimePart.MONTH: "month",
    TimePart.QUARTER: "quarter",
}


@dataclass(frozen=True)
class LocalTimes:
    """The times of a question's range, and how far clocks are ahead of UTC in it."""

    time: QueryTime
    range: Interval
    offsets: tuple[ZoneOffset, ...]

    def moved(self, number: str, unit: TimeUnit) -> str:
        """Write what the clocks of the zone show, as a number of a unit from 1970-01-01, from such a number in UTC."""
        size = int(unit.value)
        steps = [offset.seconds * _MICROSECONDS_PER_SECOND // size for offset in self.offsets]
        if len(steps) == 1:
            return (
                f"({number} + {steps[0]})"
                if steps[0] > 0
                else f"({number} - {-steps[0]})"
                if steps[0]
                else number
            )
        until = [-(-microseconds_of(each.until) // size) for each in self.offsets if each.until is not None]
        cases = " ".join(
            f"WHEN {number} < {end} THEN {step}" for end, step in zip(until, steps[:-1], strict=True)
        )
        return f"({number} + CASE {cases} ELSE {steps[-1]} END)"

    def values_in(self, first_day: datetime.date, length: BucketLength) -> Intervals:
        """Return the values of the time column that fall into a bucket, by the same offsets: mostly one interval.

        There are several where clocks go back across the end of the bucket, and show its last hour once more.
        """
        size = int(self.time.unit.value)
        days = (first_day, length.day_after(first_day))
        start, end = (ordinal(day) * _MICROSECONDS_PER_DAY for day in days)
        found: list[Interval] = []
        since: int | None = None
        for offset in self.offsets:
            ahead = offset.seconds * _MICROSECONDS_PER_SECOND
            until = None if offset.until is None else microseconds_of(offset.until)
            first = start - ahead if since is None else max(start - ahead, since)
            after = end - ahead if until is None else min(end - ahead, until)
            interval = Interval(-(-first // size), -(-after // size))
            if interval.start < interval.end:
                found.append(interval)
            since = until
        return tuple(_joined(found))


def _joined(intervals: list[Interval]) -> Iterator[Interval]:
    """Yield ascending intervals; those that touch each other are one."""
    open_one: Interval | None = None
    for each in intervals:
        if open_one is not None and each.start > open_one.end:
            yield open_one
            open_one = None
        open_one = Interval(each.start if open_one is None else open_one.start, each.end)
    if open_one is not None:
        yield open_one


def local_times(query: CanonicalQuery, time: QueryTime) -> LocalTimes:
    """Return the times that functions of time are of in a question."""
    (times,) = (
        each
        for each in query.restrictions
        if isinstance(each, OrdinalRestriction) and each.column.name == time.column.name
    )
    return times_within(time, times.hull)


def times_within(time: QueryTime, found: Interval) -> LocalTimes:
    """Return the times of an interval of a column's values."""
    if time.zone == _UTC:
        return LocalTimes(time, found, (ZoneOffset(0, None),))
    size = int(time.unit.value)
    start, end = (timestamp_of(number * size) for number in (found.start, found.end))
    return LocalTimes(time, found, zone_offsets(start, end, time.zone))


def duckdb_time(key: str, times: LocalTimes, function: TimeFunction) -> str:
    """Write a function of a column; DuckDB's weeks begin on Monday."""
    day_of_number = "(DATE '1970-01-01' + CAST({} AS INTEGER))"
    local = _local(key, times, day_of_number, "epoch_us(CAST({} AS TIMESTAMP))", "make_timestamp({})")
    if isinstance(function, TimePart):
        return f"date_part('{function.in_sql.lower()}', {local})"
    if times.time.column.type is ColumnType.DATE:
        # To plan, DuckDB truncates the column's least value, whatever the conditions leave of it, and its first day has
        # no Monday before it. It expects nothing of a GREATEST, and questions see no day before this one.
        local = f"GREATEST({local}, DATE '0001-01-01')"
    return f"CAST(date_trunc('{function}', {local}) AS DATE)"


def spark_time(key: str, times: LocalTimes, function: TimeFunction) -> str:
    """Write a function of a column, in a session whose zone is UTC.

    Spark's weeks begin on Monday, but its weekdays with 0.
    """
    day_of_number = "date_from_unix_date(CAST({} AS INT))"
    local = _local(key, times, day_of_number, "unix_micros(CAST({} AS TIMESTAMP))", "timestamp_micros({})")
    if not isinstance(function, TimePart):
        return f"CAST(date_trunc('{function.upper()}', {local}) AS DATE)"
    is_weekday = function is TimePart.WEEKDAY
    return (
        f"CAST({f'weekday({local}) + 1' if is_weekday else f'{_SPARK_PARTS[function]}({local})'} AS BIGINT)"
    )


def _local(key: str, times: LocalTimes, day: str, microseconds: str, timestamp: str) -> str:
    """Write a day, or what clocks show: functions that an engine has for a number of days and of microseconds."""
    column, unit = times.time.column, times.time.unit
    if column.type is ColumnType.DATE:
        return key
    if unit is TimeUnit.DAYS:
        return day.format(key)
    if is_own_timestamp(column):
        return timestamp.format(times.moved(microseconds.format(key), TimeUnit.MICROSECONDS))
    moved = times.moved(f"CAST({key} AS BIGINT)", unit)
    return timestamp.format(moved if unit is TimeUnit.MICROSECONDS else f"{moved} * {unit.value}")


def pinot_time(key: str, times: LocalTimes, function: TimeFunction) -> str:
    """Write a function of a column: a bucket as a number of days, which is how Pinot stores days.

    The key of a timestamp is a number of milliseconds. `dateTrunc` takes and returns units of Java; weeks and weekdays
    are those of ISO 8601. Parts are of milliseconds.
    """
    unit = TimeUnit.MILLISECONDS if is_own_timestamp(times.time.column) else times.time.unit
    number = key if unit is TimeUnit.DAYS else times.moved(key, unit)
    given = f"{number}, '{_JAVA_UNITS[unit]}', '{_UTC}'"
    if not isinstance(function, TimePart):
        return f"dateTrunc('{function.upper()}', {given}, 'DAYS')"
    return f"{_PINOT_PARTS[function]}(dateTrunc('{_PINOT_UNITS[unit]}', {given}, 'MILLISECONDS'), '{_UTC}')"


def is_own_timestamp(column: QueryColumn) -> bool:
    """Return whether a column has the engine's own type for timestamps."""
    return column.type is ColumnType.TIMESTAMP and column.stored is None


TimeWriter = Callable[[str, LocalTimes, TimeFunction], str]
