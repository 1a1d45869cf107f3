"""The query for buckets of time, on a real DuckDB: Python's calendar decides, around changes of clocks too."""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import duckdb
import pytest

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.elements import days_of
from dp_service.queries.functions.buckets import QueryBucket
from dp_service.queries.intervals import Interval
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.render.time_expressions import LocalTimes, local_times
from dp_service.queries.resolution import Resolution, resolve, second_look
from dp_service.queries.time_buckets import bucket_of
from dp_service.queries.time_parts import TimePart
from dp_service.queries.times import TimeUnit
from dp_service.queries.zone_offsets import zone_offsets
from dp_service.terms import GRID
from tests.support.queries.buckets import (
    DAY,
    EPOCH,
    MICROSECOND,
    NOW,
    POLICY,
    TYPES,
    UTC,
    Row,
    TimeFunction,
    arrow_table,
    asked,
    counted,
    counted_in,
    functions,
    members_of_hours,
    policy,
    sorted_by,
    sorted_in,
)
from tests.support.some import some
from tests.support.typical import typically

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


# Columns of all types hold the same times of a range, and those of one step the same times of the calendar.
@lru_cache(maxsize=1)
def rows_around(zone: str, start: str, end: str) -> tuple[Row, ...]:
    """Return a member for each time in and around a range, one without a time, and nobody's row."""
    first = at(start) + 5 * HOUR
    times = instants(first, at(end) + 11 * HOUR, zone)
    rows = [Row(str(place), time) for place, time in enumerate(times)]
    return (*rows, Row("none", None), Row(None, first))


@lru_cache(maxsize=4)
def members_by_hour(zone: str, start: str, end: str, step: int) -> dict[datetime.datetime, set[str]]:
    """Return the members of each hour of `asked_for`, by Python's calendar."""
    return members_of_hours(rows_around(zone, start, end), asked_for(start, end, step), zone, step)


def asked_for(start: str, end: str, step: int) -> tuple[datetime.datetime, datetime.datetime]:
    """Return a range that begins and ends within a bucket, and within a day of most zones if there are parts of it."""
    if step == DAY:
        return at(start), at(end)
    return at(start) + 5 * HOUR, at(end) + 11 * HOUR


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database in UTC; what a test registers or makes as temporary is its cursor's own."""
    with duckdb.connect() as found:
        found.execute("SET GLOBAL TimeZone = 'UTC'")
        yield found


def _number(value: datetime.date | int) -> tuple[int, bool]:
    """Return a part of time, or the ordinal of a day and that it is one."""
    return (value.toordinal(), True) if isinstance(value, datetime.date) else (value, False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("zone", "start", "end"), RANGES)
def test_functions_of_time_are_those_of_the_calendar(
    database: duckdb.DuckDBPyConnection, kind: str, zone: str, start: str, end: str
) -> None:
    """For every length and every type of column; each row is a member of its own, and one has no time."""
    step = TYPES[kind].step
    first, last = asked_for(start, end, step)
    under = policy(kind, "UTC" if "days" in kind else zone, contributions="")
    of_hours = members_by_hour(zone, start, end, step)
    database.register("t", arrow_table(rows_around(zone, start, end), kind))
    for function in functions(kind):
        resolution = resolve(asked(function, first, last), under, now=NOW)
        found = dict(database.execute(render(resolution, "duckdb")).fetchall())
        assert found == counted_in(function, of_hours)
        shown = {each - EPOCH.toordinal() if days else each for each, days in map(_number, found)}
        assert shown <= {int(value) for (value,) in resolution.parameters.domain or ()}
        if isinstance(function, TimePart):
            conditions = [resolve(each, under, now=NOW) for each in sorted_by(function, first, last)]
            answers = [database.execute(render(each, "duckdb")).fetchall() for each in conditions]
            assert list(map(sorted, answers)) == sorted_in(function, of_hours)


