"""Clipped events: no member changes a count by more than tau, shown on real data and on neighbouring tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import Feature, render, required_features
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery, Measure
from dp_service.queries.tables import Policy
from tests.support.examples import examples
from tests.support.queries.policies import resolved
from tests.support.queries.storing import store

PURCHASES = Path(__file__).resolve().parents[2] / "examples" / "online_retail" / "purchases.parquet"
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


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [("stock_code",), ("country",), ("country", "stock_code")])
@pytest.mark.parametrize("tau", [1, 3, 40])
def test_real_counts_are_clipped_for_each_member_and_element(dimensions: tuple[str, ...], tau: int) -> None:
    """Half a million real purchases, counted once by DuckDB and once by hand."""
    with duckdb.connect() as engine:
        engine.read_parquet(str(PURCHASES)).create_view("purchases")
        rows = engine.execute(
            f"SELECT member_id, {', '.join(dimensions)} FROM purchases WHERE member_id IS NOT NULL"  # noqa: S608
        ).fetchall()
        answered = engine.execute(sql_by(*dimensions, tau=tau)).fetchall()
    of_members = Counter((member, tuple(element)) for member, *element in rows)
    expected: dict[tuple[str, ...], int] = defaultdict(int)
    for (_, element), count in of_members.items():
        expected[element] += min(count, tau)
    assert any(count > tau for count in of_members.values())
    assert dict(expected) == {tuple(element): count for *element, count in answered}
    assert [count for *_, count in answered] == sorted(expected.values(), reverse=True)


Rows = Sequence[tuple[str | None, str, str | None]]


def counts(engine: duckdb.DuckDBPyConnection, rows: Rows, sql: str) -> Counter[object]:
    """Return the counts of a small table."""
    engine.execute(
        "CREATE OR REPLACE TABLE purchases (member_id VARCHAR, stock_code VARCHAR, country VARCHAR)"
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
def test_taking_a_member_away_changes_no_count_by_more_than_tau(
    rows: Rows, dimensions: tuple[str, ...]
) -> None:
    """However many events a member has, and in however many elements: this is what the noise is scaled to."""
    without = [row for row in rows if row[0] != "many"]
    with duckdb.connect() as engine:
        sql = sql_by(*dimensions)
        assert greatest_change(counts(engine, rows, sql), counts(engine, without, sql)) <= TAU


def test_an_assumed_tau_holds_no_member_back() -> None:
    """The property above is one of clipping: without it, the same member changes a count by all that it has."""
    rows: Rows = [("many", "x", "here")] * 40 + [("b", "x", "here")]
    with duckdb.connect() as engine:
        clipped, assumed = (
            greatest_change(
                *(counts(engine, part, sql_by("stock_code", tau_is=how)) for part in (rows, rows[-1:]))
            )
            for how in ("clipped", "assumed")
        )
    assert (clipped, assumed) == (TAU, 40)


def test_rows_without_a_member_are_nobodys_and_not_counted() -> None:
    """Together they would be one member with the events of all."""
    rows: Rows = [(None, "x", "here")] * 9 + [("b", "x", "here")] * 2
    with duckdb.connect() as engine:
        assert counts(engine, rows, sql_by("stock_code")) == {("x",): 2}


def test_the_count_is_an_integer_of_64_bits() -> None:
    """DuckDB's sum would be one of 128 bits, which the connector refuses."""
    with duckdb.connect() as engine:
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
