"""Private domain discovery on Spark: the domain that arrays give, for every method and however the data lie."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from dp_service.partitions import KeyedElementNoise, Method, Parameters, discover
from dp_service.partitions.spark import discover_on_spark
from gris_cli.data.domain.canonical_pairs import Source
from gris_cli.data.domain.member_data import read_pairs
from tests.engines.spark.pairs import PAIRS, SALT, SEED, parameters_of
from tests.support.examples import long_but

METHODS = [Method.WEIGHTED_GAUSSIAN, Method.SIPS, Method.MAD, Method.MAD2R]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of member and element."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.parquet"
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(f"COPY ({PAIRS}) TO '{path}' (FORMAT parquet)")
    return path


def _on_arrays(path: Path, parameters: Parameters, seed: bytes = SEED) -> tuple[tuple[str, ...], ...]:
    source = Source(path, "member", "element")
    with read_pairs(source, typical=parameters.typical, salt=SALT) as read:
        found = discover(read.contributions, parameters, KeyedElementNoise(seed, parameters, read.keys))
        return tuple(tuple(sorted(read.named(codes))) for codes in found.released)


def _session(spark: SparkSession, partitions: int) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    return session


# The test below compares what SIPS releases.
@pytest.mark.nightly
@pytest.mark.parametrize("method", METHODS)
def test_spark_releases_what_arrays_release(spark: SparkSession, path: Path, method: Method) -> None:
    """The same seed gives the same elements in the same rounds."""
    parameters = parameters_of(method)
    expected = _on_arrays(path, parameters)
    assert all(expected)
    texts = _session(spark, 2).read.parquet(str(path))
    assert expected == discover_on_spark(texts, parameters, seed=SEED, salt=SALT)


@pytest.mark.parametrize("partitions", long_but(lambda number: number == 7, [1, 7, 50]))
def test_where_the_data_lie_has_no_part_in_it(spark: SparkSession, path: Path, partitions: int) -> None:
    """However many partitions the data come in and are shuffled to."""
    parameters = parameters_of(Method.SIPS)
    texts = _session(spark, partitions).read.parquet(str(path)).repartition(partitions, "element")
    assert _on_arrays(path, parameters) == discover_on_spark(texts, parameters, seed=SEED, salt=SALT)
