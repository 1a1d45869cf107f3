"""Private domain discovery on Spark: the domain that arrays give, for every method and however the data lie."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from dp_service.partitions import KeyedElementNoise, Method, Parameters, discover
from dp_service.partitions.spark import discover_on_spark
from gris_cli.domain.reading import Source, read_pairs

SEED = bytes(range(32))
SALT = b"a public salt"
DELTA_0 = 5

# Popular and rare elements, members with one element and with sixty, odd texts, and pairs that repeat.
_PAIRS = """
    SELECT 'm' || (i % 700) AS member,
           CASE i % 11 WHEN 0 THEN 'é😀' || (i % 3) WHEN 1 THEN '' ELSE 'e' || floor(pow(random(), 3) * 400)::INT END
           AS element
    FROM range(6000) r(i)
    UNION ALL SELECT 'm' || (i % 700), 'e' || (i % 40) FROM range(3000) r(i)
    UNION ALL SELECT 'many', 'x' || i FROM range(60) r(i)
"""


@pytest.fixture(scope="module")
def pairs() -> pa.Table:
    """Pairs of member and element."""
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        return connection.execute(_PAIRS).to_arrow_table()


@pytest.fixture(scope="module")
def path(pairs: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same pairs as a Parquet file."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.parquet"
    pa.parquet.write_table(pairs, path)
    return str(path)


def _parameters(method: Method) -> Parameters:
    return Parameters(method, rho=Fraction(1, 2), delta=Fraction(1, 10**5), delta_0=DELTA_0)


def _on_arrays(pairs: pa.Table, parameters: Parameters, seed: bytes = SEED) -> tuple[tuple[str, ...], ...]:
    source = Source(pairs, "member", "element")
    with read_pairs(source, delta_0=parameters.delta_0, salt=SALT) as read:
        found = discover(read.contributions, parameters, KeyedElementNoise(seed, parameters, read.keys))
        return tuple(tuple(sorted(read.named(codes))) for codes in found.released)


def _session(spark: SparkSession, partitions: int) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    return session


@pytest.mark.parametrize("method", [Method.WEIGHTED_GAUSSIAN, Method.SIPS, Method.MAD, Method.MAD2R])
def test_spark_releases_what_arrays_release(
    spark: SparkSession, pairs: pa.Table, path: str, method: Method
) -> None:
    """The same seed gives the same elements in the same rounds."""
    parameters = _parameters(method)
    expected = _on_arrays(pairs, parameters)
    assert all(expected)
    texts = _session(spark, 2).read.parquet(path)
    assert expected == discover_on_spark(texts, parameters, seed=SEED, salt=SALT)


@pytest.mark.parametrize("partitions", [1, 7, 50])
def test_where_the_data_lie_has_no_part_in_it(
    spark: SparkSession, pairs: pa.Table, path: str, partitions: int
) -> None:
    """However many partitions the data come in and are shuffled to."""
    parameters = _parameters(Method.SIPS)
    texts = _session(spark, partitions).read.parquet(path).repartition(partitions, "element")
    assert _on_arrays(pairs, parameters) == discover_on_spark(texts, parameters, seed=SEED, salt=SALT)
