"""Conditions joined by AND, OR and NOT, and patterns: limits, edges, and the domain that they leave."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import datetime
import itertools
from dataclasses import replace

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import (
    AllOf,
    AnyOf,
    Bound,
    Filter,
    In,
    Like,
    Range,
    pattern_of,
    regular_expression,
)
from dp_service.queries.intervals import MOST_LISTED, Interval, gaps, is_short, parts_written, size
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import MAXIMUM_DEPTH, MAXIMUM_FILTERS, HistogramQuery
from dp_service.releases.kinds import kind_of
from tests.support.queries.duckdb_rows import store
from tests.support.queries.lookups import content, policy_of, said
from tests.support.queries.odd_conditions import CONDITIONS, DROPPED, KEPT, ROWS, asked
from tests.support.queries.policies import POLICY, POLICY_TEXT, fingerprint, resolved
from tests.support.queries.reference import answer, holds
from tests.support.queries.strategies import NOW


@pytest.mark.parametrize("policy", [DROPPED, KEPT], ids=["dropped", "kept"])
def test_each_form_is_met_by_the_rows_of_the_reference(policy: Policy) -> None:
    """On texts that are near to the patterns, and each number and day beside them, NULL too."""
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE t (member VARCHAR, text VARCHAR, number BIGINT, flag BOOLEAN, day DATE)")
        store(engine, "t", ROWS)
        for condition in CONDITIONS:
            for by, counted in (("text", "*"), ("number", "DISTINCT member")):
                query = asked(condition, policy, by, counted)
                sql = render(resolve(query, policy, now=NOW), "duckdb")
                assert answer(query, policy, ROWS, now=NOW) == engine.execute(sql).fetchall(), condition


def test_a_pattern_goes_through_a_text_once_for_each_part() -> None:
    """An engine that tries every place for every part, as Python does too, would not come back from this text."""
    text = "a" * 20_000 + "b"
    assert pattern_of("%a%a%a%b", folds=True).fullmatch(text)
    assert not pattern_of("%a%a%a%a", folds=False).fullmatch(text)
    assert not pattern_of("%a%a%b%", folds=False).fullmatch("a" * 20_000)
    assert regular_expression("%a%b", folds=False, backtracks=False) == ".*?a.*b"
    # RE2J, which a Pinot server may use, knows no atomic groups: the commonest pattern needs none.
    assert regular_expression("x%a%", folds=False, backtracks=True) == "x.*?a.*"


def nested(depth: int) -> Filter:
    """Return conditions that are in one another so many times."""
    condition: Filter = In("active", (True,))
    for level in range(depth):
        other = Range("score", Bound(level), None)
        condition = AnyOf((condition, other)) if level % 2 else AllOf((condition, other))
    return condition


@pytest.mark.parametrize(
    ("accepted", "refused", "message"),
    [
        (nested(MAXIMUM_DEPTH), nested(MAXIMUM_DEPTH + 1), "in one another at most 8 times"),
        (
            AnyOf((In("active", (True,)),) * MAXIMUM_FILTERS),
            AnyOf((In("active", (True,)),) * (MAXIMUM_FILTERS + 1)),
            "at most 128 conditions",
        ),
    ],
)
def test_conditions_have_limits(accepted: Filter, refused: Filter, message: str) -> None:
    """Of their number and of how deep they are in one another."""
    query = HistogramQuery("engagement", ("article_id",), Measure.EVENTS)
    assert fingerprint(replace(query, filters=(accepted,)))
    with pytest.raises(QuestionError, match=message):
        replace(query, filters=(refused,))


def test_patterns_have_limits() -> None:
    """Runs of % are one."""
    assert Like("article_id", "%%a%b_%c%%")
    with pytest.raises(QuestionError, match="at most 4 signs %"):
        Like("article_id", "%a%b%c%d%")


def test_patterns_are_looked_for_in_so_many_listed_characters_alone() -> None:
    """Each is held against each listed value: a short text must not buy minutes of a processor."""
    listed = ", ".join(f"'{number:0500}'" for number in range(2_000))
    policy = parse_policy(POLICY_TEXT.replace("domain: [DE, FR, AT]", f"domain: [{listed}]"))
    query = HistogramQuery("engagement", ("country",), Measure.EVENTS, (Like("country", "%1"),))
    assert resolve(query, policy, now=NOW)
    asked = replace(query, filters=tuple(Like("country", f"%{number}") for number in range(101)))
    with pytest.raises(QuestionError, match=r"at most 100,000,000 characters, .* got 101,000,000"):
        resolve(asked, policy, now=NOW)


@pytest.mark.parametrize(
    "condition",
    [
        In("country", ("DE", "XX")),
        AnyOf((In("country", ("XX",)), AnyOf((In("country", ("DE",)),)))),
        AllOf((AnyOf((In("country", ("DE",)), In("country", ("XX",)))),)),
    ],
    ids=["a list", "alternatives", "nested"],
)
def test_a_list_is_checked_as_a_whole_however_it_is_written(condition: Filter) -> None:
    """A value that no answer could show is a slip, beside one that an answer shows."""
    query = HistogramQuery("engagement", ("country",), Measure.DISTINCT_MEMBERS, (condition,))
    with pytest.raises(QuestionError, match="1 of 2 values are not in the column's domain"):
        resolve(query, POLICY, now=NOW)


@pytest.mark.parametrize(
    "condition",
    [
        "(active AND NOT active) OR (score > 3 AND score < 2)",
        "article_id NOT LIKE '%'",
        "article_id IS NULL",
        "active AND (article_id IS NULL OR score > 3 AND score < 3)",
    ],
)
def test_alternatives_that_no_row_can_meet_are_an_error(condition: str) -> None:
    """As of one column."""
    with pytest.raises(QuestionError, match="contradict"):
        resolved(f"SELECT article_id, COUNT(*) FROM engagement WHERE {condition} GROUP BY article_id")


@pytest.mark.parametrize(
    "condition", ["active OR NOT active", "active OR article_id = 'x' OR active = FALSE"]
)
def test_alternatives_that_every_row_meets_are_none(condition: str) -> None:
    """Where NULL is kept."""
    head, tail = "SELECT cohort, COUNT(*) FROM engagement", "GROUP BY cohort"
    assert resolved(f"{head} {tail}") == resolved(f"{head} WHERE {condition} {tail}")


def test_a_wide_gap_is_written_by_its_ends() -> None:
    """A list of a million numbers would be no query."""
    sql = "SELECT country, COUNT(*) FROM engagement WHERE score NOT BETWEEN 0 AND 1000000 GROUP BY country"
    rendered = render(resolved(sql), "duckdb")
    assert '(("score" >= -9223372036854775807 AND "score" <= -1) OR ("score" >= 1000001))' in rendered


@pytest.mark.parametrize(
    ("condition", "written"),
    [
        ("score BETWEEN 1 AND 4000000000000 OR score > 9223372036854775806", '"score" = 9223372036854775807'),
        (
            "day BETWEEN '0700-01-01' AND '2019-01-01' OR day IN ('0001-01-02', '5000-01-01')",
            "IN (DATE '0001-01-02', DATE '5000-01-01')",
        ),
        ("day <= '2019-01-01' OR day = '9999-12-31'", "\"day\" = DATE '9999-12-31'"),
    ],
)
def test_a_wide_interval_is_written_by_its_ends_however_far_others_are(condition: str, written: str) -> None:
    """Listing its members would take the service's memory, and be a query that no engine reads."""
    sql = f"SELECT country, COUNT(*) FROM engagement WHERE {condition} GROUP BY country"
    rendered = render(resolved(sql), "duckdb")
    assert written in rendered
    assert len(rendered) < 1_000


