"""Runs rendered SQL on an Apache Spark and accepts only whole answers on one version of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event
from typing import TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession

from pinot_connector.engines.base import ColumnType, EngineAnswer, EngineQuery, Feature, ValueType
from pinot_connector.engines.rows import answer_of, require_columns, require_readable, require_summable
from pinot_connector.engines.spark.sessions import deadline, own_session, require_session, started
from pinot_connector.engines.spark.sources import (
    TIMESTAMP_TYPES,
    Source,
    require_plain_texts,
    require_unbreakable,
    source_of,
)
from pinot_connector.errors import (
    DataChanged,
    DataUnreadable,
    EngineGone,
    EngineRefused,
    EngineUnavailable,
    GrisError,
)

DEFAULT_TIMEOUT_SECONDS = 40.0
# Spark makes room for as many rows as a limit says, twice. A larger limit is left out, and rows are counted here.
_LARGEST_LIMIT = 200_000

_ACCEPTED_TYPES = {
    ColumnType.STRING: frozenset(("string",)),
    ColumnType.INT64: frozenset(("tinyint", "smallint", "int", "bigint")),
    ColumnType.BOOL: frozenset(("boolean",)),
    ColumnType.DATE: frozenset(("date",)),
    ColumnType.TIMESTAMP: TIMESTAMP_TYPES,
}
_SUMMED_TYPES = {
    ValueType.INT64: _ACCEPTED_TYPES[ColumnType.INT64],
    ValueType.DECIMAL: frozenset(("decimal", "float", "double")),
    ValueType.DATE: _ACCEPTED_TYPES[ColumnType.DATE],
}
# What Spark calls files that are none of their format.
_NO_FOOTER = ("CANNOT_READ_FILE_FOOTER", "UNABLE_TO_INFER_SCHEMA")
_Answer = TypeVar("_Answer")


class SparkEngine:
    """Answers questions about Parquet files and tables of a catalogue, on a Spark that the application runs.

    Every question has a session of its own, with fixed settings under which a query has one meaning; the settings of
    the application's session do not matter and stay as they are.

    The version of a table is a hash over the list of its files. An answer is confirmed only if the list was the same
    before and after the query. Thread-safe.

    Args:
        session: a session of PySpark, classic or Spark Connect (that from PySpark 4.3 on).
        tables: for each table the path of a Parquet file or directory, or `catalog:NAME`.
        timeout_seconds: how long a query may run before it is interrupted in Spark.

    Raises:
        EngineRefused: this is no session, or a table names nothing.
    """

    dialect = "spark"

    def __init__(
        self,
        session: SparkSession,
        tables: Mapping[str, str],
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        require_session(session)
        self._session = session
        self._sources = {table: source_of(text) for table, text in tables.items()}
        self._timeout_seconds = timeout_seconds
        # By table: a version, and the columns in which one row can break a query on it.
        self._breakable: dict[str, tuple[str, frozenset[str]]] = {}
        self._owns_session = False
        self._closed = False

    @classmethod
    def at(cls, url: str, tables: Mapping[str, str]) -> SparkEngine:
        """Returns an engine with a session of its own, which `close` ends.

        Args:
            url: `local[4]`, `spark://host:7077`, `yarn`, or `sc://host:15002` for Spark Connect.
            tables: as above.

        Raises:
            EngineUnavailable: there is no Java, or Spark cannot be reached.
            EngineRefused: a table names nothing.
        """
        engine = cls(started(url), tables)
        engine._owns_session = True
        return engine

    def data_version(self, table: str) -> str:
        """Returns `files:` and the hash of the list of the table's files; see `Engine.data_version`."""
        source = self._source(table)
        return self._on_spark(lambda session: _version(session, source))

    def check(self, query: EngineQuery) -> None:
        """Refuses every requirement; see `Engine.check`."""
        if Feature.BOUNDED_COPY in query.requires:
            raise EngineRefused(
                "Spark does not read what a prepared bounded copy says of itself; on Spark the query can bound members "
                "(contributions.bound: in_query)"
            )
        if query.requires:
            raise EngineRefused("Spark has nothing of what this query requires")

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Answers a query on this version of the files; see `Engine.run`."""
        source = self._source(query.table)
        rows = self._on_spark(lambda session: self._rows(session, source, query, data_version))
        return answer_of(query, rows, data_version)

    def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        """Returns if the files are still the ones that were queried; see `Engine.confirm`."""
        if self.data_version(query.table) != answer.data_version:
            raise DataChanged("the data changed while the question was answered")

    def close(self) -> None:
        """Ends the session if the engine started it; the application's own goes on."""
        if self._owns_session and not self._closed:
            self._session.stop()
        self._closed = True

    def _source(self, table: str) -> Source:
        try:
            return self._sources[table]
        except KeyError:
            raise EngineRefused(f"the engine has no such table: {table}") from None

    def _on_spark(self, work: Callable[[SparkSession], _Answer]) -> _Answer:
        """Does work in a session of its own, and translates errors."""
        if self._closed:
            raise EngineUnavailable("the engine is closed")
        timed_out = Event()
        try:
            with self._asking() as (session, timed_out):
                return work(session)
        except GrisError:
            raise
        except Exception as error:
            translated = _translated(error, timed_out)
        # Raised outside of `except`: Spark's own error holds the query and values of the data, and would be attached to
        # this one as its context.
        raise translated

    def _rows(
        self, session: SparkSession, source: Source, query: EngineQuery, data_version: str
    ) -> list[Row]:
        _require_version(session, source, data_version)
        try:
            table = _opened(session, source, query.table)
            held = [(field.name, field.dataType.simpleString()) for field in table.schema.fields]
            _require_types(query, table, held)
            self._require_unbreakable(session, source, query, held, data_version)
            return _collected(session, table, query)
        except GrisError:
            raise
        except Exception:
            # Files that are replaced during a query make Spark fail with an error of its own; their list shows the
            # cause.
            _require_version(session, source, data_version)
            raise

    def _require_unbreakable(
        self,
        session: SparkSession,
        source: Source,
        query: EngineQuery,
        held: list[tuple[str, str]],
        data_version: str,
    ) -> None:
        """Refuses timestamps of which one can break the query, by the schemas of the files alone."""
        timestamps = {name.casefold() for name, kind in held if kind in TIMESTAMP_TYPES}
        read = [column.name for column in query.reads if column.name.casefold() in timestamps]
        if not read:
            return
        known = self._breakable.get(query.table)
        if known is None or known[0] != data_version:
            known = (data_version, source.breakable(session))
            _require_version(session, source, data_version)
            self._breakable[query.table] = known
        require_unbreakable(read, known[1])

    @contextmanager
    def _asking(self) -> Iterator[tuple[SparkSession, Event]]:
        with own_session(self._session) as session, deadline(session, self._timeout_seconds) as timed_out:
            yield session, timed_out


