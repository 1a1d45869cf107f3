"""Spark answers what DuckDB answers: every question has one histogram, whichever engine counts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dp_service.queries.asked_numbers import DistinctValues, Measure
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render import render
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.render.member_bounds import Weights
from dp_service.queries.render.statement import relative_statement, weighted_statement
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import MemberValue
from gris_cli.data.policy.promises import counted
from pinot_connector.engines.base import ColumnType, EngineQuery, ExpectedColumn
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.spark import SparkEngine
from tests.support.engine_queries import engine_query
from tests.support.examples import examples, long_but, long_rows_but
from tests.support.queries import quantiles, sums
from tests.support.queries.duckdb_rows import store
from tests.support.queries.lookups import expected, nasty
from tests.support.queries.strategies import (
    NOW,
    TYPES,
    VALUES,
    offering,
    policies,
    questions,
    questions_and_totals,
)
from tests.support.some import some

Engines = tuple[SparkEngine, DuckDBEngine]
# Each engine with the version of its file, which nobody changes: to state it once more is a query of its own on Spark.
Versioned = tuple[tuple[SparkEngine, str], tuple[DuckDBEngine, str]]
ROWS = 400


@pytest.fixture(scope="module")
def engines(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """Both engines over one file, in which odd values meet often and any may be missing."""
    path = tmp_path_factory.mktemp("answers") / "t.parquet"
    random = Random(8)
    rows = [
        (
            random.choice(["m1", "m2", "m3", "m4", "null", None]),
            *(random.choice([*VALUES[name], None]) for name in TYPES),
        )
        for _ in range(ROWS)
    ]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t (member VARCHAR, text VARCHAR, number BIGINT, flag BOOLEAN, day DATE)"
        )
        store(connection, "t", rows)
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    spark_engine, duckdb_engine = SparkEngine(spark, {"t": str(path)}), DuckDBEngine({"t": path})
    yield spark_engine, duckdb_engine
    spark_engine.close()
    duckdb_engine.close()


@settings(max_examples=examples(6), deadline=None, suppress_health_check=list(HealthCheck))
@given(policy=policies(), query=questions_and_totals())
def test_spark_answers_what_duckdb_answers(engines: Engines, policy: Policy, query: HistogramQuery) -> None:
    """Random policies and questions: the same elements in the same order with the same counts, NULLs and all."""
    try:
        resolution = resolve(query, policy, now=NOW)
    except (QuestionError, RefusedByPolicyError):
        assume(False)
    on_spark, on_duckdb = (
        _answer(engine, resolution, render(resolution, engine.dialect), resolution.row_limit)
        for engine in engines
    )
    assert on_duckdb == on_spark


@settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))
@given(policy=policies(), query=questions(), typical=st.integers(1, 3))
def test_spark_bounds_members_as_duckdb_does(
    engines: Engines, policy: Policy, query: HistogramQuery, typical: int
) -> None:
    """The same weights of every member, and so the same counts."""
    try:
        resolution = resolve(query, policy, now=NOW)
    except QuestionError:
        assume(False)
    bound = Weights(typical, 2, None, ())
    on_spark, on_duckdb = (
        _answer(
            engine,
            resolution,
            weighted_statement(resolution, bound, DIALECTS[engine.dialect]),
            ROWS,
            first_counts=False,
        )
        for engine in engines
    )
    assert on_duckdb == on_spark


@settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))
@given(policy=policies(), query=questions())
def test_spark_counts_first_elements_as_duckdb_does(
    engines: Engines, policy: Policy, query: HistogramQuery
) -> None:
    """Of how many members each element is the first."""
    try:
        resolution = resolve(query, policy, now=NOW)
    except QuestionError:
        assume(False)
    on_spark, on_duckdb = (
        _answer(
            engine,
            resolution,
            relative_statement(resolution, DIALECTS[engine.dialect]),
            ROWS,
            first_counts=True,
        )
        for engine in engines
    )
    assert on_duckdb == on_spark
    _, counts, first_counts, _ = on_spark
    assert len(counts) == len(first_counts)


@settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    policy=policies(),
    query=questions_and_totals(),
    offers=st.tuples(st.sampled_from(["text", "number", "day"]), st.integers(1, 3), st.integers(1, 3)),
)
def test_spark_keeps_the_values_that_duckdb_keeps(
    engines: Engines, policy: Policy, query: HistogramQuery, offers: tuple[str, int, int]
) -> None:
    """The same values of every member, by the same hash, and so the same counts of distinct ones."""
    counting = replace(query, measure=DistinctValues(offers[0]))
    try:
        resolution = resolve(counting, offering(policy, *offers), now=NOW)
    except (QuestionError, RefusedByPolicyError):
        assume(False)
    on_spark, on_duckdb = (
        _answer(engine, resolution, render(resolution, engine.dialect), resolution.row_limit)
        for engine in engines
    )
    assert on_duckdb == on_spark


def _answer(
    engine: SparkEngine | DuckDBEngine,
    resolution: Resolution,
    sql: str,
    row_limit: int,
    *,
    first_counts: bool = False,
) -> tuple[tuple[object, ...], tuple[int, ...], tuple[int, ...], list[list[str]]]:
    columns = tuple(ExpectedColumn(name, ColumnType(kind.value)) for name, kind in resolution.columns)
    query = EngineQuery("t", sql, columns, row_limit, first_counts=first_counts)
    answer = engine.run(query, engine.data_version("t"))
    engine.confirm(query, answer)
    kinds = [sorted({type(value).__name__ for value in column}) for column in answer.elements]
    return tuple(answer.elements), tuple(answer.counts), answer.first_counts, kinds


@pytest.fixture(scope="module")
def summing_engines(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Versioned]:
    """Both engines over one file of values that are hard to sum."""
    path = tmp_path_factory.mktemp("sums") / "t.parquet"
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (member VARCHAR, text VARCHAR, whole BIGINT, number DOUBLE)")
        store(connection, "t", sums.odd_rows(500))
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    spark_engine, duckdb_engine = SparkEngine(spark, {"t": str(path)}), DuckDBEngine({"t": path})
    yield (
        (spark_engine, spark_engine.data_version("t")),
        (duckdb_engine, duckdb_engine.data_version("t")),
    )
    spark_engine.close()
    duckdb_engine.close()


@pytest.mark.parametrize("place", long_but(lambda place: place % 2 == 0, range(len(sums.WHOLES))))
def test_spark_sums_what_duckdb_and_the_reference_do(summing_engines: Versioned, place: int) -> None:
    """Halves, NaN, infinities, NULL and 2^53 + 1 become the same whole numbers, of the same bounded members."""
    policy = sums.policy(whole=sums.WHOLES[place], number=sums.NUMBERS[place])
    for query in (
        sums.asked("number", "whole"),
        sums.asked("number", by=()),
        sums.asked("number", "whole", measure=Measure.EVENTS),
    ):
        resolution = resolve(query, policy, now=NOW)
        wanted = sums.reference(query, policy, sums.odd_rows(500))
        for engine, version in summing_engines:
            answer = engine.run(engine_query(resolution, engine.dialect), version)
            assert wanted == list(zip(*answer.elements, answer.counts, *answer.sums, strict=True))


@pytest.mark.parametrize(
    "infinities",
    long_but(lambda each: len(each) != 1, [(), (math.inf,), (-math.inf,), (math.inf, -math.inf)]),
)
def test_an_infinity_of_one_member_decides_nothing_on_spark(
    spark: SparkSession, tmp_path: Path, infinities: tuple[float, ...]
) -> None:
    """Spark skips parts of a file by their least and largest number, among which NaN is not: no such part may count."""
    rows = [sums.Row("ada", "a", 1, 2.0), sums.Row("bob", "a", 1, math.nan)]
    rows += [sums.Row("cy", "b", 1, math.nan)]
    rows += [sums.Row("eve", "a", 1, infinity) for infinity in infinities]
    path = tmp_path / "t.parquet"
    columns = dict(zip(sums.Row._fields, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), path)
    policy = sums.policy()
    with closing(SparkEngine(spark, {"t": str(path)})) as engine:
        version = engine.data_version("t")
        for measure in Measure:
            query = sums.asked("number", measure=measure)
            answer = engine.run(engine_query(resolve(query, policy, now=NOW), engine.dialect), version)
            wanted = sums.reference(query, policy, rows)
            assert wanted == list(zip(*answer.elements, answer.counts, *answer.sums, strict=True))


@pytest.mark.parametrize(
    ("place", "rule"),
    [(0, MemberValue.ROWS), (1, MemberValue.MEAN), (2, MemberValue.TOTAL), (2, MemberValue.LARGEST)],
)
def test_spark_finds_the_cells_that_duckdb_and_the_reference_do(
    summing_engines: Versioned, place: int, rule: MemberValue
) -> None:
    """Of the same hard values, whichever value of a member counts, by a formula and by a list of edges."""
    policy = quantiles.policy(whole=quantiles.WHOLES[place], number=quantiles.NUMBERS[place])
    for query in (quantiles.asked("number", of=rule), quantiles.asked("whole", by=(), of=rule)):
        resolution = resolve(query, policy, now=NOW)
        wanted = quantiles.reference(query, policy, sums.odd_rows(500))
        for engine, version in summing_engines:
            answer = engine.run(engine_query(resolution, engine.dialect), version)
            assert wanted == list(zip(*answer.elements, answer.counts, strict=True))


PROMISES = """
epsilon_per: 1
delta: 1e-2
tables:
  t:
    member: member
    measures: {distinct_members: true, events: {tau: 3, tau_is: assumed}}
    columns:
      text: {type: string, group_by: true, delta: 2}
      number: {type: int64, group_by: true, delta: 1000, nulls: keep, null_value: 1}
      flag: {type: bool, group_by: true, delta: 1}
      day: {type: date, group_by: true, delta: 1}
