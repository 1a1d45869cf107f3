"""Queries for quantiles: DuckDB answers what the pure reference does, whatever the rows hold."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dp_service.queries.elements import days_of
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render import Feature, render, required_features
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import MemberValue
from dp_service.values.cells import Grid
from tests.support.cells import cell_of
from tests.support.examples import examples
from tests.support.queries.duckdb_rows import store
from tests.support.queries.quantiles import NUMBERS, WHOLES, asked, days_policy, policy, reference
from tests.support.queries.sums import NOW, ROWS, Row


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database with the small table."""
    with duckdb.connect() as found:
        found.execute("CREATE TABLE t (member VARCHAR, text VARCHAR, whole BIGINT, number DOUBLE)")
        yield found


def answered(
    connection: duckdb.DuckDBPyConnection, query: HistogramQuery, policy: Policy, rows: Sequence[Row]
) -> list[tuple[object, ...]]:
    """Return what DuckDB answers to a question over rows."""
    return answered_to(connection, resolve(query, policy, now=NOW), rows)


def answered_to(
    connection: duckdb.DuckDBPyConnection, resolution: Resolution, rows: Sequence[Row]
) -> list[tuple[object, ...]]:
    """Return what DuckDB answers to a question as the policy resolves it."""
    store(connection, "t", rows)
    return connection.execute(render(resolution, "duckdb")).fetchall()


@pytest.mark.slow
@settings(max_examples=examples(120), deadline=None)
@given(
    rows=ROWS,
    whole=st.sampled_from(WHOLES),
    number=st.sampled_from(NUMBERS),
    rule=st.sampled_from(MemberValue),
    column=st.sampled_from(["whole", "number"]),
    by=st.sampled_from([(), ("text",)]),
    typical=st.integers(1, 3),
)
@example(
    rows=[Row("ana", "a", -4, 0.0), Row("ana", "a", 10, 0.0)],
    whole=WHOLES[0],
    number=NUMBERS[0],
    rule=MemberValue.ROWS,
    column="whole",
    by=(),
    typical=1,
)
def test_duckdb_finds_the_cells_that_the_reference_does(
    connection: duckdb.DuckDBPyConnection,
    *,
    rows: list[Row],
    whole: str,
    number: str,
    rule: MemberValue,
    column: str,
    by: tuple[str, ...],
    typical: int,
) -> None:
    """NULL, NaN, infinities, 2^63, halves and duplicates, whichever value of a member counts, on every grid."""
    under = policy(whole=whole, number=number, typical=typical)
    query = asked(column, by=by, of=rule)
    assert answered(connection, query, under, rows) == reference(query, under, rows)


WIDE = """
epsilon_per: 1
delta: 1e-6
tables:
  t:
    member: member
    measures: {{distinct_members: true}}
    columns: {{member: {{type: string}}}}
    values:
      whole: {{type: int64, grid: {{scale: {scale}, from: {low}, to: {high}, cells: {cells}}}}}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "low", "high", "cells"),
    [
        ("linear", -(2**33), 2**33 + 77, 100_000),
        ("linear", 0, 99_999, 99_999),
        ("linear", 3, 1_000_003, 99_991),
        ("geometric", 1, 2**50, 2_000),
    ],
)
def test_the_edges_of_the_largest_grids_are_met_exactly(
    connection: duckdb.DuckDBPyConnection, scale: str, low: int, high: int, cells: int
) -> None:
    """The values of both sides of an edge are in different cells, in doubles as in integers; without contributions."""
    under = parse_policy(WIDE.format(scale=scale, low=low, high=high, cells=cells))
    edges = Grid.of(under.table("t").quantile("whole").spec).edges
    chosen = [edges[place] for place in range(0, len(edges), max(1, len(edges) // 300))] + [edges[-1]]
    values = sorted({value for edge in chosen for value in (edge - 1, edge)})
    rows = [Row(f"m{place}", None, value, None) for place, value in enumerate(values)]
    query = asked("whole", by=(), of=MemberValue.LARGEST)
    assert answered(connection, query, under, rows) == reference(query, under, rows)


@pytest.mark.parametrize("rule", [MemberValue.LARGEST, MemberValue.ROWS])
def test_days_are_in_the_cells_of_the_calendar(rule: MemberValue) -> None:
    """Days before and after the grid are at its ends; rows without a day, or with an infinite one, do not count."""
    days = ["2010-12-31", "2011-01-01", "2011-01-07", "2011-01-08", "2011-01-28", "2011-01-29", "9999-12-31"]
    rows: list[tuple[str | None, str, str | None]] = [
        (f"m{place}", "a", day) for place, day in enumerate(days)
    ]
    rows += [("m9", "a", None), ("m9", "a", "infinity"), ("m8", "a", "-infinity"), (None, "a", "2011-01-01")]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (member VARCHAR, text VARCHAR, day DATE)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?::DATE)", rows)
        resolution = resolve(asked("day", of=rule), days_policy(), now=NOW)
        answer = connection.execute(render(resolution, "duckdb")).fetchall()
    grid = Grid((14975, 14982, 14989, 14996, 15003))
    cells = Counter(cell_of(grid, days_of(datetime.date.fromisoformat(day))) for day in days)
    assert {cell: count for _, cell, count in answer} == cells == {0: 3, 1: 1, 3: 3}
    assert "datediff(`day`, DATE '1970-01-01')" in render(resolution, "spark")
    assert 'CAST((CASE WHEN "day" < ' in render(resolution, "pinot")


def test_no_row_decides_how_many_rows_there_may_be() -> None:
    """As many as there are elements of the domain and cells of the grid, on every engine."""
    for by, most in (((), 7), (("text",), 21)):
        resolution = resolve(asked("whole", by=by), policy(), now=NOW)
        assert resolution.row_limit == most
        for dialect in DIALECTS:
            assert f"LIMIT {most}" in render(resolution, dialect)


def test_pinot_finds_cells_by_its_multi_stage_engine_alone() -> None:
    """A member's value is a query inside another one; a window is there only where members or rows are ordered."""
    for rule, by, window in (
        (MemberValue.MEAN, (), False),
        (MemberValue.MEAN, ("text",), True),
        (MemberValue.ROWS, (), True),
    ):
        resolution = resolve(asked("number", by=by, of=rule), policy(), now=NOW)
        assert required_features(resolution, "pinot") == (Feature.PINOT_MULTISTAGE,)
        text = render(resolution, "pinot")
        assert ("useMultistageEngine=true" in text, "windowOverflowMode" in text) == (True, window)


def test_which_quantiles_are_asked_for_changes_no_query() -> None:
    """An engine counts members in cells; what is chosen of them is decided afterwards."""
    first, second = (resolve(asked("number", m=m), policy(), now=NOW) for m in (1, 9))
    assert render(first, "duckdb") == render(second, "duckdb")
    assert first.query == second.query
    assert first.parameters != second.parameters
    assert first.parameters.quantiles is not None
    assert first.parameters.quantiles.quantiles == (Fraction(1, 2),)
