"""Spark for the owner of the data: a session of its own, and tables that are checked before they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from dp_service.partitions.spark import SparkFailedError, guarded
from gris_cli.data.errors import InputError
from pinot_connector.engines.spark.sessions import own_session, started
from pinot_connector.engines.spark.sources import require_plain_texts
from pinot_connector.errors import EngineRefused, EngineUnavailable

_Done = TypeVar("_Done")


def run_on_spark(url: str, work: Callable[[SparkSession], _Done]) -> _Done:
    """Do the work by a Spark at a URL, which ends with it, without repeating what Spark says of an error.

    Raises:
        EngineUnavailable: There is no Java, or Spark cannot be reached or failed. Other errors pass unchanged.
    """
    session = started(url)
    try:
        with own_session(session) as own:
            return guarded(lambda: work(own))
    except SparkFailedError:
        problem = "Spark could not complete the work"
    finally:
        session.stop()
    raise EngineUnavailable(problem)


def read_table(source: str, read: Callable[[], _Done]) -> _Done:
    """Return what is read of a table, without repeating what Spark says of an error: it may quote the file's content.

    CSV is refused: Spark reads on where a quote is broken and replaces bytes that are no UTF-8, so that one member's
    row could change what the rows of others mean.

    Raises:
        InputError: There is nothing to read, or the connector refuses it.
    """
    if source.lower().endswith((".csv", ".tsv")):
        raise InputError("expected Parquet or catalog:NAME on Spark; CSV is read on one machine only")
    failure = f"there is nothing to read at {source}, or it is not what its name says"
    try:
        return read()
    except EngineRefused as error:
        failure = str(error)
    except AnalysisException:
        pass
    raise InputError(failure)


def types_of(rows: DataFrame) -> dict[str, str]:
    """Return the type of each column, by Spark's name.

    Raises:
        EngineRefused: A column holds texts that are the same although a character is another one.
    """
    require_plain_texts(rows)
    return {field.name: field.dataType.simpleString() for field in rows.schema.fields}
