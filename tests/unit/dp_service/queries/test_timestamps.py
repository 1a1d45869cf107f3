"""Columns of timestamps: what a policy may say of them, which questions are one, and that DuckDB answers exactly."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import datetime
from collections.abc import Iterator
from functools import cache
from zoneinfo import ZoneInfo

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import PolicyError, QuestionError, RefusedByPolicyError
from dp_service.queries.filters import Bound, Filter, In, Range, TimeRange
from dp_service.queries.intervals import END_OF_TIMESTAMPS, FIRST_TIMESTAMP
from dp_service.queries.policy import parse_policy
from dp_service.queries.read_columns import ReadColumn
from dp_service.queries.render import render
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.times import Timestamps, TimeUnit, instant_of
from dp_service.terms import ColumnType
from tests.support.examples import examples

NOW = int(datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC).timestamp())
BERLIN = ZoneInfo("Europe/Berlin")


def policy_text(time: str, *, column: str = "") -> str:
    """Return a policy for a table of visits with this time column; `column` is one more line among its columns."""
    return f"""
epsilon_per: 1
delta: 1e-2
tables:
  visits:
    member: m
    time: {{column: at, type: timestamp, {time}}}
    measures: {{distinct_members: true, events: {{tau: 2, tau_is: clipped}}}}
    columns:
      page: {{type: string, group_by: true, delta: 1}}
      {column}
