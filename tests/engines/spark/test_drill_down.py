"""Spark and DuckDB count for totals what the reference counts, and give the same release."""

from __future__ import annotations

from contextlib import closing
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from pinot_connector.engines.base import Engine
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.spark import SparkEngine
from tests.support.engine_queries import engine_query
from tests.support.examples import long_rows_but
from tests.support.queries.drill_down import (
    Row,
    policy,
    questions,
    reference,
    released,
    require_released,
    rows,
    rows_of,
    totals,
)


def _is_short(question: HistogramQuery, known: bool) -> bool:
    """Tell which are tried always: totals by the first column, of rows with sums, and of members without."""
    is_first = question.totals_by == question.dimensions[0]
    is_summed = bool(question.aggregates)
    return is_first and is_summed == (question.measure is Measure.EVENTS) == known


@pytest.mark.parametrize(("question", "known"), long_rows_but(_is_short, product(questions(), [False, True])))
def test_totals_on_spark_are_those_of_duckdb(
    spark: SparkSession, tmp_path: Path, question: HistogramQuery, *, known: bool
) -> None:
    """Of contributions, of members of one shop and of rows, and sums of each; members have more elements than count."""
    data = rows()
    path = tmp_path / "t.parquet"
    columns = dict(zip(Row._fields, map(list, zip(*data, strict=True)), strict=True))
    pq.write_table(pa.table(columns), path)
    under = policy(known=known)
    resolution, counted = resolve(question, under, now=0), reference(question, under, data)
    # Spark plans its first query for long where the machine is busy.
    on_spark = SparkEngine(spark, {"t": str(path)}, timeout_seconds=300)
    engines: tuple[Engine, ...] = (DuckDBEngine({"t": path}), on_spark)
    found = []
    for engine in engines:
        with closing(engine):
            query = engine_query(resolution, engine.dialect)
            counted_there = engine.run(query, engine.data_version("t"))
            engine.confirm(query, counted_there)
            answer = rows_of(counted_there)
        assert sorted((*element, *numbers) for element, numbers in counted.items()) == sorted(answer)
        found.append(released(resolution, answer))
        require_released(resolution, found[-1], totals(question, counted))
    assert found[0].release_id == found[1].release_id
