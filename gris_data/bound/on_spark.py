"""Bounded copies, made by Apache Spark, for tables that one machine does not hold.

The rows that are kept are those of `bounded_copies`, by the same hash. All rows of a member and period come to one
place, where elements get their rank in the member's order; rows of one element share it. That is done twice: once to
count what is kept, which the copy states, and once to write.

Spark has no way to write a key of its own into a footer. It writes its schema there, though, with what is known of each
column; so the statement is with the member's column. `read_bounded_copy` looks in both places.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from dp_service.bounding.order import salt_prefix
from gris_data.bound.bounded_copies import Bounded, BoundedCopyRequest
from gris_data.bound.source import Columns
from gris_data.bound.spark_source import (
    column,
    ended_well,
    first_day,
    is_no_utf8,
    opened,
    quoted,
)
from gris_data.errors import InputError
from pinot_connector.engines.bounded_copy import METADATA_KEY, ONE_PERIOD
from pinot_connector.engines.spark.sessions import own_session, started
from pinot_connector.engines.spark.sources import TIMESTAMP_TYPES, source_of

_DAYS = ("0001-01-01", "9999-12-31")


def bounded_copy_on_spark(source: str, out: str, asked: BoundedCopyRequest, url: str) -> Bounded:
    """Write the bounded copy of a table, by a Spark at a URL, which ends with it.

    Args:
        source: A path to Parquet, or `catalog:` and the name of a table of Spark's catalogue.
        out: The directory to make, which must not be there; it appears when it is complete, or not at all, where the
            file system can rename a directory in one step.
        asked: What is to be made.
        url: `local[4]`, `spark://host:7077` or `yarn`.

    Raises:
        InputError: The input cannot be read or bounded, changed meanwhile, or the output is there.
        EngineUnavailable: There is no Java, or Spark cannot be reached or did not complete the work.
    """
    if url.startswith("sc://"):
        raise InputError(
            "Spark Connect cannot put a finished copy in its place; use local[*], spark:// or yarn"
        )
    session = started(url)
    try:
        with own_session(session) as own:
            return ended_well(lambda: copied(own, source, out, asked))
    finally:
        session.stop()


def copied(session: SparkSession, source: str, out: str, asked: BoundedCopyRequest) -> Bounded:
    """Write the bounded copy of a table in a session that has the settings of `own_session`.

    Raises:
        InputError: See `bounded_copy_on_spark`.
    """
    rows, version = opened(session, source, asked.columns, is_all_read=True)
    complete, number = _complete(rows, asked)
    ranked = _ranked(complete, asked)
    made = _counted(ranked, number, asked)
    statement = asked.statement(made.rows_kept, made.rows_without_values).to_json()
    kept = ranked.where(sf.col(_rank(rows)) <= asked.delta_0).select(*map(quoted, rows.columns))
    with _complete_or_nothing(session, out) as unfinished:
        _stating(kept, asked.columns.member, statement).write.parquet(unfinished)
        is_whole = session.read.parquet(unfinished).count() == made.rows_kept
        if not is_whole or source_of(source).version(session) != version:
            raise InputError("the input changed while it was read")
    return made


def _complete(rows: DataFrame, asked: BoundedCopyRequest) -> tuple[DataFrame, int]:
    """Return the rows with all needed values, and how many there are with and without.

    What one machine would refuse, or write otherwise, is refused.
    """
    needed = asked.columns.needed
    texts = [field.name for field in rows.schema.fields if field.dataType.simpleString() == "string"]
    of_days = {"date", *TIMESTAMP_TYPES}
    days = [name for name in needed if rows.schema[name].dataType.simpleString() in of_days]
    wrong = {
        **{("null", name): column(name).isNull() for name in needed},
        **{("text", name): is_no_utf8(name) for name in texts},
        **{
            ("day", name): ~column(name).between(*(sf.lit(day).cast("date") for day in _DAYS))
            for name in days
        },
    }
    counted = [sf.count_if(condition).alias(str(place)) for place, condition in enumerate(wrong.values())]
    number, *counts = rows.agg(sf.count(sf.lit(1)), *counted).collect()[0]
    for (kind, name), count in zip(wrong, counts, strict=True):
        if not count or (kind == "null" and asked.drops_nulls):
            continue
        raise InputError(f"column {name}: {count} rows {_REASONS[kind]}")
    return rows.dropna(subset=[quoted(name) for name in needed]), number


_REASONS = {
    "null": "have no value; expected one, or --drop-nulls",
    "text": "hold a text that is not UTF-8",
    "day": "hold a day outside of the years 1 to 9999, which is written alike on one machine only",
}


def _ranked(rows: DataFrame, asked: BoundedCopyRequest) -> DataFrame:
    """Return the rows with the rank of each one's element among those of its member and period, from 1 on.

    Source: `dp_service.bounding.order`; hexadecimal texts are ordered as their bytes are, and texts as their code
    points are.
    """
    columns = asked.columns
    period = _period(columns)
    member, *elements = map(_text, (columns.member, *columns.elements))
    salt = sf.unhex(sf.sha2(sf.concat(_constant(salt_prefix(asked.table)), *_prefixed(period)), 256))
    salted = sf.concat(_constant((32).to_bytes(8, "big")), salt)
    order = sf.sha2(
        sf.concat(salted, *(part for text in (member, *elements) for part in _prefixed(text))), 256
    )
    together = Window.partitionBy(period, member).orderBy(order, *elements)
    return rows.withColumn(_rank(rows), sf.dense_rank().over(together))


def _counted(ranked: DataFrame, rows: int, asked: BoundedCopyRequest) -> Bounded:
    """Return how much is kept."""
    columns = asked.columns
    keys = [_text(columns.member).alias("member")]
    keys += [_period(columns).alias("period")] if columns.period else []
    rank = sf.col(ranked.columns[-1])
    held = ranked.groupBy(*keys).agg(
        sf.max(rank).alias("pairs"),
        sf.count(sf.lit(1)).alias("complete"),
        sf.count_if(rank <= asked.delta_0).alias("kept"),
    )
    of_members = held.groupBy("member").agg(
        sf.sum("complete").alias("complete"),
        sf.sum("kept").alias("kept"),
        sf.sum("pairs").alias("pairs"),
        sf.sum(sf.least("pairs", sf.lit(asked.delta_0))).alias("pairs_kept"),
        sf.max(sf.col("pairs") > asked.delta_0).cast("int").alias("is_bounded"),
    )
    sums = [sf.sum(name) for name in ("complete", "kept", "pairs", "pairs_kept", "is_bounded")]
    found = of_members.agg(*sums, sf.count(sf.lit(1))).collect()[0]
    complete, kept, pairs, pairs_kept, bounded, members = (int(each or 0) for each in found)
    return Bounded(rows, rows - complete, kept, pairs, pairs_kept, members, bounded)


def _stating(rows: DataFrame, member: str, statement: str) -> DataFrame:
    """Return the rows with the statement at the member's column, and no other statement at any column."""
    for field in rows.schema.fields:
        others = {key: value for key, value in (field.metadata or {}).items() if key != METADATA_KEY}
        own = {METADATA_KEY: statement} if field.name == member else {}
        if own or len(others) != len(field.metadata or {}):
            rows = rows.withMetadata(field.name, others | own)
    return rows


