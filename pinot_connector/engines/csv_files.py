"""Reads CSV files as questions see them: as texts, of which each question makes the types that it was written for.

Nothing is sniffed: neither types nor quotes depend on a row. A text that is not of a column's type is NULL, and changes
no other row. A file with a line that is not CSV is refused: one quote that is not closed takes in the rows of others.
So is one with a line of more than 64 MiB.
"""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from glob import escape
from pathlib import Path

import duckdb

from pinot_connector.engines.duckdb_files import (
    SharedDatabase,
    execute_all,
    refused,
    require_version,
    translated,
)
from pinot_connector.engines.file_versions import CSV_SUFFIXES, VersionedFile, unreadable
from pinot_connector.engines.parquet import literal, quoted
from pinot_connector.errors import DataUnreadable

_SEPARATORS = (",", ";", "\t")
# DuckDB refuses a file for one longer line, by itself from 2 MB on: one member's text would decide about all questions.
_LONGEST_LINE_BYTES = 64 * 2**20
# What DuckDB would round, or read in more than one way, is not of the type.
_FORMS = {
    "BIGINT": r"[+-]?\d+(\.0+)?",
    "BOOLEAN": r"(?i)true|false|t|f|yes|no|1|0",
    "DATE": r"\d{4}-\d\d-\d\d",
    "TIMESTAMP": r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?",
    "DOUBLE": r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?",
}


class CsvTable:
    """A CSV file, read into memory once for each version."""

    def __init__(self, name: str, file: VersionedFile, shared: SharedDatabase) -> None:
        names_in_first_line(file.path)
        self._name = quoted(name)
        self._file = file
        self._shared = shared
        self._lock = threading.Lock()
        self._reads = 0
        self._read: tuple[str, str] | None = None

    @contextmanager
    def opened(self, data_version: str, types: Mapping[str, str]) -> Iterator[duckdb.DuckDBPyConnection]:
        """Gives a connection on which the table's name stands for all rows, in these types; other columns are texts."""
        with self._shared.cursor() as connection:
            table = self._table(connection, data_version)
            held = [row[0] for row in connection.execute(f"DESCRIBE {quoted(table)}").fetchall()]
            values = ", ".join(
                f"{text_as(name, types.get(name.casefold(), 'VARCHAR'))} AS {quoted(name)}" for name in held
            )
            view = f"CREATE TEMP VIEW {self._name} AS SELECT {values} FROM {quoted(table)}"  # noqa: S608
            execute_all(connection, view, to_error=refused)
            yield connection

    def _table(self, connection: duckdb.DuckDBPyConnection, data_version: str) -> str:
        with self._lock:
            if self._read is None or self._read[0] != data_version:
                if self._read is not None:
                    execute_all(connection, f"DROP TABLE {quoted(self._read[1])}", to_error=refused)
                    self._read = None
                self._reads += 1
                table = f"{self._reads} of {self._name}"
                sql = f"CREATE TABLE {quoted(table)} AS FROM {csv_rows(self._file.path)}"
                translated(partial(connection.execute, sql), lambda _: unreadable(self._file.path))
                require_version(self._file, data_version)
                self._read = (data_version, table)
            return self._read[1]


def csv_rows(path: Path, options: str = "") -> str:
    """Returns the source of all rows of a CSV file as texts.

    Raises:
        DataUnreadable: its first line does not name the columns.
    """
    names, separator = names_in_first_line(path)
    named = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({literal(escape(str(path)))}, auto_detect = false, header = true, columns = {{{named}}}, "
        f"sep = {literal(separator)}, quote = '\"', escape = '\"', strict_mode = true, "
        f"max_line_size = {_LONGEST_LINE_BYTES}, buffer_size = {_LONGEST_LINE_BYTES}{options})"
    )


def text_as(name: str, kind: str) -> str:
    """Returns a column of texts in a type, as SQL: NULL where a text is empty, or not of the type."""
    if kind not in _FORMS:
        return quoted(name)
    text = f"trim({quoted(name)})"
    number = f"split_part({text}, '.', 1)" if kind == "BIGINT" else text
    return (
        f"CASE WHEN regexp_full_match({text}, {literal(_FORMS[kind])}) THEN TRY_CAST({number} AS {kind}) END"
    )


def names_in_first_line(path: Path) -> tuple[list[str], str]:
    """Returns the names of a CSV file's columns, and the separator.

    It is a tab in files called .tsv, and otherwise the first of comma, semicolon and tab that separates names at all:
    the line is the owner's, and no row of a member decides.

    Raises:
        DataUnreadable: the first line has no names, or one twice.
    """
    separators = _SEPARATORS[2:] if path.suffix.lower() == ".tsv" else _SEPARATORS
    read = [(_names(path, each), each) for each in separators]
    names, separator = next((each for each in read if len(each[0]) > 1), read[0])
    if not names or len(set(map(str.casefold, names))) != len(names):
        raise DataUnreadable("line 1: expected the names of the columns, each once")
    return names, separator


def _names(path: Path, separator: str) -> list[str]:
    try:
        # DuckDB refuses what is not UTF-8; here only the first line matters.
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            return next(csv.reader(lines, delimiter=separator, strict=True), [])
    except csv.Error:
        return []


def is_csv(path: Path) -> bool:
    """Returns whether a file is CSV, by its suffix."""
    return path.suffix.lower() in CSV_SUFFIXES
