"""The canonical form: one meaning has one fingerprint, two meanings have two."""

import datetime
import itertools
from random import Random

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical import canonicalise
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.canonical_columns import (
    OrdinalRestriction,
    TextRestriction,
)
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import Bound, Filter, In, NotIn, Range, TimeRange, Value
from dp_service.queries.intervals import Interval
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from tests.support.examples import examples
from tests.support.queries.meanings import COUNTRIES, HEAD, MEANINGS, TAIL
from tests.support.queries.policies import POLICY, POLICY_TEXT, fingerprint, resolved
from tests.support.queries.reference import holds


def test_spellings_of_one_meaning_share_a_fingerprint_and_meanings_never_do() -> None:
    """The table above, every spelling against every other."""
    fingerprints = [{canonical_bytes(resolved(sql).query) for sql in row} for row in MEANINGS]
    assert [len(row) for row in fingerprints] == [1] * len(MEANINGS)
    assert len(set().union(*fingerprints)) == len(MEANINGS)


def test_texts_stand_in_order_of_code_points_and_columns_in_order_of_names() -> None:
    """The form is the same in every process, whatever order a set of texts happens to have there."""
    texts = [f"article {i:03}" for i in range(50)]
    listed = ", ".join(f"'{text}'" for text in reversed(texts))
    query = resolved(f"{HEAD} WHERE day > '2019-01-01' AND article_id IN ({listed}) {TAIL}").query
    assert [each.column.name for each in query.restrictions] == ["article_id", "day"]
    assert isinstance(query.restrictions[0], TextRestriction)
    assert query.restrictions[0].values == tuple(texts)


def test_neighbours_at_the_end_of_a_list_of_integers_leave_its_beginning_alone() -> None:
    """A set in two pieces, of which the second has two members, is the same set by its ends and its gap."""
    listed = resolved(f"{HEAD} WHERE score IN (1, 5, 6) {TAIL}").query
    assert listed == resolved(f"{HEAD} WHERE score BETWEEN 1 AND 6 AND score NOT IN (2, 3, 4) {TAIL}").query
    restriction = listed.restrictions[-1]
    assert isinstance(restriction, OrdinalRestriction)
    assert restriction.intervals == (Interval(1, 2), Interval(5, 7))


def test_true_and_false_together_say_nothing() -> None:
    """A condition that every row meets is no condition."""
    both = resolved(f"{HEAD} WHERE active IN (TRUE, FALSE) {TAIL}")
    assert both.query == resolved(f"{HEAD} {TAIL}").query


@pytest.mark.parametrize(
    "condition",
    [
        "score > 3 AND score < 4",
        "score BETWEEN 4 AND 3",
        "score IN (1, 2) AND score NOT IN (2, 1)",
        "score = 1 AND score = 0",
        "score > 9223372036854775807",
        "country = 'DE' AND country = 'FR'",
        "country = 'DE' AND country <> 'DE'",
        "active <> TRUE AND active <> FALSE",
        "day > '9999-12-31'",
        "day < '2019-01-01' AND day > '2019-01-01'",
    ],
)
def test_conditions_that_no_row_can_meet_are_an_error(condition: str) -> None:
    """A contradiction is reported rather than paid for."""
    with pytest.raises(QuestionError, match="contradict") as refusal:
        resolved(f"{HEAD} WHERE {condition} {TAIL}")
    assert refusal.value.field == "filters"


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2024-01-02T00:00Z", "2024-01-01T00:00Z"),
        # No day begins between noon and one o'clock.
        ("2024-01-01T12:00Z", "2024-01-01T13:00Z"),
    ],
)
def test_a_time_range_in_which_nothing_can_be_is_told_as_one(start: str, end: str) -> None:
    """A caller that has set no filter need not guess which condition is meant."""
    timestamps = TimeRange(datetime.datetime.fromisoformat(start), datetime.datetime.fromisoformat(end))
    query = HistogramQuery("engagement", ("article_id",), Measure.EVENTS, time_range=timestamps, k=3)
    with pytest.raises(QuestionError, match=r"including a time range\) contradict"):
        fingerprint(query)


