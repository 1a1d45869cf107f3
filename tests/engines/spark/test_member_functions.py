"""Spark counts members by all of their rows as plain Python does: funnels, first times and later ones."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from pinot_connector.engines.base import ColumnType, EngineQuery, ExpectedColumn
from pinot_connector.engines.spark import SparkEngine
from tests.support.queries.buckets import NOW, Row, arrow_table, policy
from tests.support.queries.of_members import QUESTIONS, Asked, days_in, random_rows


@pytest.mark.parametrize("asked", QUESTIONS, ids=str)
def test_spark_counts_each_member_by_all_of_its_rows(
    spark: SparkSession, tmp_path: Path, asked: Asked
) -> None:
    """The same integers, where nobody is bounded and where the query bounds."""
    rows = [*random_rows(Random(7)), Row(None, None, "a")]
    path = tmp_path / "t.parquet"
    pq.write_table(arrow_table(rows, asked.kind), path)
    engine = SparkEngine(spark, {"t": str(path)})
    for contributions in ("", "contributions: {bound: in_query, units: 10}"):
        under = policy(asked.kind, asked.zone, contributions=contributions, typical=60)
        resolution = resolve(asked.question, under, now=NOW)
        columns = tuple(ExpectedColumn(name, ColumnType(kind)) for name, kind in resolution.columns)
        query = EngineQuery("t", render(resolution, "spark"), columns, resolution.row_limit)
        answer = engine.run(query, engine.data_version("t"))
        found = dict(zip(zip(*answer.elements, strict=True), answer.counts, strict=True))
        assert found == days_in(asked.counted(rows))