"""


OWN, IN_MILLISECONDS = (
    parse_policy(policy_text(f"zone: Europe/Berlin{unit}")) for unit in ("", ", unit: milliseconds")
)
CLOSED = parse_policy(policy_text("zone: Europe/Berlin, refresh: day, delay_minutes: 0"))


def asked(condition: str, policy: object = OWN, count: str = "DISTINCT m") -> Resolution:
    """Return what the question for pages resolves to under a condition."""
    where = f"WHERE {condition} " if condition else ""
    sql = f"SELECT page, COUNT({count}) FROM visits {where}GROUP BY page"
    return resolve(parse_sql(sql, policy), policy, now=NOW)  # type: ignore[arg-type]


def name_of(resolution: Resolution) -> bytes:
    """Return the fingerprint."""
    return canonical_bytes(resolution.query)


FAULTS = {
    "days": (
        "unit: days",
        "",
        r"visits\.time\.unit: expected seconds, milliseconds or microseconds for a timestamp",
    ),
    "another unit among the columns": (
        "unit: seconds",
        "at: {type: timestamp, unit: milliseconds}",
        r"visits\.time\.unit: expected the unit and the zone that the table's columns give",
    ),
    "a unit there alone": (
        "",
        "at: {type: timestamp, unit: seconds}",
        r"visits\.time\.unit: expected the unit",
    ),
    "another zone": (
        "zone: Europe/Berlin",
        "at: {type: timestamp, zone: Asia/Tokyo}",
        r"visits\.time\.unit: expected the unit and the zone",
    ),
    "another type": (
        "",
        "at: {type: date}",
        r"visits\.time\.type: expected the type that the table's columns give",
    ),
    "group by": (
        "",
        "b: {type: timestamp, group_by: true}",
        r"b\.group_by: expected false: timestamps cannot be",
    ),
    "a domain": ("", "b: {type: timestamp, domain: ['2026-01-01T00:00:00Z']}", r"b\.domain: expected none"),
    "a Delta": ("", "b: {type: timestamp, delta: 1}", r"b\.delta: expected none"),
    "lists": ("", "b: {type: timestamp, filter: [in, range]}", r"b\.filter: expected range alone"),
    "NULLs": ("", "b: {type: timestamp, nulls: keep}", r"b\.nulls: expected drop"),
    "a unit of another type": ("", "b: {type: int64, unit: seconds}", r"b\.unit: expected this key only for"),
    "a zone of another type": ("", "b: {type: date, zone: UTC}", r"b\.zone: expected this key only for"),
    "members": ("", "m: {type: timestamp}", r"columns\.m\.type: expected string, int64 or date"),
    "a text for NULL": (
        "",
        "b: {type: timestamp, null_value: never}",
        r"b\.null_value: expected a value of type timestamp in UTC as YYYY-MM-DDThh:mm:ssZ",
    ),
    "finer than engines": (
        "",
        "b: {type: timestamp, null_value: '2026-01-01T00:00:00.000001Z'}",
        r"b\.null_value: expected a value of type timestamp",
    ),
    "a timestamp for an integer": (
        "",
        "b: {type: timestamp, unit: seconds, null_value: '1970-01-01T00:00:00Z'}",
        r"b\.null_value: expected a value of type int64",
    ),
}


@pytest.mark.parametrize(("time", "column", "message"), FAULTS.values(), ids=FAULTS)
def test_what_a_policy_cannot_say_of_timestamps_is_named(time: str, column: str, message: str) -> None:
    """Line, key and what was expected."""
    with pytest.raises(PolicyError, match=message):
        parse_policy(policy_text(time, column=column))


def test_a_column_of_timestamps_has_its_tables_zone_unless_it_states_one() -> None:
    """So days mean the same throughout a table."""
    zones = {
        each: parse_policy(policy_text("zone: Asia/Tokyo", column=f"b: {{type: timestamp{each}}}"))
        .table("visits")
        .column("b")
        .timestamps
        for each in ("", ", zone: Europe/Berlin", ", unit: seconds")
    }
    assert {
        "": Timestamps(None, "Asia/Tokyo"),
        ", zone: Europe/Berlin": Timestamps(None, "Europe/Berlin"),
        ", unit: seconds": Timestamps(TimeUnit.SECONDS, "Asia/Tokyo"),
    } == zones


def test_the_time_column_may_be_listed_too() -> None:
    """With the same unit; then its null value can be stated."""
    column = "at: {type: timestamp, unit: seconds, null_value: 0, filter: [range]}"
    table = parse_policy(policy_text("unit: seconds", column=column)).table("visits")
    assert table.time is not None
    assert ("at", TimeUnit.SECONDS) == (table.time.name, table.time.unit)
    assert 0 == table.time_column().null_value


MEANINGS = [
    ["at >= DATE '2026-03-29'"],
    [
        "at >= DATE '2026-03-29' AND at < DATE '2026-03-30'",
        "at >= '2026-03-29' AND at < '2026-03-30'",
        "at >= TIMESTAMP '2026-03-29 00:00:00' AND at < TIMESTAMP '2026-03-30'",
        "at >= '2026-03-29T00:00' AND at < '2026-03-30 00:00:00.000'",
        "at >= TIMESTAMP '2026-03-28 23:00:00+00:00' AND at < TIMESTAMP '2026-03-29T22:00:00Z'",
        "at >= TIMESTAMP '2026-03-29 08:00:00+09:00' AND NOT_AFTER",
        "at BETWEEN DATE '2026-03-29' AND TIMESTAMP '2026-03-29 23:59:59.999999'",
        "at > TIMESTAMP '2026-03-28 23:59:59.999999' AND (at <= '2026-03-29T21:59:59.999999Z')",
    ],
    # A day stands for its beginning, as it does for engines: the last day of BETWEEN is over at once.
    [
        "at BETWEEN DATE '2026-03-29' AND DATE '2026-03-30'",
        "at >= DATE '2026-03-29' AND at <= TIMESTAMP '2026-03-30 00:00:00'",
    ],
    ["at >= TIMESTAMP '2026-10-25 02:30:00+01:00'", "at >= TIMESTAMP '2026-10-25 01:30:00Z'"],
    ["at >= TIMESTAMP '2026-10-25 02:30:00+02:00'", "at >= TIMESTAMP '2026-10-25 00:30:00Z'"],
]


@pytest.mark.parametrize("policy", [OWN, IN_MILLISECONDS, CLOSED])
def test_one_meaning_has_one_fingerprint_and_two_have_two(policy: object) -> None:
    """Whichever literals say it; the same in the structured form."""
    names = []
    for spellings in MEANINGS:
        conditions = [each.replace("NOT_AFTER", "at < '2026-03-30'") for each in spellings]
        names.append({name_of(asked(condition, policy)) for condition in conditions})
    # A value in milliseconds is not above .999999 before it is the next one, so all but that stays one.
    assert [1] * len(MEANINGS) == [len(each) for each in names]
    assert len(set.union(*names)) == len(MEANINGS)


def test_days_timestamps_and_time_ranges_are_one_in_the_structured_form() -> None:
    """A day is its beginning in the column's zone, also as an end of the time range; times there are in UTC."""
    start, end = (datetime.datetime(2026, 3, 28, 23, tzinfo=datetime.UTC), datetime.date(2026, 3, 30))
    whole = Range("at", Bound(datetime.date(2026, 3, 29)), Bound(end, exclusive=True))
    in_utc = datetime.datetime(2026, 3, 29, 22, tzinfo=datetime.UTC)
    questions = [
        HistogramQuery("visits", ("page",), Measure.DISTINCT_MEMBERS, (whole,)),
        HistogramQuery(
            "visits",
            ("page",),
            Measure.DISTINCT_MEMBERS,
            (Range("at", Bound(start), None), Range("at", None, Bound(in_utc, exclusive=True))),
        ),
        HistogramQuery("visits", ("page",), Measure.DISTINCT_MEMBERS, time_range=TimeRange(start, in_utc)),
        HistogramQuery(
            "visits",
            ("page",),
            Measure.DISTINCT_MEMBERS,
            time_range=TimeRange(datetime.date(2026, 3, 29), end),
        ),
    ]
    names = {name_of(resolve(each, OWN, now=NOW)) for each in questions}
    assert {name_of(asked("at >= DATE '2026-03-29' AND at < DATE '2026-03-30'"))} == names


