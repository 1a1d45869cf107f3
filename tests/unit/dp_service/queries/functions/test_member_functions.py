"""Functions of all of a member's rows on a real DuckDB, beside plain Python; what is read, refused and priced."""

# ruff: noqa: S608  (the SQL is these tests' own)

from __future__ import annotations

import datetime
from dataclasses import replace
from math import isqrt
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.dimensions import Dimension
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.filters import In, NotIn
from dp_service.queries.functions.first_times import FirstSeen, Later
from dp_service.queries.functions.funnels import Funnel
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.read_columns import columns_read
from dp_service.queries.render import Feature, render, required_features
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql, with_dimensions
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.kinds import kind_of
from dp_service.terms import GRID
from tests.support.examples import examples
from tests.support.queries.buckets import NOW, TYPES, UTC, Row, arrow_table, policy
from tests.support.queries.of_members import END, START, STEPS, Asked
from tests.support.typical import typically

PLENTY = "contributions: {bound: in_query, units: 10}"
LENGTHS = [BucketLength.WEEK, BucketLength.MONTH, BucketLength.QUARTER]
EDGES = [START, END, *(datetime.datetime(2024, month, 1, tzinfo=UTC) for month in range(1, 8))]
TIMES = st.builds(
    lambda edge, hours: edge + datetime.timedelta(hours=hours), st.sampled_from(EDGES), st.integers(-50, 50)
)
ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from([None, "ada", "bob", "cyd", "eve"]),
        st.none() | TIMES,
        st.sampled_from([None, "a", "b", "c"]),
        st.just(1),
    ),
    max_size=16,
)
FUNNELS = st.builds(
    Asked,
    st.sampled_from(["timestamps", "days"]),
    st.lists(st.sampled_from(list(STEPS)), min_size=2, max_size=4).map(tuple),
    in_order=st.booleans(),
)
SINCE = st.builds(
    lambda kind, steps, length, shown: Asked(kind, steps if shown == (True, False) else (), length, *shown),
    st.sampled_from(list(TYPES)),
    st.sampled_from([(), tuple(STEPS)[:2]]),
    st.sampled_from(LENGTHS),
    st.sampled_from([(True, False), (False, True), (True, True)]),
)
ASKED = st.builds(
    lambda asked, with_text: replace(asked, with_text=with_text),
    FUNNELS | SINCE,
    st.booleans(),
)


def answered(resolution: Resolution, rows: list[Row], kind: str) -> dict[tuple[Any, ...], int]:
    """Return what DuckDB counts."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("t", arrow_table(rows, kind))
        found = database.execute(render(resolution, "duckdb")).fetchall()
    return {row[: len(resolution.columns)]: int(row[len(resolution.columns)]) for row in found}


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(rows=ROWS, asked=ASKED)
def test_each_member_counts_by_all_of_its_rows(rows: list[Row], asked: Asked) -> None:
    """In every type of column, beside another column and without one, bounded and not."""
    for contributions in ("", "contributions: {bound: in_query, units: 10}"):
        under = policy(asked.kind, asked.zone, contributions=contributions, typical=60)
        resolution = resolve(asked.question, under, now=NOW)
        found, expected = answered(resolution, rows, asked.kind), asked.counted(rows)
        assert {key: count for key, count in found.items() if count} == expected
        assert len(found) <= resolution.row_limit
        # All that members can be in is in the domain.
        domain = {
            tuple(each.toordinal() - 719_163 if isinstance(each, datetime.date) else each for each in element)
            for element in expected
        }
        assert domain <= set(resolution.parameters.domain or ())


SHOP = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  shop:
    member: visitor
    time: {{column: day, type: date{refresh}}}
    {more}
    measures: {{distinct_members: true, events: {{tau: 2, tau_is: clipped}}}}
    columns:
      visitor: {{type: string}}
      event: {{type: string, group_by: true, filter: [in, not_in]}}
      land: {{type: string, group_by: true, filter: [in], domain: [at, ch, de]{delta}}}
"""
FUNNEL = "FUNNEL_COUNT(STEPS(event = 'sign-up', event = 'cart', event = 'purchase'), CORRELATE_BY(visitor))"
FIRST = """
    SELECT first_month, COUNT(*) AS new
    FROM (
        SELECT visitor, DATE_TRUNC('month', MIN(day)) AS first_month FROM shop WHERE land = 'de'
        GROUP BY visitor HAVING MIN(day) >= DATE '2026-01-01' AND MIN(day) < DATE '2026-07-01'
    ) AS firsts
    GROUP BY first_month ORDER BY first_month
"""
COUNTED, MONTH = "COUNT(DISTINCT visitor)", "DATE_TRUNC('month', MIN(day))"
LATER = "DATE_DIFF('month', MIN(day), day)"
RANGE = "day >= '2026-01-01' AND day < '2026-07-01'"


