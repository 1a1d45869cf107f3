"""Spark keeps the promises of an engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pinot_connector.engines.spark import SparkEngine
from tests.support.engine_conformance import (
    OTHER_ROWS,
    ROWS,
    EngineConformance,
    HeldTable,
    TimestampConformance,
)
from tests.support.stored_rows import write_parquet


class TestSpark(EngineConformance):
    """One Parquet file, replaced by another; its timestamps have a zone."""

    every = 5

    @pytest.fixture
    def held(self, spark: SparkSession, tmp_path: Path) -> Iterator[HeldTable]:
        """The rows in a Parquet file."""
        path, zoned = tmp_path / "visits.parquet", "TIMESTAMP WITH TIME ZONE"
        write_parquet(path, ROWS, zoned)
        with closing(SparkEngine(spark, {"visits": str(path)})) as engine:
            yield HeldTable(engine, "visits", lambda: write_parquet(path, OTHER_ROWS, zoned))


class TestSparkWithoutZones(TimestampConformance):
    """What is about time, with timestamps that have no zone, which Spark keeps apart."""

    every = 5

    @pytest.fixture
    def held(self, spark: SparkSession, tmp_path: Path) -> Iterator[HeldTable]:
        """The rows in a Parquet file."""
        path = tmp_path / "visits.parquet"
        write_parquet(path, ROWS)
        with closing(SparkEngine(spark, {"visits": str(path)})) as engine:
            yield HeldTable(engine, "visits", lambda: write_parquet(path, OTHER_ROWS))