def test_the_unit_in_which_timestamps_are_stored_is_part_of_the_question() -> None:
    """The same text about another table is another question."""
    units = ("", ", unit: seconds", ", unit: milliseconds", ", unit: microseconds")
    policies = [parse_policy(policy_text(f"zone: Europe/Berlin{unit}")) for unit in units]
    assert len({name_of(asked("at >= DATE '2026-03-29'", policy)) for policy in policies}) == len(units)


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ("at >= '2026-01-01'", ("at",)),
        ("at < '2026-01-01'", ("at",)),
        ("at >= '2026-01-01' AND at < '9999-12-31'", ("at",)),
        ("at >= '2026-01-01' AND at < '2026-02-01'", ()),
        ("", ()),
    ],
)
def test_far_timestamps_are_left_out_where_an_end_is_open(condition: str, columns: tuple[str, ...]) -> None:
    """It follows from the question alone. Integers have no such times."""
    assert asked(condition).query.without_far_times == columns
    assert asked(condition, IN_MILLISECONDS).query.without_far_times == ()


REFUSED = {
    "integer": ("at >= 1774738800000", "expected timestamps (in SQL as TIMESTAMP"),
    "truth value": ("at >= TRUE", "expected timestamps"),
    "word": ("at >= 'yesterday'", "expected timestamps"),
    "a time for a day": ("at >= DATE '2026-01-01 10:00:00'", "expected timestamps"),
    "nanoseconds": ("at >= TIMESTAMP '2026-01-01 10:00:00.0000001'", "expected timestamps"),
    "no such day": ("at >= DATE '2026-02-30'", "there is none such"),
    "no such hour": ("at >= TIMESTAMP '2026-01-01 25:00:00'", "there is none such"),
    "shown twice": ("at >= TIMESTAMP '2026-10-25 02:30:00'", "the clocks of Europe/Berlin show once"),
    "never shown": ("at >= TIMESTAMP '2026-03-29 02:30:00'", "write its offset"),
    "before the year 1": ("at >= DATE '0001-01-01'", "between the years 1 and 9999"),
    "nothing": ("at >= '2026-01-02' AND at < '2026-01-01'", "contradict each other"),
    "before all timestamps": ("at < '1600-01-01'", "a time outside the years 1700 to 2261 meets none"),
    "after all timestamps": ("at > '9999-01-01'", "a time outside the years 1700 to 2261 meets none"),
}