@given(
    st.lists(
        st.tuples(st.sampled_from([1, 2, 3, 9, 40, 3_000]), st.sampled_from([1, 2, 3, 9, 40, 3_000])),
        min_size=1,
        max_size=9,
    )
)
def test_a_condition_has_a_few_numbers_for_each_interval_and_gap(sizes: list[tuple[int, int]]) -> None:
    """And the parts that it writes are the set."""
    intervals, end = [], 0
    for gap, length in sizes:
        intervals.append(Interval(end + gap, end + gap + length))
        end += gap + length
    written, numbers = set[Interval](), 0
    for part in parts_written(tuple(intervals)):
        written |= set(part)
        numbers += size(part) if is_short(part) else 2 + size(gaps(part))
    assert written == set(intervals)
    assert numbers <= 2 * MOST_LISTED * len(intervals)


TIMES = parse_policy("""
epsilon_per: 1
delta: 1e-2
tables:
  t:
    member: m
    time: {column: at, type: timestamp, zone: Europe/Berlin}
    measures: {distinct_members: true}
    columns:
      n: {type: int64, group_by: true, delta: 1, filter: [in]}
""")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("at < DATE '2024-03-31' OR at >= DATE '2024-04-01'", {0, 1, 4}),
        ("NOT (at >= DATE '2024-03-31' AND at < DATE '2024-04-01')", {0, 1, 4}),
        ("at NOT BETWEEN TIMESTAMP '2024-03-31 00:00:00' AND TIMESTAMP '2024-03-31 23:59:58'", {0, 1, 3, 4}),
        ("n = 2 OR at > TIMESTAMP '2024-03-31 23:59:59'", {2, 4}),
        ("(at > DATE '2024-03-31' OR n = 0) AND at < DATE '2024-04-01'", {0, 3}),
    ],
)
def test_times_may_be_alternatives(condition: str, expected: set[int]) -> None:
    """Days of the zone, of which this one has 23 hours; a row without a time is in no range."""
    seconds = (1, 1_711_839_599, 1_711_839_600, 1_711_922_399, 1_711_922_400)
    with duckdb.connect() as engine:
        engine.execute('CREATE TABLE t (m BIGINT, n BIGINT, "at" TIMESTAMP)')
        times = [datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=each) for each in seconds]
        store(engine, "t", [*((i, i, each) for i, each in enumerate(times)), (5, 5, None)])
        sql = f"SELECT n, COUNT(DISTINCT m) FROM t WHERE {condition} GROUP BY n"
        rendered = render(resolve(parse_sql(sql, TIMES), TIMES, now=NOW), "duckdb")
        assert {row[0] for row in engine.execute(rendered).fetchall()} == expected