def _version(session: SparkSession, source: Source) -> str:
    try:
        return source.version(session)
    except AnalysisException:
        missing = EngineGone("the table's data cannot be found")
    raise missing


def _opened(session: SparkSession, source: Source, table: str) -> DataFrame:
    """Returns the table's rows, of which Spark has read the schema from the files' footers, and no row."""
    try:
        return source.open(session)
    except Exception as error:
        if not any(condition in str(error) for condition in _NO_FOOTER):
            raise
    raise DataUnreadable(f"the data of the table {table} are no Parquet files, or one of them ends early")


def _require_types(query: EngineQuery, table: DataFrame, held: list[tuple[str, str]]) -> None:
    require_plain_texts(table)
    require_readable(query, held, _ACCEPTED_TYPES)
    require_summable(query, held, _SUMMED_TYPES)


def _collected(session: SparkSession, table: DataFrame, query: EngineQuery) -> list[Row]:
    table.createOrReplaceTempView(query.table)
    answer = session.sql(query.sql)
    described = [(column.name, column.dataType.simpleString()) for column in answer.schema.fields]
    require_columns(query, described, _ACCEPTED_TYPES)
    if query.row_limit > _LARGEST_LIMIT:
        return answer.collect()
    return answer.limit(query.row_limit + 1).collect()


def _require_version(session: SparkSession, source: Source, data_version: str) -> None:
    if _version(session, source) != data_version:
        raise DataChanged("the data changed while the question was answered")


def _translated(error: Exception, timed_out: Event) -> GrisError:
    if timed_out.is_set():
        return EngineUnavailable("the engine took too long")
    if isinstance(error, AnalysisException):
        return EngineRefused("the engine refused the query")
    return EngineUnavailable("Spark could not complete the query")
