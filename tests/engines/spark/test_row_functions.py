"""Spark makes of numbers and texts what Python makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dp_service.queries.resolution import Resolution
from pinot_connector.engines.spark import SparkEngine
from tests.support.engine_queries import engine_query
from tests.support.queries.row_functions import FUNCTIONS, arrow_table, expected, resolved


def answered(engine: SparkEngine, resolution: Resolution) -> dict[Any, int]:
    """Return what Spark counts."""
    answer = engine.run(engine_query(resolution, "spark"), engine.data_version(resolution.query.table))
    return dict(zip(answer.elements[0], answer.counts, strict=True))


# By day every third one: each is a query of its own.
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.nightly)])
def test_functions_of_a_row_are_those_of_python(spark: SparkSession, tmp_path: Path, every: int) -> None:
    """Every bin and every part of a text."""
    pq.write_table(arrow_table(), tmp_path / "t.parquet")
    engine = SparkEngine(spark, {"t": str(tmp_path / "t.parquet")})
    for function in FUNCTIONS[::every]:
        assert answered(engine, resolved(function)) == expected(function), function