WEEK = parse_policy(
    POLICY_TEXT.replace(
        "domain: [DE, FR, AT], delta: 1", "domain: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], delta: 5"
    )
)


WEEK_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def asked_of_week(where: str, by: str = "country", policy: Policy = WEEK) -> Resolution:
    """Return what the question for weekdays resolves to under a condition."""
    condition = f"WHERE {where} " if where else ""
    return resolved(
        f"SELECT {by}, COUNT(DISTINCT member_id) FROM engagement {condition}GROUP BY {by}", policy
    )


@pytest.mark.parametrize(
    ("where", "days", "delta"),
    [
        ("country IN ('Mon', 'Tue')", {"Mon", "Tue"}, 2),
        ("country = 'Mon' OR country LIKE 'Tu%'", {"Mon", "Tue"}, 2),
        ("country <> 'Sun'", {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}, 5),
        ("country ILIKE 's%'", {"Sat", "Sun"}, 2),
        ("NOT (country LIKE 'T%' OR country LIKE '_u%')", {"Mon", "Wed", "Fri", "Sat"}, 4),
        ("country IS NOT NULL", {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}, 5),
        # Beside other columns, of which any value may be.
        ("(country IN ('Mon', 'Tue') AND active) OR country = 'Wed'", {"Mon", "Tue", "Wed"}, 3),
        (
            "NOT (country LIKE 'S%' OR country = 'Mon' AND active) AND (active OR country <> 'Fri')",
            set(WEEK_DAYS) - {"Sat", "Sun"},
            5,
        ),
        (
            "(country LIKE 'T%' OR active) AND (country <> 'Tue' OR NOT active) AND country <> 'Mon'",
            set(WEEK_DAYS) - {"Mon"},
            5,
        ),
        ("country = 'Mon' OR active", {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}, 5),
    ],
)
def test_a_condition_restricts_a_listed_domain(where: str, days: set[str], delta: int) -> None:
    """What is left out is not released, not asked for, and not paid for."""
    found, whole = asked_of_week(where), asked_of_week("")
    assert {element[0] for element in found.parameters.domain or ()} == days
    assert (found.parameters.delta_l0, found.row_limit) == (delta, len(days))
    assert _price(found) <= _price(whole)
    listed = ", ".join(f"'{day}'" for day in sorted(days))
    assert f'"country" IN ({listed})' in render(found, "duckdb")


