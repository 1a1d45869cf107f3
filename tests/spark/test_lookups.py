"""Spark counts what is looked up as the reference does."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from pinot_connector.engines.base import ColumnType, EngineQuery, ExpectedColumn
from pinot_connector.engines.spark import SparkEngine
from tests.support.examples import long_rows_but
from tests.support.queries.lookups import expected, nasty
from tests.support.queries.strategies import NOW
from tests.support.some import some


@pytest.mark.parametrize(
    ("kept", "bounded"),
    long_rows_but(lambda kept, bounded: kept != bounded, product([False, True], repeat=2)),
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
        columns = tuple(ExpectedColumn(name, ColumnType(kind)) for name, kind in resolution.columns)
        query = EngineQuery("t", render(resolution, "spark"), columns, resolution.row_limit)
        answer = engine.run(query, version)
        found = [*zip(*answer.elements, answer.counts, strict=True)]
        assert found == expected(question, policy, rows)