"""


def test_spark_finds_the_promises_that_duckdb_finds(engines: Engines) -> None:
    """The most values and rows of any member, with NULLs and odd texts left out or kept as questions do."""
    policy = parse_policy(PROMISES)
    (table,) = policy.tables
    on_spark, on_duckdb = (counted(engine, table, policy.currency) for engine in engines)
    assert on_duckdb == on_spark
    assert {True, False} == {each.is_kept for each in on_spark.promises}


def test_spark_counts_an_assumed_bound_as_duckdb_does(engines: Engines) -> None:
    """Of several columns together, some of which keep NULL."""
    header = "count_noise: gaussian\n" + PROMISES.replace(", delta: 2", "").replace(", delta: 1000", "")
    bounded = header.replace(", delta: 1}", "}").replace(
        "    columns:", "    contributions: {bound: assumed, delta: 3, units: 1}\n    columns:"
    )
    policy = parse_policy(bounded)
    on_spark, on_duckdb = (counted(engine, policy.tables[0], policy.currency) for engine in engines)
    assert on_duckdb == on_spark
    assert "contributions.delta" in [each.key for each in on_spark.promises]


@pytest.mark.parametrize(
    ("kept", "bounded"),
    long_rows_but(lambda kept, bounded: kept and bounded, product([False, True], repeat=2)),
)
def test_spark_counts_what_is_looked_up(
    spark: SparkSession, tmp_path: Path, *, kept: bool, bounded: bool
) -> None:
    """With a query inside and without one, with and without an element for other keys."""
    policy, rows, questions = nasty(kept=kept, bounded=bounded)
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"member": [row.member for row in rows], "text": [row.text for row in rows]}), path
    )
    engine = SparkEngine(spark, {"t": str(path)})
    version = engine.data_version("t")
    for question in some(questions):
        resolution = resolve(question, policy, now=NOW)
        answer = engine.run(engine_query(resolution, "spark"), version)
        firsts = [answer.first_counts] if resolution.parameters.counts_first_elements else []
        found = [*zip(*answer.elements, answer.counts, *firsts, strict=True)]
        assert found == expected(question, policy, rows)