def _price(resolution: Resolution) -> int:
    information: int = kind_of(resolution.parameters).mechanism.worst_case_cost().information
    return information


OF_DAYS = (
    "country IN ('Mon', 'Tue')",
    "country <> 'Sun'",
    "country LIKE '_u%'",
    "NOT country ILIKE 's%'",
    "country IS NULL",
)
OF_OTHERS = ("active", "score NOT BETWEEN 0 AND 5", "article_id LIKE 'a%'", "NOT (active OR score = 1)")
JOINED = (
    "({0} AND {2}) OR ({1} AND {3})",
    "(({0} OR {2}) AND {1}) OR ({0} AND {3})",
    "NOT ({0} AND {2}) AND {1}",
    "NOT ({0} OR {2}) OR ({1} AND {3})",
)


@pytest.mark.parametrize("joined", JOINED)
def test_no_day_is_left_out_that_a_row_could_have(joined: str) -> None:
    """Over all pairs of conditions on days and on others: a row of any value is met only on days that are left."""
    rows = [
        {"country": day, "active": active, "score": score, "article_id": text}
        for day in WEEK_DAYS
        for active in (True, False)
        for score in (0, 1, 9)
        for text in ("a", "b")
    ]
    left_out = 0
    for days, others in itertools.product(itertools.product(OF_DAYS, OF_DAYS), itertools.pairwise(OF_OTHERS)):
        where = joined.format(*days, *others)
        filters = parse_sql(
            f"SELECT country, COUNT(*) FROM engagement WHERE {where} GROUP BY country", WEEK
        ).filters
        met = {
            row["country"] for row in rows if all(holds(each, row.get, lambda _: None) for each in filters)
        }
        try:
            left = {element[0] for element in asked_of_week(where).parameters.domain or ()}
        except QuestionError:
            left = set()
        assert met <= left, where
        left_out += len(WEEK_DAYS) - len(left)
    assert left_out


def test_an_alternative_leaves_out_values_that_are_looked_up() -> None:
    """Its conditions are on keys: a text is left while one of its keys is."""
    file = content("text", [("a", "one"), ("b", "one"), ("c", "two"), ("d", "three")])
    columns = {
        "text": {"type": "string", "filter": ["in"]},
        "flag": {"type": "bool", "filter": ["in", "not_in"]},
        "topic": said("text", file, delta=3, domain=["one", "two", "three"]),
    }
    table = {"member": "m", "measures": {"distinct_members": True}, "columns": columns}
    policy = policy_of({"epsilon_per": "1", "delta": "1e-2", "tables": {"t": table}}, file)
    where = "(topic = 'two' AND flag) OR (text = 'b' AND NOT flag)"
    sql = f"SELECT topic, COUNT(DISTINCT m) FROM t WHERE {where} GROUP BY topic"
    found = resolved(sql, policy)
    assert found.parameters.domain == (("one",), ("two",))
    assert found.parameters.delta_l0 == 2


def test_a_product_of_domains_is_restricted_column_by_column() -> None:
    """By ranges of numbers too; beside a column of an unknown domain, the query and Delta are restricted as well."""
    sql = "SELECT country, score, COUNT(DISTINCT member_id) FROM engagement WHERE country LIKE '%n' AND score >= 0"
    product = resolved(f"{sql} GROUP BY country, score ORDER BY 3 DESC LIMIT 9", WEEK)
    assert product.parameters.domain == (("Mon", 0), ("Mon", 1), ("Sun", 0), ("Sun", 1))
    beside = asked_of_week("country LIKE '%n'", by="country, cohort")
    assert beside.parameters.within == (("Mon", "Sun"), None)
    assert (beside.parameters.delta_l0, asked_of_week("", by="country, cohort").parameters.delta_l0) == (
        4,
        10,
    )