def utc(*parts: int) -> datetime.datetime:
    """Return a moment in UTC."""
    return datetime.datetime(*parts, tzinfo=datetime.UTC)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("table", "dimension", "time_range", "condition"),
    [
        ("engagement", "cohort", TimeRange(utc(2019, 1, 1), utc(2019, 2, 1)), (17897, 17928)),
        # A day is the moment at which it begins: the first day inside is the first that begins inside.
        ("engagement", "cohort", TimeRange(utc(2018, 12, 31, 0, 0, 1), utc(2019, 1, 31, 12)), (17897, 17928)),
        ("engagement", "cohort", TimeRange(utc(1969, 12, 30, 12), utc(1970, 1, 1)), (-1, 0)),
        ("engagement", "cohort", TimeRange(None, utc(2019, 2, 1)), (-719162, 17928)),
        ("engagement", "cohort", TimeRange(utc(2019, 1, 1), None), (17897, 2932897)),
        ("clicks", "kind", TimeRange(utc(1970, 1, 1, 0, 1), utc(1970, 1, 1, 0, 2, 0, 1)), (60, 121)),
    ],
)
def test_a_time_range_is_a_half_open_interval_of_the_time_column(
    table: str, dimension: str, time_range: TimeRange, condition: tuple[int, int]
) -> None:
    """Moments become values of the time column, rounded up, so that [from, to) keeps its meaning."""
    query = HistogramQuery(table, (dimension,), Measure.DISTINCT_MEMBERS, time_range=time_range)
    restrictions = canonicalise(query, POLICY.table(table), closed_before=None).restrictions
    assert [Interval(*condition)] == [
        interval
        for each in restrictions
        if isinstance(each, OrdinalRestriction) and each.column.name in ("day", "at")
        for interval in each.intervals
    ]


def test_a_time_range_and_a_filter_on_the_time_column_are_one_meaning() -> None:
    """The two ways to restrict time share a fingerprint, and both together intersect."""
    january = TimeRange(utc(2019, 1, 1), utc(2019, 2, 1))
    filters = (Range("day", Bound(datetime.date(2019, 1, 1)), Bound(datetime.date(2019, 1, 31))),)
    by_range, by_filter, by_both = (
        HistogramQuery("engagement", ("cohort",), Measure.EVENTS, filters=f, time_range=t)
        for f, t in [((), january), (filters, None), (filters, january)]
    )
    assert fingerprint(by_range) == fingerprint(by_filter) == fingerprint(by_both)


def test_a_time_range_without_ends_says_nothing() -> None:
    """An empty message means no restriction."""
    query = HistogramQuery("views", ("item",), Measure.DISTINCT_MEMBERS, time_range=TimeRange(None, None))
    assert fingerprint(query) == fingerprint(HistogramQuery("views", ("item",), Measure.DISTINCT_MEMBERS))


def test_what_becomes_of_null_is_part_of_the_meaning() -> None:
    """A policy that treats NULL otherwise asks another question, under another fingerprint."""
    sql = "SELECT shown, COUNT(*) FROM engagement GROUP BY shown LIMIT 5"
    fingerprints = set()
    for handling in ("nulls: keep, null_value: none", "nulls: keep, null_value: other", "null_value: none"):
        policy = parse_policy(POLICY_TEXT.replace("nulls: keep, null_value: none", handling))
        fingerprints.add(fingerprint(parse_sql(sql, policy), policy))
    assert len(fingerprints) == 3


def test_the_bytes_of_a_question_do_not_change() -> None:
    """Seeds and ids are made from these bytes: another encoding would be another release of every question."""
    query = HistogramQuery("views", ("item",), Measure.DISTINCT_MEMBERS)
    item = parts(b"item", b"string", b"drop")
    assert fingerprint(query) == parts(
        b"gris/question/v1",
        b"views",
        b"user",
        b"distinct_members",
        parts(item),
        parts(parts(item, b"none of", b"null")),
    )


