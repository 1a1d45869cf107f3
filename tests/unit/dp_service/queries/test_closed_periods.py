"""Closed periods: where they end in every zone, what they make of a question, and that late rows change no answer."""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo, available_timezones

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import PolicyError, QuestionError
from dp_service.queries.filters import TimeRange
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.times import Refresh, TimeColumn, TimeUnit, start_of_day
from tests.support.examples import examples

POLICY_TEXT = """
epsilon_per: 1
delta: 1e-2
tables:
  visits:
    member: m
    time: {column: day, type: date, refresh: day, delay_minutes: 0}
    measures: {distinct_members: true}
    columns:
      page: {type: string, group_by: true, delta: 1}
      day: {type: date, group_by: true, filter: [in, not_in]}
  clicks:
    member: m
    time: {column: at, type: int64, unit: seconds, zone: Europe/Berlin, refresh: day}
    measures: {distinct_members: true}
    columns:
      page: {type: string, group_by: true, delta: 1}
"""
POLICY = parse_policy(POLICY_TEXT)
MINUTE, HOUR, DAY = 60, 3600, 86_400


def seconds(text: str) -> int:
    """Return a moment in seconds since 1970."""
    return int(datetime.datetime.fromisoformat(text).timestamp())


def days(text: str) -> int:
    """Return a day as its number since 1970."""
    return (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days


def column(
    unit: TimeUnit, zone: str = "UTC", refresh: Refresh = Refresh.DAY, delay_minutes: int = 0
) -> TimeColumn:
    """Return a time column with closed periods."""
    kind = "timestamp" if unit is TimeUnit.MICROSECONDS else "int64"
    stated = {"column": "t", "type": kind, "unit": unit.name.lower(), "zone": zone}
    return TimeColumn.model_validate(stated | {"refresh": refresh, "delay_minutes": delay_minutes})


@pytest.mark.parametrize(
    ("now", "refresh", "expected"),
    [
        ("2026-11-19T23:59:59Z", Refresh.DAY, "2026-11-19"),
        ("2026-11-20T00:00:00Z", Refresh.DAY, "2026-11-20"),
        ("2026-11-20T23:59:59Z", Refresh.DAY, "2026-11-20"),
        ("2026-11-15T23:59:59Z", Refresh.WEEK, "2026-11-09"),
        ("2026-11-16T00:00:00Z", Refresh.WEEK, "2026-11-16"),
        ("2027-01-02T12:00:00Z", Refresh.WEEK, "2026-12-28"),
        ("2026-11-30T23:59:59Z", Refresh.MONTH, "2026-11-01"),
        ("2026-12-01T00:00:00Z", Refresh.MONTH, "2026-12-01"),
        ("2028-02-29T12:00:00Z", Refresh.MONTH, "2028-02-01"),
    ],
)
def test_the_boundary_is_the_start_of_the_current_period(now: str, refresh: Refresh, expected: str) -> None:
    """It moves exactly when a period begins, for columns of days and of moments alike."""
    assert days(expected) == column(TimeUnit.DAYS, refresh=refresh).closed_before(seconds(now))
    start = days(expected) * DAY
    assert start == column(TimeUnit.SECONDS, refresh=refresh).closed_before(seconds(now))
    assert start * 1000 == column(TimeUnit.MILLISECONDS, refresh=refresh).closed_before(seconds(now))


@pytest.mark.parametrize(
    ("zone", "now", "day", "start"),
    [
        ("Europe/Berlin", "2026-06-30T21:59:59Z", "2026-06-30", "2026-06-29T22:00Z"),
        ("Europe/Berlin", "2026-06-30T22:00:00Z", "2026-07-01", "2026-06-30T22:00Z"),
        # The day on which clocks go forward has 23 hours, the one on which they go back has 25.
        ("Europe/Berlin", "2026-03-29T21:59:59Z", "2026-03-29", "2026-03-28T23:00Z"),
        ("Europe/Berlin", "2026-03-29T22:00:00Z", "2026-03-30", "2026-03-29T22:00Z"),
        ("Europe/Berlin", "2026-10-25T22:59:59Z", "2026-10-25", "2026-10-24T22:00Z"),
        ("Europe/Berlin", "2026-10-25T23:00:00Z", "2026-10-26", "2026-10-25T23:00Z"),
        # Midnight is skipped: the day begins at one o'clock.
        ("America/Sao_Paulo", "2018-11-04T02:59:59Z", "2018-11-03", "2018-11-03T03:00Z"),
        ("America/Sao_Paulo", "2018-11-04T03:00:00Z", "2018-11-04", "2018-11-04T03:00Z"),
        # Midnight comes twice: the day begins with the first.
        ("America/Havana", "2026-11-01T03:59:59Z", "2026-10-31", "2026-10-31T04:00Z"),
        ("America/Havana", "2026-11-01T04:00:00Z", "2026-11-01", "2026-11-01T04:00Z"),
        ("America/Havana", "2026-11-01T05:00:00Z", "2026-11-01", "2026-11-01T04:00Z"),
        # A whole day that never was.
        ("Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29", "2011-12-29T10:00Z"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31", "2011-12-30T10:00Z"),
        ("Asia/Kathmandu", "2026-11-19T18:15:00Z", "2026-11-20", "2026-11-19T18:15Z"),
    ],
)
def test_periods_begin_with_the_zones_own_midnight(zone: str, now: str, day: str, start: str) -> None:
    """Summer time, skipped and repeated midnights, a skipped day: the local calendar decides."""
    assert days(day) == column(TimeUnit.DAYS, zone).closed_before(seconds(now))
    assert seconds(start) == column(TimeUnit.SECONDS, zone).closed_before(seconds(now))


@settings(max_examples=examples(200), deadline=None)
@given(
    zone=st.sampled_from(sorted(available_timezones() - {"Factory", "localtime"})),
    now=st.integers(0, 4 * 10**9),
    later=st.integers(0, 2 * DAY),
    refresh=st.sampled_from(Refresh),
)
@example(zone="America/Toronto", now=seconds("1919-03-31T04:40Z"), later=0, refresh=Refresh.DAY)
def test_no_zone_and_no_moment_opens_the_present(zone: str, now: int, later: int, refresh: Refresh) -> None:
    """The boundary never lies in the future, never goes back, and stays where it is while the period lasts."""
    timestamps = column(TimeUnit.SECONDS, zone, refresh)
    before, after = timestamps.closed_before(now), timestamps.closed_before(now + later)
    assert before is not None
    assert after is not None
    assert before <= now
    assert before <= after
    local = [datetime.datetime.fromtimestamp(t, ZoneInfo(zone)).date() for t in (now, now + later)]
    if local[0] == local[1]:
        assert before == after


@pytest.mark.slow
@given(now=st.integers(0, 4 * 10**9), delay=st.integers(0, 10_080))
def test_a_delay_moves_every_boundary_by_itself(now: int, delay: int) -> None:
    """With a delay the boundary is what it was that long ago."""
    delayed = column(TimeUnit.SECONDS, "Europe/Berlin", delay_minutes=delay)
    assert delayed.closed_before(now) == column(TimeUnit.SECONDS, "Europe/Berlin").closed_before(
        now - delay * MINUTE
    )


def asked(sql: str, now: str) -> Resolution:
    """Return what a question resolves to at a moment."""
    return resolve(parse_sql(sql, POLICY), POLICY, now=seconds(now))


def identity(resolution: Resolution) -> tuple[bytes, str | None]:
    """Return all of a release's identity that closed periods have a part in."""
    return canonical_bytes(resolution.query), resolution.fixed_data_version


OPEN = "SELECT page, COUNT(DISTINCT m) FROM visits GROUP BY page"
JANUARY = OPEN.replace("GROUP", "WHERE day BETWEEN '2026-01-01' AND '2026-01-31' GROUP")
TO_THE_END = OPEN.replace("GROUP", "WHERE day <= '2026-11-19' GROUP")


def test_a_question_is_the_same_all_period_long_and_another_one_afterwards() -> None:
    """Between two midnights nothing of it changes; the next day asks about more data, under another name."""
    first = identity(asked(OPEN, "2026-11-20T00:00:00Z"))
    assert first == identity(asked(OPEN, "2026-11-20T23:59:59Z"))
    tomorrow = identity(asked(OPEN, "2026-11-21T00:00:00Z"))
    assert first[0] != tomorrow[0]
    assert first[1] != tomorrow[1]


def test_a_question_that_ends_in_a_closed_period_is_the_same_on_every_later_day() -> None:
    """One meaning, one fingerprint, one version: last January costs nothing when it is asked again tomorrow."""
    assert identity(asked(JANUARY, "2026-02-01T00:00:00Z")) == identity(
        asked(JANUARY, "2026-11-20T12:00:00Z")
    )


def test_a_question_that_says_the_boundary_itself_means_what_it_means_anyway() -> None:
    """The added condition is a condition like any other, and a range beyond it ends at it."""
    beyond = OPEN.replace("GROUP", "WHERE day < '2030-01-01' GROUP")
    identities = {identity(asked(sql, "2026-11-20T12:00:00Z")) for sql in (OPEN, TO_THE_END, beyond)}
    assert len(identities) == 1
    # Tomorrow the one that says it is the same, and the others see another day.
    assert identities == {identity(asked(TO_THE_END, "2026-11-21T12:00:00Z"))}
    assert identities != {identity(asked(OPEN, "2026-11-21T12:00:00Z"))}


def test_an_end_within_a_period_that_is_still_open_waits_for_it() -> None:
    """While its last days are open the question sees less, under another name; once all are closed it stays."""
    november = OPEN.replace("GROUP", "WHERE day BETWEEN '2026-11-01' AND '2026-11-30' GROUP")
    during = [identity(asked(november, f"2026-11-{day:02}T12:00:00Z")) for day in range(2, 31)]
    assert len(set(during)) == 29
    closed = {identity(asked(november, f"2026-12-{day:02}T12:00:00Z")) for day in range(1, 31)}
    assert len(closed) == 1
    assert closed.isdisjoint(during)


@pytest.mark.parametrize("condition", ["day >= '2026-11-20'", "day = '2026-11-20'", "day > '2026-11-19'"])
def test_a_question_about_the_current_period_alone_is_refused(condition: str) -> None:
    """The error says that later data cannot be queried yet; an empty answer would be charged for."""
    with pytest.raises(QuestionError, match="begins in a closed period") as refusal:
        asked(OPEN.replace("GROUP", f"WHERE {condition} GROUP"), "2026-11-20T12:00:00Z")
    assert refusal.value.field == "time_range"


def test_conditions_that_contradict_each_other_are_told_as_such_whatever_the_day() -> None:
    """The boundary is not blamed for what no day would answer."""
    with pytest.raises(QuestionError, match="contradict"):
        asked(
            OPEN.replace("GROUP", "WHERE day > '2027-01-02' AND day < '2027-01-01' GROUP"),
            "2026-11-20T12:00:00Z",
        )


@pytest.mark.parametrize("apart", [0, 1, 30, 299])
def test_replicas_whose_clocks_differ_a_little_never_share_a_name_for_two_meanings(apart: int) -> None:
    """Around midnight one may still ask about a day less; name and version then differ, and neither sees today."""
    query = HistogramQuery("clicks", ("page",), Measure.DISTINCT_MEMBERS)
    midnight = seconds("2026-11-20T00:00:00+01:00")
    for true_time in range(midnight - 10 * MINUTE, midnight + 10 * MINUTE, 7):
        slow, fast = (resolve(query, POLICY, now=true_time + skew) for skew in (0, apart))
        same_meaning = render(slow, "duckdb") == render(fast, "duckdb")
        assert same_meaning == (identity(slow)[0] == identity(fast)[0])
        assert same_meaning == (slow.fixed_data_version == fast.fixed_data_version)
        # The delay of five minutes is longer than clocks differ, so no replica opens a day that is not over.
        assert fast.query.end_of("at") <= true_time


def test_rows_of_the_current_period_change_no_answer() -> None:
    """Real rows: what arrives today is seen by no question until tomorrow."""
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE visits (m INTEGER, page VARCHAR, day DATE)")
        engine.execute("INSERT INTO visits SELECT range, 'a', DATE '2026-11-19' FROM range(7)")
        today = render(asked(OPEN, "2026-11-20T12:00:00Z"), "duckdb")
        before = engine.execute(today).fetchall()
        engine.execute("INSERT INTO visits SELECT range, 'b', DATE '2026-11-20' FROM range(9)")
        engine.execute("INSERT INTO visits VALUES (100, 'a', NULL), (101, 'a', DATE '2026-11-20')")
        assert [("a", 7)] == before == engine.execute(today).fetchall()
        tomorrow = render(asked(OPEN, "2026-11-21T12:00:00Z"), "duckdb")
        assert [("b", 9), ("a", 8)] == engine.execute(tomorrow).fetchall()


def test_the_boundary_reaches_every_engine() -> None:
    """As a day for DuckDB, as the number that Pinot stores for it."""
    resolution = asked(OPEN, "2026-11-20T12:00:00Z")
    assert "\"day\" <= DATE '2026-11-19'" in render(resolution, "duckdb")
    assert f'"day" <= {days("2026-11-19")}' in render(resolution, "pinot")
    assert resolution.window == "day before 2026-11-20"


def test_a_declared_version_and_the_boundary_both_enter_the_version() -> None:
    """After closed periods are corrected, another version is declared, and every question is another release."""
    declared = parse_policy(
        POLICY_TEXT.replace("    member: m", "    member: m\n    data_version: corrected", 1)
    )
    sql = parse_sql(JANUARY, declared)
    versions = {
        resolve(sql, policy, now=seconds("2026-11-20T12:00Z")).fixed_data_version
        for policy in (declared, POLICY)
    }
    assert len(versions) == 2
    assert all(version is not None and str(days("2026-02-01")) in version for version in versions)


@pytest.mark.parametrize(
    ("zone", "at_time", "expected"),
    [
        ("Europe/Berlin", "2026-06-30T22:00Z", "2026-07-01"),
        ("Europe/Berlin", "2026-06-30T22:01Z", "2026-07-02"),
        ("Europe/Berlin", "2026-06-30T21:59Z", "2026-07-01"),
        ("America/Los_Angeles", "2026-07-01T07:00Z", "2026-07-01"),
        ("America/Los_Angeles", "2026-07-01T00:00Z", "2026-07-01"),
        ("UTC", "2026-07-01T00:00Z", "2026-07-01"),
    ],
)
def test_a_time_range_falls_on_days_of_the_columns_zone(zone: str, at_time: str, expected: str) -> None:
    """The first day inside is the first that begins inside, by the zone's own midnight."""
    time = column(TimeUnit.DAYS, zone)
    assert days(expected) == time.first_value_from(datetime.datetime.fromisoformat(at_time))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Los_Angeles", "UTC"])
@pytest.mark.parametrize("unit", TimeUnit)
def test_a_day_is_that_of_the_columns_zone(zone: str, unit: TimeUnit) -> None:
    """Whatever the column counts: the first value from a day on is the one from its beginning on."""
    time, day = column(unit, zone), datetime.date(2026, 7, 1)
    assert time.first_value_from(day) == time.first_value_from(start_of_day(day, zone))
    if unit is TimeUnit.DAYS:
        assert time.first_value_from(day) == days("2026-07-01")


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo"])
def test_a_moment_outside_of_the_zones_calendar_is_refused(zone: str) -> None:
    """The first hours of the year 1 are in no year of a western zone."""
    text = POLICY_TEXT.replace("refresh: day, delay_minutes: 0", f"zone: {zone}")
    ends = (datetime.datetime.min, datetime.datetime.max)
    asked_for = TimeRange(*(end.replace(tzinfo=datetime.UTC) for end in ends))
    query = HistogramQuery("visits", ("page",), Measure.DISTINCT_MEMBERS, time_range=asked_for)
    with pytest.raises(QuestionError, match="between the years 1 and 9999"):
        resolve(query, parse_policy(text), now=0)


def test_a_time_column_that_keeps_rows_without_a_time_has_no_closed_periods() -> None:
    """Such rows belong to no period, and would change answers at any time."""
    text = POLICY_TEXT.replace("filter: [in, not_in]}", "filter: [in], nulls: keep, null_value: 1970-01-01}")
    with pytest.raises(PolicyError, match=r"visits\.time\.refresh: expected a time column whose NULLs"):
        parse_policy(text)