def _rank(rows: DataFrame) -> str:
    """Return a name that no column has, in whatever case."""
    name = "gris_rank"
    while name in map(str.casefold, rows.columns):
        name += "_"
    return name


def _prefixed(text: Column) -> list[Column]:
    """Return a text in UTF-8 behind its length, as eight bytes."""
    return [sf.unhex(sf.lpad(sf.hex(sf.octet_length(text).cast("bigint")), 16, "0")), text.cast("binary")]


def _constant(value: bytes) -> Column:
    return sf.unhex(sf.lit(value.hex()))


def _period(columns: Columns) -> Column:
    """Return a row's period; one of a calendar is called by its first day. The session's zone is UTC."""
    if not columns.period:
        return sf.lit(ONE_PERIOD)
    if not columns.calendar:
        return _text(columns.period)
    return first_day(columns).cast("string")


def _text(name: str) -> Column:
    return column(name).cast("string")


@contextmanager
def _complete_or_nothing(session: SparkSession, out: str) -> Iterator[str]:
    """Give the path of a directory that becomes `out` if the block ends well, and is removed if not.

    Raises:
        InputError: There is something at `out`, or its file system did not take the copy.
    """
    # Python has no door of its own to the file systems that Spark writes to.
    context = session.sparkContext
    place = context._jvm.org.apache.hadoop.fs.Path(out)  # type: ignore[union-attr]
    files = place.getFileSystem(context._jsc.hadoopConfiguration())
    if files.exists(place):
        raise InputError("there is something at the output already; remove it, or name another")
    unfinished = place.suffix(f".unfinished-{uuid.uuid4().hex}")
    try:
        yield unfinished.toString()
        if files.exists(place) or not files.rename(unfinished, place):
            raise InputError("the output could not be put in its place")
    finally:
        files.delete(unfinished, True)