def shop(more: str = "", *, delta: int = 1, refresh: str = "") -> Policy:
    """Return the policy of a shop."""
    limit = "" if more else f", delta: {delta}"
    of_time = "" if "prepared" in more else ", buckets: [week, month]"
    of_time += f", refresh: {refresh}" * bool(refresh)
    text = SHOP if "prepared" not in more else SHOP.replace(", events: {{tau: 2, tau_is: clipped}}", "")
    text = text.format(more=more, delta=limit, refresh=of_time)
    return parse_policy(typically(2, text) if "in_query" in more else text)


def asked(sql: str, under: Policy) -> Resolution:
    """Return what a question in SQL resolves to."""
    return resolve(parse_sql(sql, under), under, now=NOW)


def test_a_funnel_is_pinots_and_comes_with_its_counts() -> None:
    """One row for each step: its number, and how many reached it."""
    query = parse_sql(f"SELECT {FUNNEL} AS reached FROM shop WHERE land = 'de'", shop())
    steps = tuple(In("event", (each,)) for each in ("sign-up", "cart", "purchase"))
    assert query.dimensions == (Funnel(steps),)
    assert (query.measure, query.count_alias, query.in_element_order) == (
        Measure.DISTINCT_MEMBERS,
        "reached",
        True,
    )
    by_land = parse_sql(f"SELECT land, {FUNNEL} FROM shop GROUP BY land", shop())
    assert by_land.dimensions == ("land", Funnel(steps))


IN_ORDER = FUNNEL.replace("(visitor))", "(visitor), SETTINGS('strict_increase'))")


def test_a_funnel_in_order_of_time_is_of_the_time_column() -> None:
    """It is another question, of the same price, and an answer says what it counts."""
    ordered, other = (asked(f"SELECT {each} FROM shop", shop()) for each in (IN_ORDER, FUNNEL))
    assert canonical_bytes(ordered.query) != canonical_bytes(other.query)
    assert replace(ordered.parameters, domain=None) == replace(other.parameters, domain=None)
    assert str(ordered.query.dimensions[0]) == "the deepest of 3 steps that a member reaches in order of day"
    assert {each.name for each in columns_read(ordered.query, shop().table("shop"))} >= {"day", "event"}


@pytest.mark.parametrize(
    ("texts", "deepest"),
    [("a-b", 2), ("b-a", 1), ("ab", 1), ("b-ab", 1), ("ab-b", 2), ("a-b-a", 2), ("b", None)],
)
def test_each_step_is_later_than_the_one_before(texts: str, deepest: int | None) -> None:
    """Not at the same time; a dash is a microsecond."""
    rows = [
        Row("ada", START + place * datetime.timedelta(microseconds=1), text)
        for place, at_once in enumerate(texts.split("-"))
        for text in at_once
    ]
    question = Asked(steps=tuple(STEPS)[:2], in_order=True).question
    resolution = resolve(question, policy("timestamps", contributions=""), now=NOW)
    assert answered(resolution, rows, "timestamps") == ({} if deepest is None else {(deepest,): 1})


def test_first_times_are_those_of_a_statement_by_member() -> None:
    """Its HAVING says the range; the plain question with the same function and range is the same one."""
    query = parse_sql(FIRST, shop())
    assert query.dimensions == (FirstSeen("day", BucketLength.MONTH),)
    assert (query.measure, query.count_alias, query.aliases) == (
        Measure.DISTINCT_MEMBERS,
        "new",
        ("first_month",),
    )
    plain = f"SELECT {MONTH}, {COUNTED} FROM shop WHERE land = 'de' AND {RANGE} GROUP BY 1"
    named = FIRST.replace("FROM shop", "FROM shop AS s").replace("COUNT(*)", "COUNT(DISTINCT visitor)")
    meanings = {canonical_bytes(asked(each, shop()).query) for each in (FIRST, plain, named)}
    assert len(meanings) == 1


