"""No row decides whether a question about timestamps has an answer: Spark makes microseconds of what files store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

from gris_cli.data.bound.bounded_copies import BoundedCopyRequest
from gris_cli.data.bound.on_spark import copied
from gris_cli.data.bound.source import Columns
from gris_cli.data.errors import InputError
from pinot_connector.engines.base import ColumnType, Engine, EngineQuery, ReadColumn
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.spark import SparkEngine
from pinot_connector.engines.spark.sessions import own_session
from pinot_connector.errors import EngineRefused
from tests.support.texts import write_times

ORDINARY = 1_711_584_000
SQL = (
    "SELECT COUNT(DISTINCT {q}m{q}) AS {q}gris_count{q} FROM {q}t{q} "
    "WHERE {q}At{q} >= TIMESTAMP '2024-01-01 00:00:00'"
)
READS = (ReadColumn("m", None, None), ReadColumn("At", ColumnType.TIMESTAMP, None))


def _table(unit: str, latest: int, *, zone: str | None = None) -> pa.Table:
    """Ten members of whom the last has another time."""
    per_second = {"s": 1, "ms": 1000, "us": 10**6}[unit]
    times = [ORDINARY * per_second] * 9 + [latest]
    return pa.table(
        {
            "m": [f"m{number}" for number in range(10)],
            "at": pa.array(times, pa.int64()).cast(pa.timestamp(unit, tz=zone)),
        }
    )


def _run(engine: Engine, *reads: ReadColumn) -> list[int]:
    sql = SQL.format(q="`" if engine.dialect == "spark" else '"')
    query = EngineQuery("t", sql, (), 1, reads=reads or READS)
    return engine.run(query, engine.data_version("t")).counts


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("latest", [ORDINARY * 1000, 2**62])
def test_milliseconds_are_refused_by_the_schema_on_both_engines(
    spark: SparkSession, tmp_path: Path, zone: str | None, latest: int
) -> None:
    """Also where every value fits, and where the file is one of many, so that no row decides."""
    folder = tmp_path / "t"
    folder.mkdir()
    pq.write_table(_table("us", ORDINARY * 10**6, zone=zone), folder / "a.parquet")
    file = folder / "b [1].parquet"
    pq.write_table(_table("ms", latest, zone=zone), file)
    for engine in (SparkEngine(spark, {"t": str(folder)}), DuckDBEngine({"t": file})):
        with pytest.raises(
            EngineRefused, match=r"column At .* type that one row can break.*TIMESTAMP\(MICROS\)"
        ):
            _run(engine)
        engine.close()


@pytest.mark.parametrize("is_int96", [False, True])
@pytest.mark.parametrize("latest", [-(2**63), 2**62, 2**63 - 1])
def test_no_other_timestamp_of_parquet_can_break_a_question(
    spark: SparkSession, tmp_path: Path, latest: int, is_int96: bool
) -> None:
    """Whatever the row of one member holds, the others are counted."""
    pq.write_table(_table("us", latest), tmp_path / "t.parquet", use_deprecated_int96_timestamps=is_int96)
    (counted,) = _run(SparkEngine(spark, {"t": str(tmp_path / "t.parquet")}))
    assert counted in (9, 10)


def test_a_file_that_is_replaced_is_looked_at_again(spark: SparkSession, tmp_path: Path) -> None:
    """What is known of the columns is known of a version."""
    path = tmp_path / "t.parquet"
    engine = SparkEngine(spark, {"t": str(path)})
    pq.write_table(_table("us", ORDINARY * 10**6), path)
    assert _run(engine) == [10]
    pq.write_table(_table("ms", ORDINARY * 1000), path)
    with pytest.raises(EngineRefused, match="one row can break"):
        _run(engine)


@pytest.mark.parametrize("latest", [ORDINARY, 2**56])
def test_timestamps_of_orc_are_refused_by_the_schema(
    spark: SparkSession, tmp_path: Path, latest: int
) -> None:
    """ORC stores seconds, of which the largest are no microseconds; questions that do not name them are answered."""
    orc.write_table(_table("s", latest), tmp_path / "part.orc")
    spark.sql(f"CREATE TABLE times (m STRING, at TIMESTAMP) USING orc LOCATION '{tmp_path}'")
    engine = SparkEngine(spark, {"t": "catalog:times"})
    try:
        with pytest.raises(EngineRefused, match=r"column At .* one row can break"):
            _run(engine)
        sql = "SELECT COUNT(DISTINCT `m`) AS `gris_count` FROM `t`"
        counted = EngineQuery("t", sql, (), 1, reads=READS[:1])
        assert engine.run(counted, engine.data_version("t")).counts == [10]
        members = replace(counted, reads=(ReadColumn("at", None, None),))
        with pytest.raises(EngineRefused, match=r"column at .* one row can break"):
            engine.run(members, engine.data_version("t"))
    finally:
        spark.sql("DROP TABLE times")


@pytest.mark.parametrize("latest", [ORDINARY * 1000, 2**62])
def test_copies_made_by_spark_refuse_milliseconds_by_the_schema(
    spark: SparkSession, tmp_path: Path, latest: int
) -> None:
    """A timestamp may be the period of a copy, which is then of a month."""
    source = tmp_path / "rows.parquet"
    write_times(source, latest, "ms")
    with own_session(spark) as own, pytest.raises(InputError, match=r"column at .* one row can break"):
        copied(
            own,
            str(source),
            str(tmp_path / "out"),
            BoundedCopyRequest("t", Columns("who", ("what",), "at", "month", "UTC"), 2),
        )
    assert not (tmp_path / "out").exists()