def parts(*each: bytes) -> bytes:
    """Encode byte strings one after the other, each with its length before it."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in each)


VALUES: dict[str, st.SearchStrategy[Value]] = {
    "score": st.integers(-3, 3),
    "country": st.sampled_from(["DE", "FR", "AT", "null", ""]),
}


@st.composite
def small_filters(draw: st.DrawFn) -> Filter:
    """Draw a filter on one of two columns with values that meet often."""
    if draw(st.booleans()):
        ends = st.none() | st.builds(Bound, VALUES["score"], st.booleans())
        return Range("score", *draw(st.tuples(ends, ends).filter(any)))
    column = draw(st.sampled_from(sorted(VALUES)))
    values = tuple(draw(st.lists(VALUES[column], min_size=1, max_size=3)))
    return In(column, values) if draw(st.booleans()) else NotIn(column, values)


def rows_of(filters: list[Filter]) -> frozenset[tuple[int, str]]:
    """Return which of the possible rows meet all filters: their meaning, spelled out."""
    possible = itertools.product(range(-5, 6), ["DE", "FR", "AT", "", "x"])
    return frozenset(
        (score, country)
        for score, country in possible
        if all(holds(each, {"score": score, "country": country}.get, lambda _: None) for each in filters)
    )


def fingerprint_of_filters(filters: list[Filter]) -> bytes:
    """Return the fingerprint of a question by article with these filters; empty if they contradict each other."""
    # Both columns are always mentioned, so that dropping their NULLs is part of every meaning compared here.
    always: tuple[Filter, ...] = (NotIn("score", (100,)), NotIn("country", ("never",)))
    query = HistogramQuery("engagement", ("article_id",), Measure.EVENTS, (*filters, *always))
    try:
        return fingerprint(query)
    except QuestionError:
        return b""


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(st.lists(small_filters(), max_size=2), st.lists(small_filters(), max_size=2))
def test_filters_share_a_fingerprint_exactly_if_the_same_rows_meet_them(
    left: list[Filter], right: list[Filter]
) -> None:
    """Fingerprints are compared with the meaning itself: which rows of a small world are counted."""
    same_rows = rows_of(left) == rows_of(right)
    assert same_rows == (fingerprint_of_filters(left) == fingerprint_of_filters(right))


@pytest.mark.slow
@given(st.lists(small_filters(), max_size=5), st.randoms(use_true_random=False))
def test_order_and_repetition_of_filters_do_not_show(filters: list[Filter], random: Random) -> None:
    """Shuffling filters and saying one twice keeps the fingerprint."""
    shuffled = [*filters, *filters[:1]]
    random.shuffle(shuffled)
    assert fingerprint_of_filters(filters) == fingerprint_of_filters(shuffled)


def test_a_condition_that_leaves_nothing_of_a_domain_is_refused() -> None:
    """No element of the domain can meet it; whether one does is for the policy to say and not for the data."""
    with pytest.raises(QuestionError, match="contradict each other or its domain"):
        resolved(f"{COUNTRIES} WHERE country NOT IN ('AT', 'DE', 'FR') GROUP BY country")


def test_a_missing_truth_value_is_neither_true_nor_false() -> None:
    """Rows without one are in no element and meet no condition, where the engine stores NULL."""
    policy = parse_policy("""
epsilon_per: 1
delta: 1e-6
tables:
  t:
    member: m
    measures: {distinct_members: true}
    columns: {flag: {type: bool, group_by: true, filter: [in, not_in], domain: [false, true], delta: 1}}
""")
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT * FROM (VALUES ('a', TRUE), ('b', FALSE), ('c', NULL)) t(m, flag)"
        )
        for condition, elements in (("", [(False, 1), (True, 1)]), ("WHERE NOT flag", [(False, 1)])):
            sql = f"SELECT flag, COUNT(DISTINCT m) FROM t {condition} GROUP BY flag"  # noqa: S608
            asked = parse_sql(sql, policy)
            answer = connection.execute(render(resolve(asked, policy, now=0), "duckdb")).fetchall()
            assert sorted(answer) == elements