TEXTS = [
    """SELECT f, COUNT(*) FROM (SELECT member, DATE_TRUNC('month', MIN("at")) AS f FROM t WHERE text <> 'a'
    GROUP BY member HAVING MIN("at") >= DATE '2024-01-14' AND MIN("at") < DATE '2024-07-03') AS q GROUP BY f""",
    """WITH q AS (SELECT member, MIN("at") AS f FROM t WHERE "at" < DATE '2024-07-03' GROUP BY 1)
    SELECT CAST(DATE_TRUNC('week', f) AS DATE) AS w, COUNT(DISTINCT member) AS n FROM q
    WHERE f >= DATE '2024-01-14' GROUP BY w""",
    """SELECT DATE_TRUNC('quarter', q.f) AS quarter, COUNT(q.member) FROM
    (SELECT t.member, MIN(t."at") AS f FROM t GROUP BY t.member) AS q
    WHERE q.f BETWEEN DATE '2024-01-14' AND DATE '2024-07-02' GROUP BY 1""",
]


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(rows=ROWS, text=st.sampled_from(TEXTS))
def test_a_text_means_to_an_engine_what_it_means_to_us(rows: list[Row], text: str) -> None:
    """Run as it was written, a statement around one of members gives the counts that the rendered query gives."""
    under = policy("days", "UTC", contributions="")
    resolution = resolve(parse_sql(text, under), under, now=NOW)
    with duckdb.connect() as database:
        # Nobody's rows are no member's, and Gris counts none of them.
        database.register("t", arrow_table([row for row in rows if row.member and row.at], "days"))
        as_written = database.execute(text).fetchall()
    found = {key[0]: count for key, count in answered(resolution, rows, "days").items()}
    assert {_day(day): count for day, count in as_written} == found


def _day(value: datetime.date) -> datetime.date:
    return value.date() if isinstance(value, datetime.datetime) else value


def test_later_times_are_beside_first_ones_or_alone() -> None:
    """No member comes back later than the range ends, so such elements are no part of the release."""
    both = f"SELECT {MONTH}, {LATER}, {COUNTED} FROM shop WHERE {RANGE} GROUP BY ALL"
    assert parse_sql(both, shop()).dimensions[1] == Later("day", BucketLength.MONTH)
    parameters = asked(both, shop()).parameters
    assert (len(parameters.domain or ()), parameters.delta_l0) == (21, 6)
    alone = f"SELECT {LATER}, {COUNTED} FROM shop WHERE {RANGE} GROUP BY 1"
    assert asked(alone, shop()).parameters.domain == tuple((number,) for number in range(6))


def test_a_structured_question_has_them_as_texts() -> None:
    """As they stand behind SELECT, with an alias where one is given."""
    texts = (FUNNEL.replace(", CORRELATE_BY(visitor)", ""), "DATE_TRUNC('month', MIN(day)) AS first")
    query = with_dimensions(HistogramQuery("shop", texts, Measure.DISTINCT_MEMBERS), shop())
    assert isinstance(query.dimensions[0], Funnel)
    assert query.dimensions[1] == FirstSeen("day", BucketLength.MONTH)
    assert query.aliases == (None, "first")
    retention = HistogramQuery("shop", ("land", "Retention('week', day)"), Measure.DISTINCT_MEMBERS)
    since = FirstSeen("day", BucketLength.WEEK), Later("day", BucketLength.WEEK)
    assert with_dimensions(retention, shop()).dimensions == ("land", *since)


@pytest.mark.parametrize(
    ("sql", "delta"),
    [
        (f"SELECT {FUNNEL} FROM shop", 1),
        (f"SELECT land, {FUNNEL} FROM shop GROUP BY land", 2),
        (FIRST, 1),
        (
            f"SELECT land, {MONTH}, {COUNTED} FROM shop WHERE {RANGE} GROUP BY 1, 2",
            2,
        ),
        (
            f"SELECT {LATER}, {COUNTED} FROM shop WHERE {RANGE} GROUP BY 1",
            6,
        ),
    ],
)
def test_what_a_member_changes_is_what_it_is_in_by_the_other_columns(sql: str, delta: int) -> None:
    """A funnel of three steps costs what one count costs, and so do first times; retention all its buckets."""
    resolution = asked(sql, shop(delta=2))
    assert resolution.parameters.delta_l0 == delta
    assert kind_of(resolution.parameters).mechanism.worst_case_cost().information == delta
    bounded = asked(sql, shop("contributions: {bound: in_query, units: 10}"))
    assert bounded.parameters.contributions is not None
    assert bounded.parameters.contributions.typical == delta


def test_where_times_begin_decides_who_counts_and_which_first_times_there_are() -> None:
    """Rows before the range are read, and the question is another one by where it begins."""
    shorter = FIRST.replace("2026-01-01", "2026-01-15")
    one, other = (asked(each, shop()) for each in (FIRST, shorter))
    assert "'0001-01-01'" in render(one, "duckdb")
    assert one.parameters.domain == other.parameters.domain
    assert canonical_bytes(one.query) != canonical_bytes(other.query)


