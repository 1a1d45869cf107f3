"""Spark answers what DuckDB answers: every question has one histogram, whichever engine counts."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import duckdb
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dp_service.bounding.order import table_salt
from dp_service.queries.errors import QuestionError
from dp_service.queries.policy import Policy
from dp_service.queries.render import render
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.render.statement import InQueryBound, bounded_statement
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from pinot_connector.engines.base import ColumnType, EngineQuery, ExpectedColumn
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.spark import SparkEngine
from tests.support.queries.drawing import NOW, TYPES, VALUES, policies, questions

Engines = tuple[SparkEngine, DuckDBEngine]
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
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    spark_engine, duckdb_engine = SparkEngine(spark, {"t": str(path)}), DuckDBEngine({"t": path})
    yield spark_engine, duckdb_engine
    spark_engine.close()
    duckdb_engine.close()


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(policy=policies(), query=questions())
def test_spark_answers_what_duckdb_answers(engines: Engines, policy: Policy, query: HistogramQuery) -> None:
    """Random policies and questions: the same elements in the same order with the same counts, NULLs and all."""
    try:
        resolution = resolve(query, policy, now=NOW)
    except QuestionError:
        assume(False)
    on_spark, on_duckdb = (
        _answer(engine, resolution, render(resolution, engine.dialect), resolution.row_limit)
        for engine in engines
    )
    assert on_duckdb == on_spark


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(policy=policies(), query=questions(), delta_0=st.integers(1, 3))
def test_spark_bounds_members_as_duckdb_does(
    engines: Engines, policy: Policy, query: HistogramQuery, delta_0: int
) -> None:
    """The same elements of every member, by the same hash, so the same counts of bounded contributions."""
    try:
        resolution = resolve(query, policy, now=NOW)
    except QuestionError:
        assume(False)
    bound = InQueryBound(delta_0, 2, table_salt("t", "all"), None)
    on_spark, on_duckdb = (
        _answer(engine, resolution, bounded_statement(resolution, bound, DIALECTS[engine.dialect]), ROWS)
        for engine in engines
    )
    assert on_duckdb == on_spark


def _answer(
    engine: SparkEngine | DuckDBEngine, resolution: Resolution, sql: str, row_limit: int
) -> tuple[object, ...]:
    columns = tuple(ExpectedColumn(name, ColumnType(kind.value)) for name, kind in resolution.columns)
    query = EngineQuery("t", sql, columns, row_limit)
    answer = engine.run(query, engine.data_version("t"))
    engine.confirm(query, answer)
    kinds = [sorted({type(value).__name__ for value in column}) for column in answer.elements]
    return answer.elements, answer.counts, kinds
