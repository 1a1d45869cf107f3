"""How the DuckDB engine opens files: databases that are attached, and Parquet by the rows that questions see."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import duckdb

from pinot_connector.engines.file_versions import (
    DATABASE_SUFFIXES,
    VersionedFile,
    require_no_log,
    unreadable,
)
from pinot_connector.engines.parquet import (
    list_unreadable,
    literal,
    quoted,
    readable,
    reads_any_text,
    require_alike,
    unread_columns,
)
from pinot_connector.engines.parquet_files import ParquetFiles, is_many, is_parquet
from pinot_connector.errors import DataChanged, DataUnreadable, EngineRefused, EngineUnavailable, GrisError

_Result = TypeVar("_Result")


class SharedDatabase:
    """An in-memory database for many queries at once, each on a cursor of its own.

    DuckDB refuses to close a database while a query runs on it, so the last query closes it.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._lock = threading.Lock()
        self._users = 0
        self._closed = False

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Gives a connection of its own; closed again afterwards."""
        with self._lock:
            if self._closed:
                raise EngineUnavailable("the engine is closed")
            cursor = self.connection.cursor()
            self._users += 1
        try:
            yield cursor
        finally:
            cursor.close()
            with self._lock:
                self._users -= 1
                self._close_if_idle()

    def close(self) -> None:
        """Closes the database once no query runs on it."""
        with self._lock:
            self._closed = True
            self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._closed and not self._users:
            self.connection.close()


class ParquetTable:
    """Parquet files, and the list of their rows that no question sees, made once for each version of the files."""

    def __init__(self, name: str, file: VersionedFile, shared: SharedDatabase) -> None:
        _require_readable_parquet(shared.connection, file)
        self._name = quoted(name)
        self._file = file
        self._shared = shared
        self._lock = threading.Lock()
        self._lists = 0
        self._listed: tuple[str, str, list[str], ParquetFiles] | None = None

    @contextmanager
    def opened(self, data_version: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """Gives a connection on which the table's name stands for the rows that questions see."""
        with self._shared.cursor() as connection:
            unreadable, unread, files = self._list(connection, data_version)
            view = f"CREATE TEMP VIEW {self._name} AS {readable(files, unreadable, unread)}"
            execute_all(connection, view, to_error=refused)
            yield connection

    @property
    def unread(self) -> list[str]:
        """The columns that no question may read, of the version that was opened last; the views do not have them."""
        # Without the lock: listing another version holds it for long.
        listed = self._listed
        return [] if listed is None else listed[2]

    def _list(
        self, connection: duckdb.DuckDBPyConnection, data_version: str
    ) -> tuple[str, list[str], ParquetFiles]:
        """Returns the list of this version, the columns that no question may read, and the files.

        No deadline ends it: if the question times out, later ones use the list.
        """
        with self._lock:
            if self._listed is None or self._listed[0] != data_version:
                self._listed = (data_version, *self._new_list(connection, data_version))
            return self._listed[1:]

    def _new_list(
        self, connection: duckdb.DuckDBPyConnection, data_version: str
    ) -> tuple[str, list[str], ParquetFiles]:
        if self._listed is not None:
            execute_all(connection, f"DROP TABLE {self._listed[1]}", to_error=refused)
            self._listed = None
        self._lists += 1
        table = quoted(f"{self._lists} of {self._name}")
        before = self._file.stamp()
        require_version(self._file, data_version)
        files = self._file.files()
        to_error = partial(_unlisted, self._file.path)
        translated(partial(require_alike, connection, files), to_error)
        translated(partial(list_unreadable, connection, files, table), to_error)
        unread = translated(partial(unread_columns, connection, files), to_error)
        if self._file.stamp() != before:
            execute_all(connection, f"DROP TABLE {table}", to_error=refused)
            raise DataChanged("the data changed while the question was answered")
        return table, unread, files


def in_memory() -> duckdb.DuckDBPyConnection:
    """Returns a database in memory that keeps nothing of files, and whose timestamps are in UTC."""
    connection = duckdb.connect(":memory:")
    # A cache of file contents could answer from a file that has been replaced.
    connection.execute("SET enable_external_file_cache = false")
    # For all cursors: what a query calls a timestamp is in UTC, also beside a column with a zone.
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection


def refused(_: Exception) -> GrisError:
    """Returns the error of a query that DuckDB does not take."""
    return EngineRefused("the engine refused the query")


def not_started(_: Exception) -> GrisError:
    """Returns the error of a DuckDB that does not start."""
    return EngineUnavailable("DuckDB cannot be started")