def test_first_times_end_with_closed_periods() -> None:
    """As every question under a policy whose periods close."""
    under = shop(refresh="month")
    now = int(datetime.datetime(2026, 3, 10, tzinfo=UTC).timestamp())
    resolution = resolve(parse_sql(FIRST, under), under, now=now)
    assert len(resolution.parameters.domain or ()) == 2
    assert resolution.fixed_data_version is not None


def test_a_plan_carries_them() -> None:
    """What they are functions of comes back as it was."""
    for sql in (f"SELECT {FUNNEL} FROM shop", f"SELECT {IN_ORDER} FROM shop", FIRST):
        resolution = asked(sql, shop())
        adapter = TypeAdapter(CanonicalQuery)
        assert adapter.validate_json(adapter.dump_json(resolution.query)) == resolution.query


def test_pinot_needs_its_multi_stage_engine() -> None:
    """A query inside another one, which 0.11 refuses by its name."""
    assert Feature.PINOT_MULTISTAGE in required_features(asked(FIRST, shop()), "pinot")


def test_equal_steps_in_another_order_are_another_funnel() -> None:
    """And a condition that is written otherwise is the same one."""
    one = f"SELECT {FUNNEL} FROM shop"
    other = one.replace("event = 'cart', event = 'purchase'", "event = 'purchase', event = 'cart'")
    same = one.replace("event = 'cart'", "event IN ('cart', 'cart')")
    first, second, third = (canonical_bytes(asked(each, shop()).query) for each in (one, other, same))
    assert first == third != second


ASSUMED = "contributions: {bound: assumed, delta: 2, units: 10}"
PREPARED = "contributions: {bound: prepared, delta: 2, units: 10, elements: [land, event], period: day, periods: month}"


@pytest.mark.parametrize("sql", [f"SELECT {FUNNEL} FROM shop", f"SELECT {IN_ORDER} FROM shop", FIRST])
def test_a_copy_without_all_rows_answers_none(sql: str) -> None:
    """It has one row for each element of a member, so when and in which order it had them is not in it."""
    with pytest.raises(RefusedByPolicyError, match="such a copy has one row for each"):
        asked(sql, shop(PREPARED))
    assert asked(sql, shop(ASSUMED)).parameters.delta_l0 == 1


def test_a_promise_says_nothing_of_the_buckets_that_members_come_back_in() -> None:
    """It is of elements of columns."""
    with pytest.raises(RefusedByPolicyError, match="promises nothing of the buckets"):
        asked(
            f"SELECT {LATER}, {COUNTED} FROM shop WHERE {RANGE} GROUP BY 1",
            shop(ASSUMED),
        )


