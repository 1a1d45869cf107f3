"""Random policies and questions: every spelling is one question, and engines are asked just that one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dp_service.queries.canonical import canonicalise
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.filters import In, IsNull, column_filters
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render import render
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from tests.support.examples import examples
from tests.support.queries.mutating import mutated
from tests.support.queries.sql_reader import read
from tests.support.queries.sql_writer import spelled
from tests.support.queries.strategies import NOW, policies, questions_and_totals

QUESTIONS = questions_and_totals().flatmap(
    # A total has nothing but its count.
    lambda query: st.builds(
        replace,
        st.just(query),
        omit_counts=st.booleans() if query.plain_dimensions else st.just(False),
        k=st.integers(1, 3),
    )
)

LONGEST_TEXT = 40_000


def outcome(query: HistogramQuery, policy: Policy) -> Resolution | str:
    """Return what a question resolves to, or why it has no answer."""
    try:
        return resolve(query, policy, now=NOW)
    except QuestionError as error:
        # Which of several contradictions is named depends on how the conditions are nested.
        return "a contradiction" if "contradict" in str(error) else f"{error.field}: {error}"
    except RefusedByPolicyError as error:
        return f"{error.rule}: {error}"


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(policy=policies(), query=QUESTIONS, random=st.randoms(use_true_random=False))
def test_any_two_spellings_of_a_question_share_a_fingerprint(
    policy: Policy, query: HistogramQuery, random: Random
) -> None:
    """Two texts and the structured form mean the same, to the last byte, or are refused for the same reason."""
    texts = [spelled(query, policy.table("t"), random) for _ in range(2)]
    expected = outcome(query, policy)
    for text in texts:
        assert expected == outcome(parse_sql(text, policy), policy)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(policy=policies(), query=QUESTIONS)
def test_what_engines_are_asked_reads_back_as_the_question(policy: Policy, query: HistogramQuery) -> None:
    """A parser finds in the rendered query the same meaning, clipping and row limit, for every engine."""
    # The reader knows columns as they are; what engines answer to a CASE is compared with the reference.
    assume(query.plain_dimensions == query.dimensions)
    resolution = outcome(query, policy)
    assume(not isinstance(resolution, str))
    assert isinstance(resolution, Resolution)
    table = policy.table("t")
    # Where the domain is known, engines are asked for its elements only.
    known = query.plain_dimensions if resolution.parameters.domain is not None else ()
    asked_too = tuple(In(name, table.column(name).domain or ()) for name in known)
    whole = replace(query, filters=(*query.filters, *asked_too))
    assert table.time is not None
    expected = fingerprint(whole, policy, table.time.closed_before(NOW))
    for dialect in DIALECTS:
        text = render(resolution, dialect)
        # What is asked has some thirty values: to parse a text that lists what lies between them takes gigabytes.
        assert len(text) < LONGEST_TEXT
        found = read(text, table, dialect)
        assert expected == fingerprint(found.query, policy, None)
        assert (resolution.query.clip, resolution.row_limit) == (found.clip, found.limit)
        assert bool(found.options) is (dialect == "pinot")


def fingerprint(query: HistogramQuery, policy: Policy, closed_before: int | None) -> bytes:
    """Return the fingerprint of a question; empty if its conditions contradict each other."""
    try:
        table = policy.table(query.table)
        return canonical_bytes(canonicalise(query, table, closed_before=closed_before))
    except QuestionError:
        return b""


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a DuckDB with sixty rows, of which none misses a value."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t (member VARCHAR, text VARCHAR, number BIGINT, flag BOOLEAN, day DATE)"
        )
        connection.execute(
            "INSERT INTO t SELECT 'm' || (i % 3), ['a', 'A', '%', '_', '\\'][1 + i % 5], 1 + i % 3, i % 2 = 0, "
            "DATE '2019-01-02' + (i % 2)::INTEGER FROM range(60) r(i)"
        )
        # Pinot's names for what DuckDB has none for; DuckDB's own APPROX_COUNT_DISTINCT is not exact.
        for name in ("DISTINCTCOUNT", "DISTINCTCOUNTHLL", "ABOUT_COUNT_DISTINCT"):
            connection.execute(f"CREATE MACRO {name}(x) AS COUNT(DISTINCT x)")
        yield connection


PLAIN = parse_policy("""
epsilon_per: 0.15
delta: 1e-10
tables:
  t:
    member: member
    time: {column: day, type: date}
    measures: {distinct_members: true, events: {tau: 9, tau_is: assumed}}
    d_bar: 1000
    columns:
      text: {type: string, group_by: true, filter: [in, not_in]}
      number: {type: int64, group_by: true, filter: [in, not_in, range]}
      flag: {type: bool, group_by: true, filter: [in, not_in]}
      day: {type: date, group_by: true, filter: [in, not_in, range]}
""")


def asks_for_missing_truth(query: HistogramQuery) -> bool:
    """Tell whether IS NULL is asked of truth values: a missing one is FALSE to every policy, and not to an engine."""
    leaves = (each for condition in query.every_filter for each in column_filters(condition))
    return any(isinstance(each, IsNull) and each.column == "flag" for each in leaves)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(query=QUESTIONS, random=st.randoms(use_true_random=False))
def test_a_text_means_to_an_engine_what_it_means_to_us(
    engine: duckdb.DuckDBPyConnection, query: HistogramQuery, random: Random
) -> None:
    """Run as it was written, over rows without NULL, a text gives the counts that the rendered query gives.

    So the parser understands SQL as engines do. The policy adds nothing here but what becomes of NULL.
    """
    assume(not asks_for_missing_truth(query))
    # Without LIMIT: it bounds what is shown, and not what an engine is asked.
    text = spelled(replace(query, k=None, omit_counts=False), PLAIN.table("t"), random)
    resolution = outcome(query, PLAIN)
    assume(isinstance(resolution, Resolution))
    assert isinstance(resolution, Resolution)
    as_written = engine.execute(text.replace("APPROX_", "ABOUT_")).fetchall()
    rendered = engine.execute(render(resolution, "duckdb")).fetchall()
    assert without_null(as_written) == without_null(rendered)


def without_null(rows: list[tuple[object, ...]]) -> list[str]:
    """Return rows in order, without the group of NULL that SQL has where a CASE has no ELSE."""
    return sorted(str(row) for row in rows if None not in row)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(query=QUESTIONS, random=st.randoms(use_true_random=False))
def test_a_text_that_is_no_sql_is_refused(
    engine: duckdb.DuckDBPyConnection, query: HistogramQuery, random: Random
) -> None:
    """A text with words too many, too few or out of order is refused, or means to an engine what it means to us."""
    text = mutated(spelled(query, PLAIN.table("t"), random), random)
    try:
        parsed = parse_sql(text, PLAIN)
        resolution = resolve(replace(parsed, k=1), PLAIN, now=NOW)
    except (QuestionError, RefusedByPolicyError):
        return
    assume(not asks_for_missing_truth(parsed))
    as_written = engine.execute(text.replace("APPROX_", "ABOUT_")).fetchall()
    rendered = engine.execute(render(resolution, "duckdb")).fetchall()
    # A text with LIMIT shows some of these; one that leaves the count out shows no counts.
    width = len(parsed.dimensions) + (not parsed.omit_counts)
    assert {str(row) for row in as_written} <= {str(row[:width]) for row in rendered}
    assert len(as_written) == min(len(rendered), parsed.k or len(rendered))
