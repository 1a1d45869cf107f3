"""Spark puts rows into the buckets and parts of Python's calendar, whatever zone the application's session has."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.elements import date_of
from dp_service.queries.resolution import resolve
from dp_service.queries.time_parts import TimePart
from pinot_connector.engines.base import ColumnType
from pinot_connector.engines.spark import SparkEngine
from tests.support.engine_queries import engine_query
from tests.support.examples import long_rows_but
from tests.support.queries.buckets import (
    MICROSECOND,
    NOW,
    TYPES,
    UTC,
    Row,
    TimeFunction,
    arrow_table,
    asked,
    counted,
    functions,
    members_of_hours,
    policy,
    sorted_by,
    sorted_in,
)

HOUR = datetime.timedelta(hours=1)
START, END = (datetime.datetime(2023, 12, 20, 5, tzinfo=UTC), datetime.datetime(2024, 11, 2, 9, tzinfo=UTC))
EDGES = [
    datetime.datetime(2024, 3, 31, 1, tzinfo=UTC),
    datetime.datetime(2024, 10, 27, 1, tzinfo=UTC),
    *(datetime.datetime(2024, month, 1, tzinfo=UTC) for month in range(1, 11)),
]


def of_the_day_or_of_timestamps(kind: str, length: TimeFunction) -> bool:
    """Return whether a case is short: a type becomes days in one way, and days become buckets in another."""
    return length is BucketLength.DAY or kind == "timestamps"


@pytest.mark.parametrize(
    ("kind", "length"),
    long_rows_but(of_the_day_or_of_timestamps, [(kind, each) for kind in TYPES for each in functions(kind)]),
)
def test_spark_counts_in_the_buckets_of_the_calendar(
    spark: SparkSession, tmp_path: Path, kind: str, length: TimeFunction
) -> None:
    """In every type of column, around changes of clocks and ends of months and years; and where parts are compared."""
    times = [START + 31 * HOUR * step for step in range(-3, 250)]
    times += [
        edge + hours * HOUR - more * MICROSECOND for edge in EDGES for hours in (-2, -1, 0) for more in (0, 1)
    ]
    rows = [Row(str(place), time) for place, time in enumerate(times)]
    path = tmp_path / "t.parquet"
    pq.write_table(arrow_table(rows, kind), path)
    start, end = (START.replace(hour=0), END.replace(hour=0)) if "days" in kind else (START, END)
    under = policy(kind, "UTC" if "days" in kind else "Europe/Berlin", contributions="")
    engine = SparkEngine(spark, {"t": str(path)})
    query = engine_query(resolve(asked(length, start, end), under, now=NOW), "spark")
    answer = engine.run(query, engine.data_version("t"))
    is_day = query.columns[0].type is ColumnType.DATE
    values = [date_of(int(each)) if is_day else int(each) for each in answer.elements[0]]
    found = dict(zip(values, answer.counts, strict=True))
    assert found == counted(rows, length, (start, end), "Europe/Berlin", kind)
    if not isinstance(length, TimePart):
        return
    of_hours = members_of_hours(rows, (start, end), "Europe/Berlin", TYPES[kind].step)
    for question, wanted in zip(sorted_by(length, start, end), sorted_in(length, of_hours), strict=True):
        query = engine_query(resolve(question, under, now=NOW), "spark")
        answer = engine.run(query, engine.data_version("t"))
        assert sorted(zip(*answer.elements, answer.counts, strict=True)) == wanted