INNER = "SELECT visitor, DATE_TRUNC('month', MIN(day)) AS f FROM shop"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "SELECT FUNNEL_COUNT(STEPS(event = 'a'), CORRELATE_BY(visitor)) FROM shop",
            "expected 2 to 10 steps",
        ),
        (
            "SELECT FUNNEL_COUNT(STEPS(event = 'a', land = 'de'), CORRELATE_BY(event)) FROM shop",
            "CORRELATE_BY.visitor",
        ),
        ("SELECT FUNNEL_COUNT(event = 'a') FROM shop", "got ="),
        ("SELECT FUNNEL(event = 'a', land = 'de') FROM shop", "write FUNNEL_COUNT"),
        (f"SELECT RETENTION('month', day), {COUNTED} FROM shop", "write DATE_TRUNC"),
        (f"SELECT retention, {COUNTED} FROM shop GROUP BY retention", "expected retention with its buckets"),
        (f"SELECT {IN_ORDER.replace('increase', 'order')} FROM shop", "each step later than the one before"),
        (f"SELECT {IN_ORDER.replace('SETTINGS', 'STEPS')} FROM shop", "SETTINGS.'strict_increase'"),
        (
            f"SELECT {MONTH}, {IN_ORDER} FROM shop WHERE {RANGE} GROUP BY 1",
            "order of time beside first times",
        ),
        (
            f"SELECT {MONTH}, {COUNTED} FROM shop WHERE {RANGE} AND (day < '2026-02-01' OR day > '2026-03-01') "
            "GROUP BY 1",
            "one range of time beside first times",
        ),
        (
            f"SELECT {MONTH}, {COUNTED} FROM shop WHERE {RANGE} AND NOT day BETWEEN '2026-02-01' AND '2026-03-01' "
            "GROUP BY 1",
            "one range of time beside first times",
        ),
        (f"SELECT {FUNNEL}, COUNT(*) FROM shop", "no other number"),
        (f"SELECT {FUNNEL}, COUNT(DISTINCT visitor) FROM shop", "a count that is selected twice"),
        (f"SELECT event, {FUNNEL} FROM shop GROUP BY event", "whose domain the policy lists"),
        (
            f"SELECT DATE_DIFF('day', day, day), COUNT(*) FROM shop WHERE {RANGE} GROUP BY 1",
            "DATE_DIFF other than",
        ),
        (
            f"SELECT DATE_TRUNC('month', MIN(day)), COUNT(*) FROM shop WHERE {RANGE} GROUP BY 1",
            "expected distinct members",
        ),
        (
            f"SELECT {MONTH}, {COUNTED} FROM shop GROUP BY 1",
            "with both ends",
        ),
        (
            f"SELECT DATE_TRUNC('month', MIN(day)), DATE_TRUNC('month', day), COUNT(DISTINCT visitor) FROM shop "
            f"WHERE {RANGE} GROUP BY 1, 2",
            "no buckets or parts of the time itself",
        ),
        (
            f"SELECT f, COUNT(*) FROM ({INNER} WHERE {RANGE} GROUP BY visitor) GROUP BY f",
            "in WHERE it would leave out rows",
        ),
        (
            f"SELECT f, COUNT(*) FROM ({INNER} GROUP BY visitor HAVING COUNT(*) > 3) GROUP BY f",
            "first times alone",
        ),
        (
            f"SELECT f, COUNT(*) FROM ({INNER} GROUP BY visitor) WHERE f > '2026-01-01' GROUP BY f",
            "first times alone: HAVING",
        ),
        (f"SELECT f, COUNT(*) FROM ({INNER} GROUP BY land) GROUP BY f", "expected SELECT member"),
        (f"SELECT f, COUNT(*) FROM ({INNER} GROUP BY visitor, land) GROUP BY f", "expected SELECT member"),
        (
            f"SELECT f, COUNT(*) FROM ({INNER} GROUP BY visitor HAVING MIN(day) > '2026-01-01' OR MIN(day) < '2025')"
            " GROUP BY f",
            "first times alone",
        ),
    ],
)
def test_what_has_another_meaning_is_refused_by_name(sql: str, message: str) -> None:
    """With what to write instead."""
    with pytest.raises((QuestionError, RefusedByPolicyError), match=message):
        asked(sql, shop())


def test_a_funnel_needs_all_of_its_counts() -> None:
    """Beside a column without a limit the largest counts alone are found."""
    under = parse_policy(SHOP.format(more="", delta="", refresh=""))
    with pytest.raises(QuestionError, match="without a limit on a member's values"):
        asked(f"SELECT land, {FUNNEL} FROM shop GROUP BY land LIMIT 5", under)


def test_functions_of_members_do_not_stand_beside_each_other_where_one_has_no_meaning() -> None:
    """A funnel is of all rows of a member, and later times are of some."""
    steps = (In("event", ("a",)), NotIn("event", ("a",)))
    cases: list[tuple[tuple[Dimension, ...], str]] = [
        ((Funnel(steps), Later("day", BucketLength.WEEK)), "no FUNNEL_COUNT beside"),
        ((Funnel(steps), Funnel(steps[::-1])), "one FUNNEL_COUNT"),
        ((FirstSeen("day", BucketLength.WEEK), Later("day", BucketLength.MONTH)), "buckets of one length"),
    ]
    for dimensions, message in cases:
        with pytest.raises(QuestionError, match=message):
            HistogramQuery("shop", dimensions, Measure.DISTINCT_MEMBERS)


def test_members_come_back_in_all_buckets_with_one_weight() -> None:
    """Of two texts one counts in full, in up to seven buckets: no member comes back more often than it came."""
    text = "SELECT text, DATE_TRUNC('month', MIN(at)), DATE_DIFF('month', MIN(at), at), COUNT(DISTINCT member) FROM t"
    under = policy("timestamps", "UTC", contributions=PLENTY, typical=1)
    rows = [
        Row(member, START + datetime.timedelta(days=30 * month + 5), each, 1)
        for member in ("ada", "bob", "cyd")
        for month in range(5)
        for each in "ab"
    ]
    sql = f"{text} WHERE at >= '2024-01-14' AND at < '2024-07-03' GROUP BY 1, 2, 3"
    found = answered(resolve(parse_sql(sql, under), under, now=NOW), rows, "timestamps")
    buckets = len(found) // 2
    assert set(found.values()) == {3 * isqrt(7 * GRID**2 // (2 * buckets))}
