"""Queries that bound members before they count: DuckDB answers what the pure reference does."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.render.member_bounds import Weights
from dp_service.queries.render.statement import weighted_statement
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import GRID
from tests.support.examples import examples
from tests.support.queries.duckdb_rows import store
from tests.support.queries.reference import Row, bounded_answer
from tests.support.queries.strategies import NOW, policies, questions, rows


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database with the small table."""
    with duckdb.connect() as found:
        found.execute("CREATE TABLE t (member VARCHAR, text VARCHAR, number BIGINT, flag BOOLEAN, day DATE)")
        yield found


def answered(connection: duckdb.DuckDBPyConnection, table: list[Row], sql: str) -> list[tuple[object, ...]]:
    """Return what DuckDB answers over rows."""
    store(connection, "t", table)
    return connection.execute(sql).fetchall()


BOUNDS = st.builds(
    Weights,
    typical=st.integers(1, 3),
    tau=st.integers(1, 3),
    min_count=st.sampled_from([None, 1, 2, 150]),
)


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(policy=policies(), query=questions(), table=rows(), bound=BOUNDS)
def test_duckdb_counts_the_bounded_contributions_of_the_reference(
    connection: duckdb.DuckDBPyConnection,
    policy: Policy,
    query: HistogramQuery,
    table: list[Row],
    bound: Weights,
) -> None:
    """The question's filters act first, NULLs and domains are what they are without a bound."""
    try:
        resolution = resolve(query, policy, now=NOW)
    except (QuestionError, RefusedByPolicyError):
        # Rows by a CASE alone, of which an assumed tau says nothing.
        assume(False)
    sql = weighted_statement(resolution, bound, DIALECTS["duckdb"])
    wanted = bounded_answer(query, policy, table, bound, now=NOW)
    assert [row for row in answered(connection, table, sql) if row[-1]] == wanted


ALL = parse_policy("""
epsilon_per: 1
delta: 1e-2
tables:
  t:
    member: member
    measures: {distinct_members: true, events: {tau: 5, tau_is: assumed}}
    columns:
      text: {type: string, group_by: true}
      number: {type: int64, group_by: true}
      flag: {type: bool, group_by: true}
      day: {type: date, group_by: true}
""")


@pytest.mark.slow
@pytest.mark.parametrize("measure", Measure)
@pytest.mark.parametrize("dimensions", [("text",), ("flag", "day", "text")])
@pytest.mark.parametrize("typical", [1, 4, 100])
def test_members_with_many_elements_are_bounded(
    connection: duckdb.DuckDBPyConnection, measure: Measure, dimensions: tuple[str, ...], typical: int
) -> None:
    """A thousand rows of texts, numbers, truth values and days, of members with up to hundreds of elements."""
    chosen = random.Random(typical)
    table = [
        Row(
            f"m{int(chosen.paretovariate(0.6)) % 20}",
            chosen.choice(
                ["a", "\N{LATIN SMALL LETTER E WITH ACUTE}", "two words", "\N{GRINNING FACE}" * 50]
            ),
            chosen.randrange(-9, 9),
            chosen.choice([True, False]),
            datetime.date(2024, 2, 25) + datetime.timedelta(chosen.randrange(9)),
        )
        for _ in range(1000)
    ]
    query = HistogramQuery("t", dimensions, measure, k=1)
    for least in (GRID, None):
        bound = Weights(typical, 2, least, ())
        sql = weighted_statement(resolve(query, ALL, now=NOW), bound, DIALECTS["duckdb"])
        wanted = bounded_answer(query, ALL, table, bound, now=NOW)
        assert wanted or least == GRID
        assert answered(connection, table, sql) == wanted


@pytest.mark.parametrize("measure", Measure)
@pytest.mark.parametrize("min_count", [None, GRID])
@pytest.mark.parametrize("joins", [True, False], ids=["joined", "in a window"])
def test_members_of_up_to_ten_thousand_elements_are_weighted(
    connection: duckdb.DuckDBPyConnection, measure: Measure, min_count: int | None, joins: bool
) -> None:
    """Of 1 to 10,000 elements: 49 of 625 is one of which other forms of the root are one too small."""
    dialect = replace(DIALECTS["duckdb"], joins_squares=joins)
    sizes = (1, 2, 3, 48, 49, 50, 625, 784, 1111, 3136, 10_000)
    table = [
        Row(f"m{size}", "a", element, True, datetime.date(2024, 2, 25))
        for size in sizes
        for element in range(size)
        for _ in range(1 + (element == 7) * (measure is Measure.EVENTS))
    ]
    query = HistogramQuery("t", ("number",), measure, k=1)
    for typical in (1, 49):
        bound = Weights(typical, 1 if measure is Measure.DISTINCT_MEMBERS else 3, min_count, ())
        resolution = replace(resolve(query, ALL, now=NOW), row_limit=20_000)
        found = answered(connection, table, weighted_statement(resolution, bound, dialect))
        assert [row for row in found if row[-1]] == bounded_answer(query, ALL, table, bound, now=NOW)
