"""A table as Spark reads it for the owner of the data: checked before anything is made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from dp_service.partitions.spark import SparkFailedError, guarded
from gris_data.bound.local_times import spark_local_time
from gris_data.bound.source import Columns, require_calendar, require_different
from gris_data.errors import InputError
from pinot_connector.engines.spark.sources import (
    TIMESTAMP_TYPES,
    require_plain_texts,
    require_unbreakable,
    source_of,
)
from pinot_connector.errors import EngineRefused, EngineUnavailable

TYPES = frozenset(("string", "boolean", "date", "tinyint", "smallint", "int", "bigint"))
"""Spark's types of columns that can be members, parts of elements, or attributes."""
_SETTINGS = {
    # Points in time as the standard has them, not as Impala had them.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
_Done = TypeVar("_Done")


def opened(
    session: SparkSession, source: str, columns: Columns, *, is_all_read: bool
) -> tuple[DataFrame, str]:
    """Return all rows, checked, and the version of the data. From then on the session writes as one machine does.

    `is_all_read`: all columns will be read, and not only those that are needed.

    CSV is refused: Spark reads on where a quote is broken and replaces bytes that are no UTF-8, so that one member's
    row could change what the rows of others mean.

    Raises:
        InputError: There is nothing to read, or a column is not what it is needed for.
    """
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    require_different(columns)
    if source.lower().endswith((".csv", ".tsv")):
        raise InputError("expected Parquet or catalog:NAME on Spark; CSV is read on one machine only")
    failure = f"there is nothing to read at {source}, or it is not what its name says"
    try:
        named = source_of(source)
        version = named.version(session)
        rows = named.open(session)
        require_plain_texts(rows)
        types = types_of(rows)
        _check_types(types, columns)
        read = types if is_all_read else columns.needed
        if timestamps := [name for name in read if types[name] in TIMESTAMP_TYPES]:
            require_unbreakable(timestamps, named.breakable(session))
    except EngineRefused as error:
        failure = str(error)
    except AnalysisException:
        # What Spark says may quote the file's content.
        pass
    else:
        return rows, version
    raise InputError(failure)


def types_of(rows: DataFrame) -> dict[str, str]:
    """Return the type of each column, by Spark's name."""
    return {field.name: field.dataType.simpleString() for field in rows.schema.fields}


def _check_types(types: dict[str, str], columns: Columns) -> None:
    for name in columns.needed:
        if name not in types:
            raise InputError(f"there is no column {name}")
        if types[name] not in TYPES and not (columns.calendar and name == columns.period):
            raise InputError(f"column {name}: expected texts, integers, truth values or days")
    if columns.calendar:
        kind = types[columns.period]
        require_calendar(columns, is_day=kind == "date", is_timestamp=kind in TIMESTAMP_TYPES)


def is_no_utf8(name: str) -> Column:
    """Return whether a text is none that every engine holds."""
    return sf.coalesce(sf.encode(column(name), "UTF-8") != column(name).cast("binary"), sf.lit(False))


def first_day(columns: Columns) -> Column:
    """Return the first day of a row's period of the calendar. The session's zone is UTC."""
    day = column(columns.period)
    if columns.zone:
        day = sf.expr(spark_local_time(quoted(columns.period), columns.zone))
    return sf.date_trunc(columns.calendar, day).cast("date")


def column(name: str) -> Column:
    """Return the column of exactly that name."""
    return sf.col(quoted(name))


def quoted(name: str) -> str:
    """Return a name as Spark's SQL writes it."""
    return "`" + name.replace("`", "``") + "`"


def ended_well(work: Callable[[], _Done]) -> _Done:
    """Do the work without repeating what Spark says of an error.

    Raises:
        EngineUnavailable: Spark failed. Other errors pass unchanged.
    """
    try:
        return guarded(work)
    except SparkFailedError:
        problem = "Spark could not complete the copy"
    raise EngineUnavailable(problem)