@pytest.mark.parametrize(("condition", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_timestamp_is_refused(condition: str, message: str) -> None:
    """The column and what was expected are named, and the literal is not."""
    with pytest.raises(QuestionError) as refusal:
        asked(condition)
    assert message in str(refusal.value)
    assert "at: expected" in str(refusal.value) or str(refusal.value).startswith("at: ")
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None


def test_a_timestamp_is_neither_grouped_by_nor_listed() -> None:
    """The refusal says what can be asked."""
    grouped = parse_sql("SELECT at, COUNT(DISTINCT m) FROM visits GROUP BY at", OWN)
    with pytest.raises(RefusedByPolicyError, match="at: a column of timestamps can be restricted to a range"):
        resolve(grouped, OWN, now=NOW)
    for condition in ("at = DATE '2026-01-01'", "at IN ('2026-01-01')", "at <> '2026-01-01'"):
        with pytest.raises(RefusedByPolicyError, match="it allows <, <=, >, >= and BETWEEN"):
            asked(condition)


@pytest.mark.parametrize(
    "value", [datetime.datetime(2026, 1, 1, tzinfo=BERLIN), datetime.datetime(2026, 1, 1)]
)
def test_a_timestamp_of_the_structured_form_is_in_utc(value: datetime.datetime) -> None:
    """Any other would leave open what it means."""
    with pytest.raises(QuestionError, match="expected timestamps in UTC"):
        Bound(value)


@pytest.mark.parametrize("each", [In("page", (datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),))])
def test_a_timestamp_is_no_value_of_another_column(each: Filter) -> None:
    """Of a column of texts, for example."""
    text = policy_text("").replace("delta: 1}", "delta: 1, filter: [in]}")
    query = HistogramQuery("visits", ("page",), Measure.DISTINCT_MEMBERS, (each,))
    with pytest.raises(QuestionError, match="page: expected texts"):
        resolve(query, parse_policy(text), now=NOW)


def test_closed_periods_end_with_the_days_of_the_zone() -> None:
    """The boundary is a timestamp, the same in every unit, and names the data."""
    boundary = datetime.datetime(2026, 11, 20, tzinfo=BERLIN)
    own = asked("", CLOSED)
    in_seconds = asked(
        "", parse_policy(policy_text("unit: seconds, zone: Europe/Berlin, refresh: day, delay_minutes: 0"))
    )
    assert f"closed:{int(boundary.timestamp()) * 1_000_000}:" == own.fixed_data_version
    assert f"closed:{int(boundary.timestamp())}:" == in_seconds.fixed_data_version
    assert "at before 2026-11-19T23:00:00+00:00" == own.window == in_seconds.window
    assert name_of(own) == name_of(asked("at < TIMESTAMP '2026-11-20 00:00:00'", CLOSED))


def test_engines_are_told_what_a_column_of_timestamps_has_to_be() -> None:
    """Its own type or the unit that its integers count, what stands for NULL, and the numbers in the query."""
    own = {read.name: read for read in asked("at >= DATE '2026-03-29'").reads}
    counted = {read.name: read for read in asked("at >= DATE '2026-03-29'", IN_MILLISECONDS).reads}
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert ReadColumn("at", ColumnType.TIMESTAMP, epoch, None) == own["at"]
    assert TimeUnit.MILLISECONDS is counted["at"].stored
    assert counted["at"].numbers is not None
    assert 1_774_738_800_000 == counted["at"].numbers.start


def test_each_engine_is_asked_in_its_own_words() -> None:
    """DuckDB and Spark by timestamps in UTC; Pinot by numbers, so that none of its functions and zones takes part."""
    condition = "at >= DATE '2026-03-29' AND at < TIMESTAMP '2026-03-30 00:00:00.0005'"
    own, counted = asked(condition), asked(condition, IN_MILLISECONDS)
    start, end = "TIMESTAMP '2026-03-28 23:00:00'", "TIMESTAMP '2026-03-29 22:00:00.000500'"
    assert f'"at" >= {start} AND "at" < {end} AND "m"' in render(own, "duckdb").replace(
        '"page" <> ', '"m" <> '
    )
    assert f"`at` >= {start} AND `at` < {end} AND" in render(own, "spark")
    assert '"at" >= 1774738800000 AND "at" < 1774821600001 AND' in render(own, "pinot")
    for dialect in ("duckdb", "pinot"):
        assert '"at" >= 1774738800000 AND "at" <= 1774821600000 AND' in render(counted, dialect)
    nested = render(asked(condition, OWN, "*"), "pinot")
    assert 'CAST("at" AS BIGINT) >= 1774738800000 AND CAST("at" AS BIGINT) < 1774821600001' in nested


def test_what_stands_for_null_is_left_out() -> None:
    """Pinot stores 1970 where a timestamp is missing, so no engine counts rows of that moment."""
    assert "\"at\" <> TIMESTAMP '1970-01-01 00:00:00'" in render(asked("at < '2026-01-01'"), "duckdb")
    assert '"at" <> 0 AND' in render(asked("at < '2026-01-01'"), "pinot")
    stated = parse_policy(
        policy_text("", column="at: {type: timestamp, null_value: '2000-01-01T00:00:00.250Z'}")
    )
    assert '"at" <> 946684800250 AND' in render(asked("at < '2026-01-01'", stated), "pinot")


KINDS = {
    "TIMESTAMP": (None, 1),
    "TIMESTAMP WITH TIME ZONE": (None, 1),
    "TIMESTAMP_NS": (None, 1),
    "BIGINT of microseconds": (TimeUnit.MICROSECONDS, 1),
    "BIGINT of milliseconds": (TimeUnit.MILLISECONDS, 1000),
    "BIGINT of seconds": (TimeUnit.SECONDS, 1_000_000),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB in UTC, as the connector's is, with one table for each way to hold timestamps."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for kind in KINDS:
            connection.execute(
                f'CREATE TABLE "{kind}" (m VARCHAR, page VARCHAR, "at" {kind.partition(" of ")[0]})'
            )
        yield connection


# For two dozen texts, each of which some ten examples have.
parsed = cache(parse_policy)
# Around the changes of clocks in zones that have them, and anywhere else.
EDGES = [
    datetime.datetime(2026, 3, 29, 1),
    datetime.datetime(2026, 10, 25, 1),
    datetime.datetime(2018, 11, 4, 3),
]
NEAR = st.builds(
    lambda edge, seconds, micros: edge + datetime.timedelta(seconds=seconds * 900, microseconds=micros),
    st.sampled_from(EDGES),
    st.integers(-200, 200),
    st.sampled_from([-1, 0, 0, 1, 999, 1000, 500_000]),
)
INSTANTS = (NEAR | st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2261, 12, 31))).map(
    lambda each: each.replace(tzinfo=datetime.UTC)
)
SIGNS = {">=": lambda row, end: row >= end, ">": lambda row, end: row > end} | {
    "<": lambda row, end: row < end,
    "<=": lambda row, end: row <= end,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(40), deadline=None)
