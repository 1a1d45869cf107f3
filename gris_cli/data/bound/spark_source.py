"""A table that Spark makes a copy of: checked before anything is made of it; and the tables that it makes meanwhile."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from gris_cli.data.bound.source import Columns, check_types, require_different
from gris_cli.data.dialects import SPARK
from gris_cli.data.errors import InputError
from gris_cli.data.spark import read_table, types_of
from pinot_connector.engines.spark.sessions import own_session
from pinot_connector.engines.spark.sources import require_unbreakable, source_of

_SETTINGS = {
    # Points in time as the standard has them, not as Impala had them.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}


def opened(session: SparkSession, source: str, columns: Columns) -> tuple[DataFrame, str]:
    """Return all rows, checked, and the version of the data. From then on the session writes as one machine does.

    Raises:
        InputError: There is nothing to read, or a column is not what it is needed for.
    """
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    require_different(columns)

    def read() -> tuple[DataFrame, str]:
        named = source_of(source)
        version = named.version(session)
        rows = named.open(session)
        types = types_of(rows)
        check_types(SPARK, types, columns)
        if timestamps := [name for name, kind in types.items() if kind in SPARK.timestamps]:
            require_unbreakable(timestamps, named.breakable(session))
        return rows, version

    return read_table(source, read)


def require_unchanged(session: SparkSession, source: str, version: str) -> None:
    """Raise InputError if the data have another version by now."""
    # In a session of its own no temporary view is in the way of what the catalogue calls its tables.
    with own_session(session) as fresh:
        if source_of(source).version(fresh) != version:
            raise InputError("the input changed while it was read")


class SparkTables:
    """Temporary views of a session; see `CopyEngine`. What they hold is computed once, and kept by Spark's workers."""

    dialect = SPARK

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._held: dict[str, DataFrame] = {}

    def table(self, name: str, query: str, what: str = "") -> None:
        """See `CopyEngine.table`."""
        rows = self.session.sql(query).persist()
        self._held[name] = rows
        rows.createOrReplaceTempView(name)

    def drop(self, name: str) -> None:
        """See `CopyEngine.drop`. Spark computes a table when it is needed first, so others wait for the end with it."""

    def close(self) -> None:
        """Drop all tables."""
        for name, rows in self._held.items():
            self.session.catalog.dropTempView(name)
            rows.unpersist()

    def row(self, query: str) -> tuple[Any, ...]:
        """See `CopyEngine.row`."""
        (found,) = self.rows(query)
        return found

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """See `CopyEngine.rows`."""
        return [tuple(row) for row in self.session.sql(query).collect()]

    def types(self, name: str) -> dict[str, str]:
        """See `CopyEngine.types`."""
        return types_of(self.session.table(name))
