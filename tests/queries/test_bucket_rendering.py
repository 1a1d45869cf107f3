"""The query for buckets of time, on a real DuckDB: Python's calendar decides, around changes of clocks too."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from zoneinfo import ZoneInfo

import duckdb
import pytest

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.render import render
from dp_service.queries.render.bucket_expressions import BucketedTimes
from dp_service.queries.resolution import resolve
from dp_service.queries.times import TimeUnit
from dp_service.queries.zone_offsets import zone_offsets
from tests.support.queries.bucketing import (
    MICROSECOND,
    NOW,
    TYPES,
    UTC,
    Row,
    arrow_table,
    asked,
    counted,
    policy,
)

HOUR = datetime.timedelta(hours=1)
# Clocks that change at midnight, by half an hour, by a whole day or by seconds; leap days; weeks of two years.
RANGES = [
    ("Europe/Berlin", "2023-12-20", "2024-11-05"),
    ("America/Sao_Paulo", "2017-10-01", "2018-11-20"),
    ("Australia/Lord_Howe", "2024-03-25", "2024-10-20"),
    ("Pacific/Apia", "2011-12-20", "2012-01-10"),
    ("Asia/Kathmandu", "1985-12-20", "1986-01-15"),
    ("Europe/Amsterdam", "1936-12-20", "1940-06-01"),
    ("America/St_Johns", "1969-10-01", "1970-05-10"),
    ("UTC", "2019-12-20", "2020-03-10"),
]


def at(text: str) -> datetime.datetime:
    """Return the beginning of a day in UTC."""
    return datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)


def instants(start: datetime.datetime, end: datetime.datetime, zone: str) -> Iterator[datetime.datetime]:
    """Yield times in a range and around it: every 7 hours, each change of clocks, each midnight, and beside them."""
    yield from (start + 7 * HOUR * step for step in range(-10, int((end - start) / HOUR / 7) + 10))
    edges = [start, end, *(each.until for each in zone_offsets(start, end, zone) if each.until is not None)]
    day = start.date()
    while day <= end.date():
        midnight = datetime.datetime.combine(day, datetime.time.min, ZoneInfo(zone))
        edges += [midnight.astimezone(UTC), midnight.replace(fold=1).astimezone(UTC)]
        day += datetime.timedelta(days=1)
    for edge in edges:
        yield from (edge - MICROSECOND, edge, edge + MICROSECOND, edge - datetime.timedelta(seconds=1))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("zone", "start", "end"), RANGES)
def test_every_time_is_in_the_bucket_of_the_calendar(kind: str, zone: str, start: str, end: str) -> None:
    """For every length and every type of column; each row is a member of its own, and one has no time."""
    # The range begins and ends within a bucket, and within a day of most zones.
    first, last = at(start) + 5 * HOUR, at(end) + 11 * HOUR
    rows = [Row(str(place), time) for place, time in enumerate(instants(first, last, zone))]
    rows += [Row("none", None), Row(None, first)]
    if "days" in kind:
        rows = [row._replace(at=row.at and row.at.replace(tzinfo=UTC)) for row in rows]
        first, last = at(start), at(end)
    under = policy(kind, "UTC" if "days" in kind else zone, contributions="")
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("t", arrow_table(rows, kind))
        for length in BucketLength:
            resolution = resolve(asked(length, first, last), under, now=NOW)
            found = dict(database.execute(render(resolution, "duckdb")).fetchall())
            expected = counted(rows, length, (first, last), zone, kind)
            assert found == expected
            assert len(found) <= len(resolution.parameters.domain or ())
            assert {day.toordinal() for day in found} <= {
                int(day) + datetime.date(1970, 1, 1).toordinal()
                for (day,) in resolution.parameters.domain or ()
            }


def test_a_zone_that_is_dropped_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last hours of a month in UTC are the next month in Berlin."""
    monkeypatch.setattr(BucketedTimes, "moved", lambda _self, number, _unit: number)
    with pytest.raises(AssertionError):
        test_every_time_is_in_the_bucket_of_the_calendar(
            "milliseconds", "Europe/Berlin", "2023-12-20", "2024-02-05"
        )


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "Europe/Amsterdam", "America/Sao_Paulo", "Pacific/Apia", "UTC"]
)
def test_offsets_are_those_of_the_zone(zone: str) -> None:
    """At every hour, and right before and at each change."""
    start, end = at("1936-01-01"), at("1941-01-01")
    for first, last in [(start, end), (at("2011-06-01"), at("2013-06-01"))]:
        offsets = zone_offsets(first, last, zone)
        edges = [each.until for each in offsets if each.until is not None]
        assert edges == sorted(edges)
        times = [first + HOUR * step for step in range(int((last - first) / HOUR))]
        for time in [*times, *edges, *(edge - MICROSECOND for edge in edges)]:
            (seconds,) = [each.seconds for each in offsets if each.until is None or time < each.until][:1]
            offset = time.astimezone(ZoneInfo(zone)).utcoffset()
            assert offset is not None
            assert seconds == offset.total_seconds()


@pytest.mark.parametrize("unit", [each for each in TimeUnit if each is not TimeUnit.DAYS])
def test_one_offset_needs_no_condition(unit: TimeUnit) -> None:
    """And none at all needs no sum."""
    winter = at("2024-01-01"), at("2024-02-01")
    bucket = resolve(asked(BucketLength.DAY, *winter), policy(), now=NOW).query.bucket
    assert bucket is not None
    east, west, utc = (
        BucketedTimes(bucket, zone_offsets(*winter, zone)).moved("x", unit)
        for zone in ("Europe/Berlin", "America/New_York", "UTC")
    )
    hours = 3_600_000_000 // int(unit.value)
    assert (east, west, utc) == (f"(x + {hours})", f"(x - {5 * hours})", "x")