@given(
    rows=st.lists(INSTANTS, min_size=1, max_size=12),
    end=INSTANTS | st.dates(datetime.date(2018, 1, 1), datetime.date(2027, 1, 1)),
    sign=st.sampled_from(sorted(SIGNS)),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu"]),
)
@example(rows=[FIRST_TIMESTAMP], end=FIRST_TIMESTAMP, sign=">=", zone="UTC")
@example(
    rows=[END_OF_TIMESTAMPS - datetime.timedelta(microseconds=1)],
    end=datetime.date(2027, 1, 1),
    sign=">=",
    zone="UTC",
)
def test_duckdb_answers_what_the_question_means(
    engine: duckdb.DuckDBPyConnection,
    *,
    kind: str,
    rows: list[datetime.datetime],
    end: datetime.date,
    sign: str,
    zone: str,
) -> None:
    """A row counts if its own timestamp, as it is stored, compares so with the literal: Python says which do."""
    stored, unit = KINDS[kind]
    of_unit = "" if stored is None else f", unit: {stored.name.lower()}"
    policy = parsed(policy_text(f"zone: {zone}{of_unit}"))
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    counted = [(each - epoch) // datetime.timedelta(microseconds=unit) for each in rows]
    engine.execute(f'DELETE FROM "{kind}"')
    at = "unnest(?)" if stored is not None else f"make_timestamp(unnest(?))::{kind}"
    members = [f"m{i}" for i, _ in enumerate(counted)]
    engine.execute(f"INSERT INTO \"{kind}\" SELECT unnest(?), 'a', {at}", [members, counted])
    if isinstance(end, datetime.datetime):
        literal, bound = f"TIMESTAMP '{end.isoformat(sep=' ')}'", end
    else:
        literal, bound = f"DATE '{end}'", datetime.datetime.combine(end, datetime.time(), ZoneInfo(zone))
    holds = [
        SIGNS[sign](epoch + each * datetime.timedelta(microseconds=unit), bound) and each != 0
        for each in counted
    ]
    try:
        sql = render(asked(f"at {sign} {literal}", policy), "duckdb").replace('"visits"', f'"{kind}"')
    except QuestionError:
        assert not any(holds)
        return
    found = engine.execute(sql).fetchall()
    assert ([("a", sum(holds))] if any(holds) else []) == found


@pytest.mark.parametrize(
    ("local", "zone", "expected"),
    [
        ("2026-03-29T00:00", "Europe/Berlin", "2026-03-28T23:00Z"),
        ("2026-03-29T12:00", "Europe/Berlin", "2026-03-29T10:00Z"),
        ("2026-03-29T02:30", "Europe/Berlin", None),
        ("2026-10-25T02:30", "Europe/Berlin", None),
        # Clocks skip midnight: the day begins when they do so. And they show one twice: it begins the first time.
        ("2018-11-04T00:00", "America/Sao_Paulo", "2018-11-04T03:00Z"),
        ("2026-11-01T00:00", "America/Havana", "2026-11-01T04:00Z"),
        ("2026-11-01T00:30", "America/Havana", None),
        ("2011-12-30T12:00", "Pacific/Apia", None),
    ],
)
def test_a_time_of_a_zones_clocks_is_one_timestamp_or_none(
    local: str, zone: str, expected: str | None
) -> None:
    """What clocks show twice or never stands for none, except that a day always has a beginning."""
    found = instant_of(datetime.datetime.fromisoformat(local), zone)
    assert (None if expected is None else datetime.datetime.fromisoformat(expected)) == found