def test_a_zone_that_is_dropped_is_found(
    monkeypatch: pytest.MonkeyPatch, database: duckdb.DuckDBPyConnection
) -> None:
    """The last hours of a month in UTC are the next month in Berlin."""
    monkeypatch.setattr(LocalTimes, "moved", lambda _self, number, _unit: number)
    with pytest.raises(AssertionError):
        test_functions_of_time_are_those_of_the_calendar(
            database, "milliseconds", "Europe/Berlin", "2023-12-20", "2024-02-05"
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("zone", "start", "end"), [*RANGES, ("America/St_Johns", "2006-10-20", "2006-11-10")]
)
def test_the_range_of_a_bucket_has_the_times_of_the_calendar(zone: str, start: str, end: str) -> None:
    """Also where clocks go back by an hour a minute after midnight, so that a day ends twice."""
    first, last = at(start) + 5 * HOUR, at(end) + 11 * HOUR
    times = [time for time in instants(first, last, zone) if first <= time < last]
    for length in BucketLength:
        query = resolve(asked(length, first, last), policy("microseconds", zone), now=NOW).query
        bucket = query.dimensions[0].source
        assert isinstance(bucket, QueryBucket)
        of_buckets: dict[datetime.date, list[int]] = {}
        for time in times:
            of_buckets.setdefault(bucket_of(length, time, zone), []).append((time - EPOCH) // MICROSECOND)
        found: list[Interval] = []
        for day, numbers in some(of_buckets.items()):
            intervals = local_times(query, bucket.time).values_in(day, length)
            assert all(any(each.start <= number < each.end for each in intervals) for number in some(numbers))
            found += intervals
        # Nor does a time fall into two of them.
        assert all(before.end <= after.start for before, after in pairwise(sorted(found)))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("extreme", ["least", "greatest"])
def test_a_row_at_the_end_of_its_type_decides_nothing_about_a_series(
    database: duckdb.DuckDBPyConnection, kind: str, extreme: str
) -> None:
    """DuckDB plans with the least and the greatest value of a column, and no bucket begins before its first day."""
    ends = {
        "days": ("5877642-06-25 (BC)", "5881580-07-10"),
        "timestamps": ("290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806"),
    }.get(kind, (-(2**63), 2**63 - 1))
    first, last = at("2024-02-01"), at("2024-03-01")
    under = policy(kind, "UTC", contributions="")
    with database.cursor() as own:
        own.register("held", arrow_table([Row("ann", at("2024-02-03"), "a")], kind))
        own.execute("CREATE TEMP TABLE t AS SELECT * FROM held")
        own.execute("INSERT INTO t VALUES ('mallory', ?, 'a', 1)", [ends[extreme == "greatest"]])
        for function in functions(kind):
            resolution = resolve(asked(function, first, last), under, now=NOW)
            answer = own.execute(render(resolution, "duckdb")).fetchall()
            day = at("2024-02-03")
            value = function.of(day) if isinstance(function, TimePart) else bucket_of(function, day, "UTC")
            assert answer == [(value, 1)]


def named(
    kind: str,
    first: datetime.datetime,
    last: datetime.datetime,
    function: TimeFunction = BucketLength.MONTH,
    values: tuple[int, int] = (
        days_of(datetime.date(2024, 3, 1)),
        days_of(datetime.date(2024, 10, 1)),
    ),
) -> Resolution:
    """Return the second look of a question by a function of time and texts of an unknown domain, at three pairs."""
    block = "{bound: in_query, units: 10, longest_list: 50}"
    zone = "UTC" if "days" in kind else "Europe/Berlin"
    text = POLICY.format(
        type=TYPES[kind].stated,
        zone=f", zone: {zone}",
        contributions=f"contributions: {block}",
        values="",
        delta="",
        hour="",
    )
    question = asked(function, first, last, by=("at", "text"))
    resolution = resolve(question, parse_policy(typically(9, text.replace(", domain: [a, b]", ""))), now=NOW)
    return second_look(resolution, ((values[0], "a"), (values[0], "it's"), (values[1], "b")))


@pytest.mark.parametrize("function", [BucketLength.MONTH, TimePart.WEEKDAY])
@pytest.mark.parametrize("kind", TYPES)
def test_a_second_look_counts_the_times_that_it_names(
    database: duckdb.DuckDBPyConnection, kind: str, function: TimeFunction
) -> None:
    """Rows whose time no function of the engine takes, such as infinities and 2^63 - 1, only drop out."""
    first, last = at("2024-01-05"), at("2024-12-20")
    edges = [
        at(f"2024-{month:02}-01") + hours * HOUR for month in (3, 4, 10, 11) for hours in (-3, -2, -1, 0, 1)
    ]
    rows = [
        Row(f"{place}{text}", time, text) for place, time in enumerate(edges) for text in ("a", "it's", "b")
    ]
    with database.cursor() as own:
        own.register("held", arrow_table(rows, kind))
        own.execute("CREATE TEMP TABLE t AS SELECT * FROM held")
        extremes = (
            ["-infinity", "infinity"]
            if TYPES[kind].arrow in (TYPES["days"].arrow, TYPES["timestamps"].arrow)
            else [-(2**63), 2**63 - 1]
        )
        for extreme in extremes:
            own.execute("INSERT INTO t VALUES ('mallory', ?, 'a', 1)", [extreme])
        numbers = (5, 7) if function is TimePart.WEEKDAY else None
        resolution = named(kind, first, last, function, *([numbers] if numbers else []))
        answer = own.execute(render(resolution, "duckdb")).fetchall()
    zone = "UTC" if "days" in kind else "Europe/Berlin"
    one, other = numbers or (datetime.date(2024, 3, 1), datetime.date(2024, 10, 1))
    # Each member has one pair, so it counts in full, on the grid.
    expected = {
        (value, text): GRID
        * counted([row for row in rows if row.text == text], function, (first, last), zone, kind)[value]
        for value, text in [(one, "a"), (one, "it's"), (other, "b")]
    }
    assert {(value, text): count for value, text, count in answer} == expected


@pytest.mark.parametrize("dialect", ["duckdb", "pinot", "spark"])
@pytest.mark.parametrize("kind", TYPES)
def test_no_condition_has_a_function_of_times(kind: str, dialect: str) -> None:
    """Engines may try conditions in any order, so a function would meet times of other rows."""
    text = render(named(kind, at("2024-01-05"), at("2024-12-20")), dialect)
    condition = text.split(" WHERE ")[1].split(" GROUP BY ")[0]
    assert "trunc" in text.lower()
    assert not any(word in condition.lower() for word in ("trunc", "make_", "micros", "epoch"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "Europe/Amsterdam", "America/Sao_Paulo", "Pacific/Apia", "UTC"]
)
def test_offsets_are_those_of_the_zone(zone: str) -> None:
    """At every hour, and right before and at each change."""
    clocks = ZoneInfo(zone)
    start, end = at("1936-01-01"), at("1941-01-01")
    for first, last in [(start, end), (at("2011-06-01"), at("2013-06-01"))]:
        offsets = zone_offsets(first, last, zone)
        edges = [each.until for each in offsets if each.until is not None]
        assert edges == sorted(edges)
        assert [each.until for each in offsets] == [*edges, None]
        times = [first + HOUR * step for step in range(int((last - first) / HOUR))]
        for time in some([*times, *edges, *(edge - MICROSECOND for edge in edges)]):
            offset = time.astimezone(clocks).utcoffset()
            assert offset is not None
            assert offsets[bisect_right(edges, time)].seconds == offset.total_seconds()


@pytest.mark.parametrize("unit", [each for each in TimeUnit if each is not TimeUnit.DAYS])
def test_one_offset_needs_no_condition(unit: TimeUnit) -> None:
    """And none at all needs no sum."""
    winter = at("2024-01-01"), at("2024-02-01")
    bucket = resolve(asked(BucketLength.DAY, *winter), policy(), now=NOW).query.dimensions[0].source
    assert isinstance(bucket, QueryBucket)
    east, west, utc = (
        LocalTimes(bucket.time, Interval(0, 1), zone_offsets(*winter, zone)).moved("x", unit)
        for zone in ("Europe/Berlin", "America/New_York", "UTC")
    )
    hours = 3_600_000_000 // int(unit.value)
    assert (east, west, utc) == (f"(x + {hours})", f"(x - {5 * hours})", "x")
