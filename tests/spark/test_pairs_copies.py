"""A pairs copy on Spark has the counts of the raw table, and one that was loaded twice answers nothing."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import TimeRange
from dp_service.queries.policy import read_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.spark import SparkEngine
from pinot_connector.errors import EngineRefused
from tests.support.engine_queries import engine_query
from tests.support.pairs_copies import MONTHS, make, mixed, policy_text, questions, random_rows, write
from tests.support.some import some


def test_spark_counts_a_pairs_copy_that_is_its_manifests(spark: SparkSession, tmp_path: Path) -> None:
    """Its directory of periods is the table."""
    make(write(tmp_path / "visits.parquet", random_rows(500, seed=9)), tmp_path / "copy")
    policy = read_policy(policy_text("copy/manifest.json").encode(), str(tmp_path / "policy.yaml")).policy
    bare = replace(policy, tables=tuple(each.model_copy(update={"prepared": None}) for each in policy.tables))
    duck = DuckDBEngine({"visits": tmp_path / "visits.parquet"})
    periods = tmp_path / "copy" / "periods"
    engine = SparkEngine(spark, {"visits_pairs": str(periods)})
    asked = questions(Random(2))
    for query in some(asked):
        of_copy = engine_query(resolve(query, policy, now=0), "spark")
        engine.check(of_copy)
        found = engine.run(of_copy, engine.data_version("visits_pairs"))
        raw = engine_query(resolve(query, bare, now=0), "duckdb")
        expected = duck.run(raw, duck.data_version("visits"))
        assert (found.elements, found.counts) == (expected.elements, expected.counts)
    for each in list(periods.glob("*.parquet")):
        shutil.copy(each, periods / f"again-{each.name}")
    with pytest.raises(EngineRefused, match="does not hold what its manifest says"):
        engine.check(engine_query(resolve(asked[0], policy, now=0), "spark"))
    engine.close()
    duck.close()


def test_spark_asks_nothing_of_parts_of_two_builds(spark: SparkSession, tmp_path: Path) -> None:
    """A period of an earlier build took the place of one that has as many rows; without it, the copy answers."""
    other = mixed(tmp_path, random_rows(200, seed=9))
    policy = read_policy(policy_text("copy/manifest.json").encode(), str(tmp_path / "policy.yaml")).policy
    whole = HistogramQuery(
        "visits", ("what",), Measure.DISTINCT_MEMBERS, (), TimeRange(None, MONTHS[-1]), k=3
    )
    query = engine_query(resolve(whole, policy, now=0), "spark")
    for copy, is_whole in ((tmp_path / "copy", True), (other, False)):
        engine = SparkEngine(spark, {"visits_pairs": str(copy / "periods")})
        with nullcontext() if is_whole else pytest.raises(EngineRefused, match="parts of another copy"):
            engine.check(query)
        engine.close()
