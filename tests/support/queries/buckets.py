"""Policies with buckets of time, and which bucket Python's calendar puts a row in."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.elements import days_of, microseconds_of
from dp_service.queries.filters import InPart, TimeRange, opposite
from dp_service.queries.functions.buckets import Truncated
from dp_service.queries.functions.parts import Extracted
from dp_service.queries.policy import parse_policy
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Policy
from dp_service.queries.time_parts import TimePart
from tests.support.typical import typically

TimeFunction = BucketLength | TimePart
NOW = 2_000_000_000
UTC = datetime.UTC
POLICY = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    time: {{column: at, type: {type}{zone}, buckets: [day, week, month, quarter, year],
           parts: [{hour}weekday, day, week, month, quarter]}}
    {contributions}
    measures: {{distinct_members: true, events: {{tau: 2, tau_is: clipped}}}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true, filter: [in, not_in], domain: [a, b]{delta}}}
    {values}
"""
SUMS = "values: {whole: {type: int64, lower: -3, upper: 5, row_lower: -10, row_upper: 10}}"
MICROSECOND = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime.fromtimestamp(0, UTC)


class TimeType(NamedTuple):
    """A type of a time column: as a policy states it, as Arrow stores it, and the microseconds of one step of it."""

    stated: str
    arrow: pa.DataType
    step: int


DAY = 86_400_000_000
TYPES = {
    "days": TimeType("date", pa.date32(), DAY),
    "numbered days": TimeType("int64, unit: days", pa.int64(), DAY),
    "timestamps": TimeType("timestamp", pa.timestamp("us"), 1),
    "seconds": TimeType("int64, unit: seconds", pa.int64(), 1_000_000),
    "milliseconds": TimeType("timestamp, unit: milliseconds", pa.int64(), 1000),
    "microseconds": TimeType("timestamp, unit: microseconds", pa.int64(), 1),
}


class Row(NamedTuple):
    """A row of the small table; its time is in UTC."""

    member: str | None
    at: datetime.datetime | None
    text: str | None = "a"
    whole: int | None = 1


def policy(
    kind: str = "timestamps",
    zone: str = "Europe/Berlin",
    *,
    contributions: str = "contributions: {bound: in_query, units: 10}",
    typical: int = 2,
    values: str = "",
) -> Policy:
    """Return a policy for a table with a time column of a kind."""
    stated = TYPES[kind].stated
    text = POLICY.format(
        type=stated,
        zone=f", zone: {zone}",
        contributions=contributions,
        values=values,
        delta="" if contributions else ", delta: 2",
        hour="" if TYPES[kind].step == DAY else "hour, ",
    )
    return parse_policy(typically(typical, text) if "in_query" in contributions else text)


def asked(
    function: TimeFunction,
    start: datetime.datetime,
    end: datetime.datetime,
    *,
    by: Sequence[str] = ("at",),
    measure: Measure = Measure.DISTINCT_MEMBERS,
) -> HistogramQuery:
    """Return a question by a function of the times of a range, which stands in the place of their column."""
    of_time = Extracted("at", function) if isinstance(function, TimePart) else Truncated("at", function)
    dimensions = tuple(of_time if each == "at" else each for each in by)
    return HistogramQuery("t", dimensions, measure, time_range=TimeRange(start, end))


def sorted_by(part: TimePart, start: datetime.datetime, end: datetime.datetime) -> tuple[HistogramQuery, ...]:
    """Return questions for totals of a range, with conditions on a part of its times: odd numbers, and even ones."""
    odd = InPart("at", part, tuple(each for each in part.values if each % 2))
    total = replace(asked(part, start, end), dimensions=())
    return replace(total, filters=(odd,)), replace(total, filters=(opposite(odd),))


def sorted_in(part: TimePart, of_hours: Mapping[datetime.datetime, Set[str]]) -> list[list[tuple[int, ...]]]:
    """Return the rows of the answers to these questions, given the members of each hour that clocks show."""
    found: tuple[set[str], set[str]] = (set(), set())
    for hour, members in of_hours.items():
        found[part.of(hour) % 2].update(members)
    return [[(len(each),)] for each in reversed(found)]


def arrow_table(rows: Sequence[Row], kind: str) -> pa.Table:
    """Return rows as a table; a column of days has those of the zone's calendar that the time is given in."""
    held = TYPES[kind]
    times = [None if row.at is None else stored(row.at, kind) for row in rows]
    return pa.table(
        {
            "member": pa.array([row.member for row in rows], pa.string()),
            "at": pa.array(times, pa.int64()).cast(pa.int32()).cast(held.arrow)
            if kind == "days"
            else pa.array(times, pa.int64()).cast(held.arrow),
            "text": pa.array([row.text for row in rows], pa.string()),
            "whole": pa.array([row.whole for row in rows], pa.int64()),
        }
    )


def stored(at: datetime.datetime, kind: str) -> int:
    """Return the number that a column of a kind holds for a time; for days those of the time's own clocks."""
    if TYPES[kind].step == DAY:
        return days_of(at.date())
    return microseconds_of(at) // TYPES[kind].step


def counted(
    rows: Iterable[Row],
    function: TimeFunction,
    within: tuple[datetime.datetime, datetime.datetime],
    zone: str,
    kind: str,
) -> dict[Any, int]:
    """Return how many distinct members have each value of a function in a range, by Python's calendar alone."""
    return counted_in(function, members_of_hours(rows, within, zone, TYPES[kind].step))


def counted_in(function: TimeFunction, of_hours: Mapping[datetime.datetime, Set[str]]) -> dict[Any, int]:
    """Return how many distinct members have each value of a function, given those of each hour that clocks show."""
    members: dict[Any, set[str]] = {}
    for hour, found in of_hours.items():
        value = function.of(hour) if isinstance(function, TimePart) else function.first_day(hour.date())
        members.setdefault(value, set()).update(found)
    return {value: len(found) for value, found in members.items()}


def members_of_hours(
    rows: Iterable[Row], within: tuple[datetime.datetime, datetime.datetime], zone: str, step: int
) -> dict[datetime.datetime, set[str]]:
    """Return the members of each hour that the zone's clocks show in a range; `step` is that of the column's type."""
    start, end = within
    clocks = ZoneInfo(zone)
    members: dict[datetime.datetime, set[str]] = {}
    for row in rows:
        if row.member is None or row.at is None:
            continue
        if step == DAY:
            day = row.at.date()
            if start.date() <= day < end.date():
                members.setdefault(datetime.datetime(day.year, day.month, day.day), set()).add(row.member)
            continue
        at = EPOCH + microseconds_of(row.at) // step * step * MICROSECOND
        if start <= at < end:
            hour = at.astimezone(clocks).replace(minute=0, second=0, microsecond=0, tzinfo=None)
            members.setdefault(hour, set()).add(row.member)
    return members


def functions(kind: str) -> tuple[TimeFunction, ...]:
    """Return the functions of time that a column of a kind has."""
    parts = (part for part in TimePart if part is not TimePart.HOUR or TYPES[kind].step != DAY)
    return (*BucketLength, *parts)
