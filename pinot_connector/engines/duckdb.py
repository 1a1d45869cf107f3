"""DuckDB over files: the engine of the demo, of most tests, and of deployments with Parquet files."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb

from pinot_connector.engines.base import ColumnType, EngineAnswer, EngineQuery, Feature, ValueType
from pinot_connector.engines.bounded_copies import require_bounded_copy
from pinot_connector.engines.csv_files import CsvTable, is_csv
from pinot_connector.engines.duckdb_files import (
    ParquetTable,
    SharedDatabase,
    attached,
    in_memory,
    is_database,
    not_started,
    refused,
    require_version,
    translated,
)
from pinot_connector.engines.file_versions import VersionedDatabase, VersionedFile, VersionedFolder
from pinot_connector.engines.parquet import BREAKABLE, BREAKABLE_ADVICE, quoted
from pinot_connector.engines.parquet_files import is_many
from pinot_connector.engines.rows import answer_of, require_columns, require_readable, require_summable
from pinot_connector.errors import (
    EngineRefused,
    EngineUnavailable,
    GrisError,
    IncompleteAnswer,
)

DEFAULT_TIMEOUT_SECONDS = 40.0
_INTERRUPTED_AGAIN_SECONDS = 0.05

# Every value of these fits 64 signed bits, so no single row can have one that does not.
_INTEGERS = frozenset(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"))
ACCEPTED_TYPES = {
    ColumnType.STRING: frozenset(("VARCHAR",)),
    ColumnType.INT64: _INTEGERS,
    ColumnType.BOOL: frozenset(("BOOLEAN",)),
    ColumnType.DATE: frozenset(("DATE",)),
    # Not TIMESTAMP_S and TIMESTAMP_MS: DuckDB fails to convert a value of these that is out of range.
    ColumnType.TIMESTAMP: frozenset(
        ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS", "TIMESTAMPTZ_NS")
    ),
}
SUMMED_TYPES = {
    ValueType.INT64: _INTEGERS,
    ValueType.DECIMAL: frozenset(("DECIMAL", "FLOAT", "DOUBLE")),
    ValueType.DATE: frozenset(("DATE",)),
}
# What columns of a CSV file are made for a question; others are texts.
OF_TEXTS: dict[ColumnType | ValueType, str] = {
    ColumnType.INT64: "BIGINT",
    ColumnType.BOOL: "BOOLEAN",
    ColumnType.DATE: "DATE",
    ColumnType.TIMESTAMP: "TIMESTAMP",
    ValueType.INT64: "BIGINT",
    ValueType.DECIMAL: "DOUBLE",
    ValueType.DATE: "DATE",
}
# The types that a member column may have if the policy does not list it. Every value of these can be read. Of others,
# such as TIMESTAMP, TIME and JSON, DuckDB refuses a value that is out of range or malformed, and the query with it.
_MEMBER_TYPE = re.compile(
    r"(?:TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT|UTINYINT|USMALLINT|UINTEGER|UBIGINT|UHUGEINT"
    r"|FLOAT|DOUBLE|BOOLEAN|DATE|VARCHAR|UUID|BLOB|DECIMAL\(\d+,\d+\)|ENUM\(.*\))",
    re.DOTALL,
)


class DuckDBEngine:
    """Answers questions about files: Parquet, CSV, or a DuckDB database that holds a table of the same name.

    A CSV file holds texts, of which each question makes the types that the policy states (`engines.csv_files`).

    Rows of a Parquet file with a text that is not UTF-8 are left out of every question, whichever columns it names;
    they are listed when a version of the file is first queried (`engines.parquet`). A DuckDB database holds no such
    text.

    Of a DuckDB database only tables whose rows are in the file are answered from: no views, no tables with a generated
    column, and nothing while a write-ahead log is beside the file.

    The version of a table is a hash of its files. An answer is confirmed only if they had that version before and
    after the query, so a file that is replaced meanwhile gives `DataChanged`, never a mixture.

    Args:
        tables: the path of each table's file; its suffix is .parquet, .csv, .tsv, .duckdb or .db. Or of a folder, or
            a pattern, of Parquet files (`engines.parquet_files`).
        timeout_seconds: how long a query may run before it is interrupted.

    Raises:
        EngineRefused: a file has a suffix that is none of these, or is not what it says (`DataUnreadable`), a Parquet
            file has a column `file_row_number`, the table of a DuckDB database is a view or has a generated column, or
            DuckDB is older than 2.0.
        EngineUnavailable: a file is not there, or a DuckDB database has a log beside it.
    """

    dialect = "duckdb"

    def __init__(
        self, tables: Mapping[str, Path | str], *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    ) -> None:
        self._files = {table: _file_at(Path(path).resolve()) for table, path in tables.items()}
        self._timeout_seconds = timeout_seconds
        for table, file in self._files.items():
            if isinstance(file, VersionedDatabase):
                with attached(table, file.path):
                    pass  # Refused here already, and again by every query: the file may be replaced.
        self._shared = SharedDatabase(translated(in_memory, not_started))
        self._parquet = {
            table: ParquetTable(table, file, self._shared)
            for table, file in self._files.items()
            if isinstance(file, VersionedFile)
            and not isinstance(file, VersionedDatabase)
            and not is_csv(file.path)
        }
        self._csv = {
            table: CsvTable(table, file, self._shared)
            for table, file in self._files.items()
            if type(file) is VersionedFile and is_csv(file.path)
        }

    def data_version(self, table: str) -> str:
        """Returns `sha256:` and the hash of the table's file; see `Engine.data_version`."""
        return self._file(table).version()

    def tables(self) -> frozenset[str]:
        """Returns the names of the tables."""
        return frozenset(self._files)

    def check(self, query: EngineQuery) -> None:
        """Refuses a file that is not the copy that a query requires, and other requirements; see `Engine`."""
        if query.requires - {Feature.BOUNDED_COPY}:
            raise EngineRefused("DuckDB has nothing of what this query requires")
        self._require_bounded(query)

    def _require_bounded(self, query: EngineQuery) -> None:
        if Feature.BOUNDED_COPY in query.requires:
            require_bounded_copy(self._file(query.table).path, query.bounded_copy)

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Answers a query on this version of the file; see `Engine.run`."""
        file = self._file(query.table)
        require_version(file, data_version)
        # The file may be another one than when it was checked before; `confirm` sees to it that it stays this one.
        self._require_bounded(query)
        try:
            rows = self._rows(query, data_version)
        except EngineRefused:
            # A file that is replaced during a query fails with an error of DuckDB's; the version shows the cause.
            require_version(file, data_version)
            raise
        return answer_of(query, rows, data_version)

    def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        """Returns if the file is still the one that was queried; see `Engine.confirm`."""
        require_version(self._file(query.table), answer.data_version)

    @contextmanager
    def reading(
        self, table: str, types: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Gives a connection of DuckDB on which the table's name stands for exactly the rows that questions see.

        It is for the owner of the data: its answers are true counts, and nothing is charged.

        Args:
            table: the name of the table.
            types: the types of columns of a CSV file, by their casefolded names; others are texts.

        Raises:
            EngineUnavailable: the file is not there.
            EngineRefused: the engine has no such table, or the file is not what its name says.
        """
        with self._connection(table, self.data_version(table), types) as connection:
            yield connection

    def types(self, connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
        """Returns the type of each column, by DuckDB's name or as `BREAKABLE`; column names are casefolded.

        Args:
            connection: one that `reading` gave.
            table: the table that it stands for.

        Raises:
            EngineRefused: DuckDB cannot describe the table.
        """
        return translated(partial(self._types, connection, table), refused)

    def close(self) -> None:
        """Frees the in-memory database once the queries that still run have ended."""
        self._shared.close()

    def _file(self, table: str) -> VersionedFile:
        try:
            return self._files[table]
        except KeyError:
            raise EngineRefused(
                f"the engine has no such table: {table}; it has {', '.join(self._files) or 'none'}"
            ) from None

    def _rows(self, query: EngineQuery, data_version: str) -> list[tuple[Any, ...]]:
        timed_out = threading.Event()
        return translated(
            partial(self._fetched, query, data_version, timed_out), partial(_query_error, timed_out=timed_out)
        )

    def _fetched(
        self, query: EngineQuery, data_version: str, timed_out: threading.Event
    ) -> list[tuple[Any, ...]]:
        with (
            self._connection(query.table, data_version, _types_of(query)) as connection,
            self._deadline(connection, timed_out),
        ):
            rows = _fetch(connection, query, self._types(connection, query.table))
            if is_database(self._file(query.table).path):
                _require_no_collation(connection, query)
            return rows

    def _types(self, connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
        held = connection.execute(f"DESCRIBE {quoted(table)}").fetchall()
        types = {row[0].casefold(): row[1] for row in held}
        if table in self._parquet:
            types |= dict.fromkeys(map(str.casefold, self._parquet[table].unread), BREAKABLE)
        return types

    @contextmanager
    def _connection(
        self, table: str, data_version: str, of_csv: Mapping[str, str]
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        # An attached database keeps the file that it opened, even after another one took its place; only a
        # fresh instance is sure to read the file that the version is of. Views open their file every time.
        parquet, file = self._parquet.get(table), self._file(table)
        if parquet is not None:
            opened = parquet.opened(data_version)
        elif table in self._csv:
            opened = self._csv[table].opened(data_version, of_csv)
        else:
            opened = attached(table, file.path)
        with opened as connection:
            yield connection

    @contextmanager
    def _deadline(self, connection: duckdb.DuckDBPyConnection, timed_out: threading.Event) -> Iterator[None]:
        ended = threading.Event()

        def interrupt() -> None:
            timed_out.set()
            # DuckDB forgets an interruption that no statement is there for, and then begins the next one.
            while not ended.wait(_INTERRUPTED_AGAIN_SECONDS):
                connection.interrupt()

        timer = threading.Timer(self._timeout_seconds, interrupt)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            ended.set()
            timer.join()


def _file_at(path: Path) -> VersionedFile:
    if is_many(path):
        return VersionedFolder(path)
    return VersionedDatabase(path) if is_database(path) else VersionedFile(path)


def _types_of(query: EngineQuery) -> dict[str, str]:
    """Returns the types of a CSV file's columns that a query was written for."""
    kinds = [(each.name, each.held_as) for each in query.reads]
    values = [(each.name, each.type) for each in query.read_values]
    found = ((name, OF_TEXTS.get(kind)) for name, kind in (*kinds, *values) if kind is not None)
    return {name.casefold(): kind for name, kind in found if kind is not None}


def is_member_type(type_: str) -> bool:
    """Returns whether a member column that the policy does not list may be of this type."""
    return _MEMBER_TYPE.fullmatch(type_) is not None


def _require_members(query: EngineQuery, types: Mapping[str, str]) -> None:
    """Refuses a member column of a type that one row can break, such as a timestamp out of DuckDB's range."""
    for column in query.reads:
        if column.type is None and not is_member_type(types[column.name.casefold()]):
            raise EngineRefused(
                f"the column {column.name} of the table is not of a type that members can have"
            )


def _require_unbreakable(query: EngineQuery, types: Mapping[str, str]) -> None:
    """Refuses a column of a Parquet file in which one row can break the query, by the file's schema alone."""
    for column in query.reads:
        if column.type is not None and types.get(column.name.casefold()) == BREAKABLE:
            raise EngineRefused(f"the column {column.name} of the table holds {BREAKABLE_ADVICE}")


def _require_no_collation(connection: duckdb.DuckDBPyConnection, query: EngineQuery) -> None:
    """Refuses a column to which different texts are equal: one row would decide how the element is spelled."""
    for column in query.reads:
        if _is_collated(connection, query.table, column.name):
            raise EngineRefused(f"the column {column.name} of the table compares texts by a collation")


def _is_collated(connection: duckdb.DuckDBPyConnection, table: str, column: str) -> bool:
    # DuckDB does not report the collation of a column, but refuses to compare it with another one.
    compared = f"{quoted(column)}::VARCHAR = ('' COLLATE \"binary\")"
    try:
        connection.execute(f"SELECT {compared} FROM {quoted(table)} LIMIT 0")  # noqa: S608
    except duckdb.Error:
        return True
    return False


def _fetch(
    connection: duckdb.DuckDBPyConnection, query: EngineQuery, types: Mapping[str, str]
) -> list[tuple[Any, ...]]:
    _require_unbreakable(query, types)
    require_readable(query, types.items(), ACCEPTED_TYPES)
    require_summable(query, types.items(), SUMMED_TYPES)
    _require_members(query, types)
    connection.execute(query.sql)
    described = [(column[0], str(column[1])) for column in connection.description or ()]
    require_columns(query, described, ACCEPTED_TYPES)
    return connection.fetchmany(query.row_limit + 1)


def _query_error(error: Exception, timed_out: threading.Event) -> GrisError:
    if timed_out.is_set():
        return EngineUnavailable("the engine took too long")
    if isinstance(error, duckdb.Error):
        return refused(error)
    return IncompleteAnswer("the engine's answer cannot be read")
