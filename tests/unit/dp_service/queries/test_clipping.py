"""Clipped events: no member changes a count by more than tau, shown on real data and on neighbouring tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import Feature, render, required_features
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Policy
from tests.support.examples import examples
from tests.support.paths import EXAMPLES
from tests.support.queries.duckdb_rows import store
from tests.support.queries.policies import resolved

PURCHASES = EXAMPLES / "online_retail" / "purchases.parquet"
TAU = 3


def policy(tau: int, tau_is: str) -> Policy:
    """Return a policy for the purchases that shows every element."""
    return parse_policy(f"""
epsilon_per: 1
delta: 1e-2
tables:
  purchases:
    member: member_id
    d_bar: 100000
    measures: {{events: {{tau: {tau}, tau_is: {tau_is}}}}}
    columns:
      stock_code: {{type: string, group_by: true}}
      country: {{type: string, group_by: true, delta: 1, nulls: keep, null_value: nowhere}}
""")


def sql_by(*dimensions: str, tau: int = TAU, tau_is: str = "clipped") -> str:
    """Return DuckDB's query for the events by some columns."""
    query = HistogramQuery("purchases", dimensions, Measure.EVENTS, k=1)
    return render(resolve(query, policy(tau, tau_is), now=0), "duckdb")


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database; what a test makes there as temporary is its cursor's own."""
    with duckdb.connect() as found:
        yield found


@pytest.fixture(scope="module")
def purchases(database: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Give the database, with the real purchases."""
    database.read_parquet(str(PURCHASES)).create_view("purchases")
    return database


@cache
def events_of_members(dimensions: tuple[str, ...]) -> pa.Table:
    """Return how many events each member has with each element, by Arrow."""
    rows = pq.read_table(PURCHASES, columns=["member_id", *dimensions])
    rows = rows.filter(pc.field("member_id").is_valid())
    return rows.group_by(rows.column_names).aggregate([([], "count_all")])


def clipped(of_members: pa.Table, tau: int) -> dict[tuple[str, ...], int]:
    """Return the count of each element, given the events of each of its members; by Arrow."""
    _, *dimensions, _ = of_members.column_names
    counts = pc.min_element_wise(of_members["count_all"], tau)
    summed = of_members.append_column("clipped", counts).group_by(dimensions).aggregate([("clipped", "sum")])
    *columns, sums = (summed[name].to_pylist() for name in (*dimensions, "clipped_sum"))
    return dict(zip(zip(*columns, strict=True), sums, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [("stock_code",), ("country",), ("country", "stock_code")])
@pytest.mark.parametrize("tau", [1, 3, 40])
def test_real_counts_are_clipped_for_each_member_and_element(
    purchases: duckdb.DuckDBPyConnection, dimensions: tuple[str, ...], tau: int
) -> None:
    """Half a million real purchases, counted once by the question and once by Arrow."""
    answered = purchases.execute(sql_by(*dimensions, tau=tau)).fetchall()
    of_members = events_of_members(dimensions)
    expected = clipped(of_members, tau)
    assert pc.max(of_members["count_all"]).as_py() > tau
    assert expected == {tuple(element): count for *element, count in answered}
    assert [count for *_, count in answered] == sorted(expected.values(), reverse=True)


Rows = Sequence[tuple[str | None, str, str | None]]


def counts(engine: duckdb.DuckDBPyConnection, rows: Rows, sql: str) -> Counter[object]:
    """Return the counts of a small table."""
    engine.execute(
        "CREATE OR REPLACE TEMP TABLE purchases (member_id VARCHAR, stock_code VARCHAR, country VARCHAR)"
    )
    store(engine, "purchases", rows)
    return Counter({tuple(element): count for *element, count in engine.execute(sql).fetchall()})


def greatest_change(left: Counter[object], right: Counter[object]) -> int:
    """Return by how much two histograms differ in one element at most."""
    return max((abs(left[element] - right[element]) for element in left | right), default=0)


MEMBERS = st.sampled_from(["many", "b", "c", None])
ROWS = st.lists(st.tuples(MEMBERS, st.sampled_from(["x", "y"]), st.sampled_from(["here", None])), max_size=40)


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None)
@given(rows=ROWS, dimensions=st.sampled_from([("stock_code",), ("country", "stock_code")]))
# Few random tables give a member more than tau events of one element.
@example(rows=[("many", "x", "here")] * 40 + [("b", "x", None)], dimensions=("stock_code",))
def test_taking_a_member_away_changes_no_count_by_more_than_tau(
    database: duckdb.DuckDBPyConnection, rows: Rows, dimensions: tuple[str, ...]
) -> None:
    """However many events a member has, and in however many elements: this is what the noise is scaled to."""
    without = [row for row in rows if row[0] != "many"]
    with database.cursor() as engine:
        sql = sql_by(*dimensions)
        assert greatest_change(counts(engine, rows, sql), counts(engine, without, sql)) <= TAU


def test_an_assumed_tau_holds_no_member_back(database: duckdb.DuckDBPyConnection) -> None:
    """The property above is one of clipping: without it, the same member changes a count by all that it has."""
    rows: Rows = [("many", "x", "here")] * 40 + [("b", "x", "here")]
    with database.cursor() as engine:
        clipped, assumed = (
            greatest_change(
                *(counts(engine, part, sql_by("stock_code", tau_is=how)) for part in (rows, rows[-1:]))
            )
            for how in ("clipped", "assumed")
        )
    assert (clipped, assumed) == (TAU, 40)


def test_rows_without_a_member_are_nobodys_and_not_counted(database: duckdb.DuckDBPyConnection) -> None:
    """Together they would be one member with the events of all."""
    rows: Rows = [(None, "x", "here")] * 9 + [("b", "x", "here")] * 2
    with database.cursor() as engine:
        assert counts(engine, rows, sql_by("stock_code")) == {("x",): 2}


def test_the_count_is_an_integer_of_64_bits(database: duckdb.DuckDBPyConnection) -> None:
    """DuckDB's sum would be one of 128 bits, which the connector refuses."""
    with database.cursor() as engine:
        counts(engine, [("b", "x", "here")], sql_by("stock_code"))
        assert str(engine.sql(sql_by("stock_code")).types[-1]) == "BIGINT"


def test_clipping_is_part_of_the_meaning() -> None:
    """Another tau counts other numbers, and so does none; where members are counted it says nothing."""
    fingerprints = {
        canonical_bytes(
            resolve(HistogramQuery("purchases", ("country",), Measure.EVENTS), policy(tau, how), now=0).query
        )
        for tau, how in ((3, "clipped"), (4, "clipped"), (3, "assumed"))
    }
    assert len(fingerprints) == 3


def test_only_a_clipped_question_to_pinot_needs_the_multi_stage_engine() -> None:
    """Every other question runs on every Pinot that can be trusted."""
    clipped = resolved("SELECT channel, COUNT(*) FROM orders GROUP BY channel")
    assert (Feature.PINOT_MULTISTAGE,) == required_features(clipped, "pinot")
    assert () == required_features(clipped, "duckdb")
    plain = resolved("SELECT country, COUNT(*) FROM engagement GROUP BY country")
    assert () == required_features(plain, "pinot")
