"""Prepared copies, made by Apache Spark, for tables that one machine does not hold.

Spark has no way to write a key of its own into a footer. It writes its schema there, though, with what is known of each
column; so the statement is with the member's column. `read_bounded_copy` looks in both places.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from gris_cli.data.bound.bounded_copies import (
    COPY,
    Bounded,
    BoundedCopyRequest,
    counted,
    counts_of_copy,
    is_complete,
    weighted_rows,
)
from gris_cli.data.bound.source import ROWS, odd_texts
from gris_cli.data.bound.spark_source import opened, require_unchanged
from gris_cli.data.dialects import SPARK, is_day
from gris_cli.data.errors import InputError
from gris_cli.data.spark import run_on_spark, types_of
from pinot_connector.engines.bounded_copy import METADATA_KEY


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
    return run_on_spark(url, lambda session: copied(session, source, out, asked))


def copied(session: SparkSession, source: str, out: str, asked: BoundedCopyRequest) -> Bounded:
    """Write the bounded copy of a table in a session that has the settings of `own_session`.

    Raises:
        InputError: See `bounded_copy_on_spark`.
    """
    rows, version = opened(session, source, asked.columns)
    rows.createOrReplaceTempView(ROWS)
    given, complete = _checked(session, types_of(rows), asked)
    kept = session.sql(weighted_rows(SPARK, asked)).persist()
    try:
        kept.createOrReplaceTempView(COPY)
        (of_copy,) = session.sql(counts_of_copy(SPARK, asked.columns)).collect()
        made = counted(given, complete, of_copy)
        with _complete_or_nothing(session, out) as unfinished:
            _stating(kept, asked.columns.member, asked.statement(made).to_json()).write.parquet(unfinished)
            if session.read.parquet(unfinished).count() != made.pairs:
                raise InputError("the input changed while it was read")
            require_unchanged(session, source, version)
    finally:
        kept.unpersist()
    return made


def _checked(session: SparkSession, types: dict[str, str], asked: BoundedCopyRequest) -> tuple[int, int]:
    """Return how many rows there are, and how many have all needed values.

    What one machine would refuse, or write otherwise, is refused.
    """
    values = {name: f"given.{SPARK.quoted(name)}" for name in asked.columns.needed}
    days = [name for name in values if types[name] in {SPARK.day, *SPARK.timestamps}]
    wrong = {
        **{("null", name): f"{value} IS NULL" for name, value in values.items()},
        **{("text", name): condition for name, condition in odd_texts(SPARK, types).items()},
        **{("day", name): f"NOT {is_day(values[name])}" for name in days},
    }
    conditions = [is_complete(SPARK, asked.columns), *wrong.values()]
    counted = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in conditions)
    (found,) = session.sql(f"SELECT count(*), {counted} FROM {ROWS} AS given").collect()  # noqa: S608 - quoted
    rows, complete, *counts = found
    for (kind, name), count in zip(wrong, counts, strict=True):
        if count and not (kind == "null" and asked.drops_nulls):
            raise InputError(f"column {name}: {count} rows {_REASONS[kind]}", remedy=_REMEDIES.get(kind, ""))
    return rows, complete


_REASONS = {
    "null": "have no value; expected one, or that such rows are left out",
    "text": "hold a text that is not UTF-8",
    "day": "hold a day outside of the years 1 to 9999, which is written alike on one machine only",
}
_REMEDIES = {"null": "drop_nulls"}


def _stating(rows: DataFrame, member: str, statement: str) -> DataFrame:
    """Return the rows with the statement at the member's column, and no other statement at any column."""
    for field in rows.schema.fields:
        others = {key: value for key, value in (field.metadata or {}).items() if key != METADATA_KEY}
        own = {METADATA_KEY: statement} if field.name == member else {}
        if own or len(others) != len(field.metadata or {}):
            rows = rows.withMetadata(field.name, others | own)
    return rows


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