def _unlisted(path: Path, error: Exception) -> GrisError:
    is_file_at_fault = not isinstance(error, duckdb.OutOfMemoryException | duckdb.InterruptException)
    return unreadable(path) if is_file_at_fault else refused(error)


def is_database(path: Path) -> bool:
    """Returns whether a file is a DuckDB database, by its suffix, which folders may have too."""
    return path.suffix in DATABASE_SUFFIXES and not is_many(path)


def _require_readable_parquet(connection: duckdb.DuckDBPyConnection, file: VersionedFile) -> None:
    path = file.path
    if not is_parquet(path):
        kind = path.suffix or "without a suffix"
        raise EngineRefused(
            f"a data file must be Parquet (.parquet), CSV (.csv, .tsv) or DuckDB (.duckdb, .db), not {kind}"
        )
    if not translated(reads_any_text, not_started):
        raise EngineRefused(
            "Parquet files need DuckDB 2.0 or later, which reads past a text that is not UTF-8"
        )
    translated(partial(require_alike, connection, file.files()), lambda _: unreadable(path))


@contextmanager
def attached(table: str, path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Gives a connection on which the table's name stands for the table of that name in a database file.

    Raises:
        EngineRefused: it is a view, has a generated column, or is not there, or the file is no database.
        EngineUnavailable: the file is not there, or a log is beside it.
    """
    with closing(translated(in_memory, not_started)) as connection:
        attach_database(connection, table, path)
        view = f"CREATE VIEW {quoted(table)} AS SELECT * FROM source.{quoted(table)}"  # noqa: S608
        execute_all(connection, view, to_error=partial(_no_table, table, path))
        yield connection


def _no_table(table: str, path: Path, error: Exception) -> GrisError:
    if isinstance(error, duckdb.CatalogException):
        return DataUnreadable(f"the data file {path.name} has no table {table}")
    return unreadable(path)


def attach_database(connection: duckdb.DuckDBPyConnection, table: str, path: Path) -> None:
    """Attaches a database as `source`, if the table's rows are all in its file.

    Raises:
        EngineRefused: the table is a view, or has a generated column, or the file is no database.
        EngineUnavailable: the file is not there, or a log is beside it.
    """
    # A log is beside the file itself, whatever links to it.
    path = path.resolve()
    require_no_log(path)
    # With the type, because DuckDB would read a file of SQLite too, where rows decide the types and there is a log.
    execute_all(
        connection,
        f"ATTACH {literal(str(path))} AS source (READ_ONLY, TYPE duckdb)",
        to_error=lambda _: unreadable(path),
    )
    _require_stored(connection, table, path)


def _require_stored(connection: duckdb.DuckDBPyConnection, table: str, path: Path) -> None:
    """Refuses a table of the database whose values are computed: they can come from anywhere, without a new version."""
    computed = {
        "is a view": "SELECT view_name FROM duckdb_views() WHERE database_name = 'source'",
        "has a generated column": "SELECT table_name FROM duckdb_columns() "
        "WHERE database_name = 'source' AND is_generated",
    }
    for what, sql in computed.items():
        named = translated(partial(_fetched, connection, sql), lambda _: unreadable(path))
        # In whatever schema it is, and whatever its case: DuckDB finds a name however it is spelled.
        if table.casefold() in (name.casefold() for (name,) in named):
            raise DataUnreadable(
                f"the table {table} of the DuckDB database {what}, so its rows are not all in the file: store them as "
                "a table, by CREATE TABLE .. AS SELECT .., or name the Parquet file itself"
            )


def _fetched(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[str]]:
    return connection.execute(sql).fetchall()


def execute_all(
    connection: duckdb.DuckDBPyConnection, *statements: str, to_error: Callable[[Exception], GrisError]
) -> None:
    """Executes statements, one after the other."""
    for statement in statements:
        translated(partial(connection.execute, statement), to_error)


def translated(work: Callable[[], _Result], to_error: Callable[[Exception], GrisError]) -> _Result:
    """Returns the result of the work, or raises the connector's own error in place of any other.

    Not only DuckDB's: Python fails to decode its message about a row that is not UTF-8, and that error holds the row.
    """
    try:
        return work()
    except GrisError:
        raise
    except Exception as error:
        translated = to_error(error)
    # Raised outside of `except`: the other error can hold the query and values of the data, and would be attached to
    # this one as its context.
    raise translated


def require_version(file: VersionedFile, data_version: str) -> None:
    """Raises DataChanged if a file is of another version."""
    if file.version() != data_version:
        raise DataChanged("the data changed while the question was answered")
