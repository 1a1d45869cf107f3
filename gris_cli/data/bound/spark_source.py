"""A table that Spark makes a copy of: checked before anything is made of it."""

from __future__ import annotations

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
        if timestamps := [name for name in columns.needed if types[name] in SPARK.timestamps]:
            require_unbreakable(timestamps, named.breakable(session))
        return rows, version

    return read_table(source, read)


def require_unchanged(session: SparkSession, source: str, version: str) -> None:
    """Raise InputError if the data have another version by now."""
    # In a session of its own no temporary view is in the way of what the catalogue calls its tables.
    with own_session(session) as fresh:
        if source_of(source).version(fresh) != version:
            raise InputError("the input changed while it was read")
