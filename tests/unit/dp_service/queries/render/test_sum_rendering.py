"""Queries that sum: DuckDB answers what the pure reference does, whatever the rows hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.policy import Policy
from dp_service.queries.render import Feature, render, required_features
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.render.statement import statement
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from tests.support.examples import examples
from tests.support.queries.duckdb_rows import store
from tests.support.queries.sums import (
    NOW,
    NUMBERS,
    ROWS,
    WHOLES,
    Row,
    asked,
    many_elements,
    policy,
    reference,
)


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
    store(connection, "t", rows)
    return connection.execute(render(resolve(query, policy, now=NOW), "duckdb")).fetchall()


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(
    rows=ROWS,
    whole=st.sampled_from(WHOLES),
    number=st.sampled_from(NUMBERS),
    columns=st.sampled_from([("whole",), ("number",), ("number", "whole")]),
    by=st.sampled_from([(), ("text",)]),
    typical=st.integers(1, 3),
    min_count=st.sampled_from([1, 2]),
    known=st.booleans(),
    measure=st.sampled_from(Measure),
)
def test_duckdb_sums_what_the_reference_does(
    connection: duckdb.DuckDBPyConnection,
    *,
    rows: list[Row],
    whole: str,
    number: str,
    columns: tuple[str, ...],
    by: tuple[str, ...],
    typical: int,
    min_count: int,
    known: bool,
    measure: Measure,
) -> None:
    """NULL, NaN, infinities, 2^63, halves and duplicates: n and every sum are of the same, bounded members."""
    under = policy(whole=whole, number=number, typical=typical, min_count=min_count, known=known)
    query = asked(*columns, by=by, measure=measure)
    assert answered(connection, query, under, rows) == reference(query, under, rows)


@pytest.mark.parametrize("measure", Measure)
@pytest.mark.parametrize("typical", [1, 49])
def test_sums_of_members_of_up_to_ten_thousand_elements_are_weighted(
    connection: duckdb.DuckDBPyConnection, typical: int, measure: Measure
) -> None:
    """Sums by amounts and averages by rows with a value, whatever counts are of; a window finds the same weights."""
    under, rows = many_elements(typical)
    query = asked("whole", "number", measure=measure)
    wanted = reference(query, under, rows)
    assert answered(connection, query, under, rows) == wanted
    window = statement(resolve(query, under, now=NOW), replace(DIALECTS["duckdb"], joins_squares=False))
    assert connection.execute(window).fetchall() == wanted


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("infinities", [(), (math.inf,), (-math.inf,), (math.inf, -math.inf)])
def test_an_infinity_of_one_member_decides_nothing_about_the_nan_of_another(
    tmp_path: Path, number: str, infinities: tuple[float, ...]
) -> None:
    """DuckDB drops comparisons that the least and the largest number of a file meet, and NaN is neither of them."""
    rows = [Row("ada", "a", 1, 2.0), Row("bob", "a", 1, math.nan), Row("cy", "b", 1, math.nan)]
    rows += [Row("eve", "a", 1, infinity) for infinity in infinities]
    columns = dict(zip(Row._fields, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    under, query = policy(number=number), asked("number")
    with duckdb.connect() as connection:
        connection.read_parquet(str(tmp_path / "t.parquet")).create_view("t")
        found = connection.execute(render(resolve(query, under, now=NOW), "duckdb")).fetchall()
    assert found == reference(query, under, rows)


def unweighted(**columns: str) -> Policy:
    """Return a policy under which every member counts in full."""
    return policy(typical=3, known=True, **columns)


def test_a_member_without_a_usable_row_counts_and_moves_no_other_number(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """Otherwise it would move the sum of an average by lower + upper, and its own count not at all."""
    rows = [Row("ada", "a", 1, 2.0), Row("eve", "a", None, None), Row("eve", "a", 1, math.nan)]
    assert answered(connection, asked("number"), unweighted(), rows) == [("a", 2, 400, 2 * 200 - 2000, 1)]


def test_a_member_of_many_rows_counts_in_an_average_as_tau_of_their_mean(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """Ada's five rows, of 3.2 on average, count as two, of 6.4 together and not of 6; bob's one counts as it is."""
    rows = [Row("ada", "a", whole, 1.0) for whole in (0, 1, 2, 3, 90)] + [Row("bob", "a", 7, 1.0)]
    found = answered(connection, asked("whole", measure=Measure.EVENTS), unweighted(), rows)
    # In hundredths: a row counts with at most 10, so the sum of ada's is 16; 2 * 6.4 - 2 * 10, and 2 * 7 - 10. In the
    # sum her total counts with at most 10.
    assert found == [("a", 3, 2 * (10 + 7), -720 + 400, 3)]


def test_rows_are_clamped_before_they_are_summed(connection: duckdb.DuckDBPyConnection) -> None:
    """So one row cannot use up what the others of a member take away, and nothing overflows."""
    signed = "{type: decimal, quantum: 1, lower: -10, upper: 10}"
    rows = [Row("ada", "a", 1, 1e308), Row("ada", "a", 1, 1e308), Row("ada", "a", 1, -10.0)]
    # 10 + 10 - 10; of the sum of all three, 2e308 - 10, it would be 10 as well only by chance.
    found = answered(connection, asked("number"), unweighted(number=signed), [*rows, rows[2]])
    assert found == [("a", 1, 0, 0, 1)]


def test_a_row_is_rounded_to_the_nearest_step_and_a_members_total_is_clamped(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """Ada's rows are below the clamp, their total of 25 is not; bob's is 0.7 of a step of a hundredth."""
    rows = [*[Row("ada", "a", 1, 5.0)] * 5, Row("bob", "b", 1, 0.007)]
    expected = [("a", 1, 4000, 2 * 2000 - 2000, 1), ("b", 1, 2, 2 * 1 - 2000, 1)]
    assert answered(connection, asked("number"), unweighted(), rows) == expected


def test_pinot_sums_by_its_multi_stage_engine_alone() -> None:
    """A member's total is a query inside another one, also where nobody has to be bounded."""
    for by in ((), ("text",)):
        resolution = resolve(asked("number", by=by), policy(), now=NOW)
        assert required_features(resolution, "pinot") == (Feature.PINOT_MULTISTAGE,)
        assert render(resolution, "pinot").count("useMultistageEngine=true") == 1
