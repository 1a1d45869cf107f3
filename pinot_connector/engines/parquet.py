"""Reads Parquet files as questions see them: without the rows that hold a text which is not UTF-8.

Parquet does not make sure that a text is UTF-8. DuckDB does when it reads one, and a query that meets another text
fails: one member's row would decide which questions have an answer. So texts are read with a replacement for what is no
UTF-8, and the rows that needed one are listed by number, once for each version of the file. Every question leaves out
exactly these, whichever columns it names.

All files are read in the same way, also those without such a row: the time that a question takes must not reveal that
there is one. Names and paths come from the configuration; no value of the file is ever part of a statement. A column of
the file may have any name, so each name in a statement is qualified.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from glob import escape
from operator import attrgetter
from pathlib import Path

import duckdb

from pinot_connector.engines.parquet_files import ParquetFiles, files_of
from pinot_connector.errors import DataUnreadable

ROW_NUMBER = "file_row_number"
"""DuckDB's name for the number of a row in its file. A file with such a column cannot be read in this way."""

FILE_NAME = "filename"
"""DuckDB's name for the file that a row is in. One of several files cannot have such a column."""

BREAKABLE = "a type that one row can break"
"""Stands for the type of `breakable_columns`; DuckDB has no such type."""

BREAKABLE_ADVICE = (
    f"{BREAKABLE}, as timestamps in milliseconds or INT96 are in Parquet: write them as TIMESTAMP(MICROS)"
)
"""What a message says that such a column holds, and what to do."""

# JSON is none of them: DuckDB fails at one that is not well-formed, so only questions that name it may read it.
_TEXT_TYPE = "VARCHAR"
# No row has these numbers. With them a list is never empty and spans all rows, so that DuckDB plans every query alike.
_NO_ROWS = "-1, 9223372036854775807"
_STRETCH = f"rows.{ROW_NUMBER} // 16384"
# What Spark and Hive call the folder of NULL.
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_READINGS = {"longer": "replace", "shorter": "ignore"}


def quoted(identifier: str) -> str:
    """Returns a name as SQL writes it."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Returns a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


@cache
def reads_any_text() -> bool:
    """Returns whether this DuckDB can read past a text that is not UTF-8: 2.0 and later can."""
    with duckdb.connect(":memory:") as connection:
        found = connection.execute(
            "SELECT count(*) FROM duckdb_functions() "
            "WHERE function_name = 'read_parquet' AND list_contains(parameters, 'utf8_validation')"
        ).fetchone()
    return found is not None and found[0] > 0


def columns_of(connection: duckdb.DuckDBPyConnection, path: Path | ParquetFiles) -> dict[str, str]:
    """Returns the type of each column of the file, by DuckDB's name.

    Raises:
        duckdb.Error: the file cannot be read as Parquet.
    """
    files = _found(path)
    described = connection.execute(f"DESCRIBE SELECT * FROM {_source(files)}").fetchall()  # noqa: S608
    return {row[0]: row[1] for row in described if files.is_one or row[0] != FILE_NAME}


def require_alike(
    connection: duckdb.DuckDBPyConnection,
    files: ParquetFiles,
    named: Callable[[Path], str] = attrgetter("name"),
) -> None:
    """Refuses files of one table that differ in names, types or order of columns, or in which DuckDB's names are taken.

    No row is read.

    Args:
        connection: any of DuckDB.
        files: the files.
        named: what the error calls a file; only the owner of the data may see its folder, which says what is there.

    Raises:
        DataUnreadable: they do.
        duckdb.Error: one cannot be read as Parquet.
    """
    first: dict[str, str] = {}
    for file in files.paths:
        columns = columns_of(connection, file)
        first = first or columns
        if list(columns.items()) != list(first.items()):
            raise DataUnreadable(
                f"the data file {named(file)} has other columns, or other types or another order of them, than "
                f"{named(files.paths[0])} in the same table"
            )
    names = set(map(str.casefold, first))
    if not files.is_one and (taken := names & {FILE_NAME, *map(str.casefold, files.keys)}):
        raise DataUnreadable(
            f"the data files have a column {taken.pop()}, which is what their folders or names say in a table of many"
        )
    if ROW_NUMBER in names:
        raise DataUnreadable(f"a Parquet file must have no column {ROW_NUMBER}: DuckDB numbers its rows so")


def breakable_columns(connection: duckdb.DuckDBPyConnection, path: Path | ParquetFiles) -> frozenset[str]:
    """Returns, casefolded, the names of columns in which one value can make DuckDB fail.

    These are DECIMAL columns whose values may have more bytes than DuckDB reads, and timestamps in milliseconds or as
    INT96, of which DuckDB makes microseconds: the largest do not fit. How a file stores them is in its schema; no row
    is read. A column that only shares its name with such a part of another one is taken for one too.

    Raises:
        duckdb.Error: the file cannot be read as Parquet.
    """
    found = connection.execute(
        "SELECT name FROM parquet_schema("  # noqa: S608
        f"{_listed(_found(path))}) WHERE (starts_with(duckdb_type, 'DECIMAL') AND (type = 'BYTE_ARRAY' OR "
        "(type = 'FIXED_LEN_BYTE_ARRAY' AND type_length::INTEGER > "
        "CASE WHEN precision <= 4 THEN 2 WHEN precision <= 9 THEN 4 WHEN precision <= 18 THEN 8 ELSE 16 END))) "
        "OR type = 'INT96' OR converted_type = 'TIMESTAMP_MILLIS' OR contains(logical_type, 'MILLIS=MilliSeconds')"
    ).fetchall()
    return frozenset(name.casefold() for (name,) in found)


def unread_columns(connection: duckdb.DuckDBPyConnection, path: Path | ParquetFiles) -> list[str]:
    """Returns the names of the columns that nothing may read, because one value in them can make DuckDB fail.

    Raises:
        duckdb.Error: the file cannot be read as Parquet.
    """
    breakable = breakable_columns(connection, path)
    return (
        [name for name in columns_of(connection, path) if name.casefold() in breakable] if breakable else []
    )


def text_columns(columns: dict[str, str]) -> list[str]:
    """Returns the names of the columns that hold texts."""
    return [name for name, type_ in columns.items() if type_ == _TEXT_TYPE]


def list_unreadable(connection: duckdb.DuckDBPyConnection, path: Path | ParquetFiles, table: str) -> None:
    """Makes the table `table`, quoted already, with the number of every row that holds a text which is not UTF-8.

    Raises:
        duckdb.Error: the file cannot be read to its end.
    """
    # On a cursor of its own: no temporary table of this is in the way of what the connection calls its tables.
    path = _found(path)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} AS SELECT unnest([{_NO_ROWS}]) AS number, '' AS file")
        texts = text_columns(columns_of(cursor, path))
        if texts and _find_odd(cursor, path, texts):
            cursor.execute(f"INSERT INTO {table} SELECT odd_rows.number, odd_rows.file FROM odd_rows")  # noqa: S608


def count_unreadable(
    connection: duckdb.DuckDBPyConnection, path: Path | ParquetFiles, which: str = "true"
) -> tuple[int, dict[str, int]]:
    """Returns how many rows hold a text which is not UTF-8, and how many have one in each column of texts.

    These are true counts: they are for the owner of the data alone. `which` is a condition on `rows`, of which others
    are not looked at.

    Raises:
        duckdb.Error: the file cannot be read to its end.
    """
    # The same files in all that follows.
    path = _found(path)
    with connection.cursor() as cursor:
        texts = text_columns(columns_of(cursor, path))
        if not texts or not _find_odd(cursor, path, texts, which):
            return 0, dict.fromkeys(texts, 0)
        each = ", ".join(f"count(*) FILTER (WHERE odd_rows.is_odd{i})" for i in range(len(texts)))
        counts = cursor.execute(f"SELECT count(*), {each} FROM odd_rows").fetchone() or ()  # noqa: S608
        return counts[0], dict(zip(texts, counts[1:], strict=True))


def _find_odd(
    connection: duckdb.DuckDBPyConnection, path: Path | ParquetFiles, texts: list[str], which: str = "true"
) -> bool:
    """Makes the temporary table `odd_rows` of the rows with such a text, if there are any; returns whether there are.

    Of each byte that is no UTF-8 one reading has a question mark and the other one nothing. So there is such a text
    exactly where the first reading is the longer one. Both readings are summed up over stretches of rows first, which
    needs next to no memory; only stretches in which they differ are compared row by row. Each reading is a statement
    of its own: inside one, DuckDB takes the two for the same and does one of them.
    """
    # Not strlen: that one DuckDB answers from the file, by the length before anything is replaced or left out.
    lengths = [f"coalesce(octet_length(encode(rows.{quoted(name)}::VARCHAR)), 0)" for name in texts]
    for table, validation in _READINGS.items():
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT {_file(path)} AS file, {_STRETCH} AS stretch, "  # noqa: S608
            f"sum({' + '.join(lengths)}) AS length FROM {_rows(path, validation)} AS rows WHERE {which} GROUP BY 1, 2"
        )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE odd_stretches AS SELECT longer.file, longer.stretch FROM longer "
        "JOIN shorter USING (file, stretch) WHERE longer.length <> shorter.length"
    )
    if not connection.execute("SELECT 1 FROM odd_stretches LIMIT 1").fetchall():
        return False
    _compare_rows(connection, path, lengths)
    return True


def _compare_rows(
    connection: duckdb.DuckDBPyConnection, path: Path | ParquetFiles, lengths: list[str]
) -> None:
    """Makes the table `odd_rows`: `number` of each row and, as `is_odd0` and on, which of its texts are not UTF-8."""
    named = ", ".join(f"{length} AS length{i}" for i, length in enumerate(lengths))
    for table, validation in _READINGS.items():
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT rows.{ROW_NUMBER} AS number, {_file(path)} AS file, "  # noqa: S608
            f"{named} FROM {_rows(path, validation)} AS rows SEMI JOIN odd_stretches "
            f"ON odd_stretches.stretch = {_STRETCH} AND odd_stretches.file = {_file(path)}"
        )
    odd = [f"longer.length{i} <> shorter.length{i}" for i in range(len(lengths))]
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE odd_rows AS SELECT longer.number, longer.file, "  # noqa: S608
        f"{', '.join(f'{each} AS is_odd{i}' for i, each in enumerate(odd))} "
        f"FROM longer JOIN shorter USING (number, file) WHERE {' OR '.join(odd)}"
    )
    for table in _READINGS:
        connection.execute(f"DROP TABLE {table}")


def readable(path: Path | ParquetFiles, table: str, unread: Iterable[str] = ()) -> str:
    """Returns the query for the rows that questions see: all that `table` does not list.

    Without the columns `unread`: to plan a query, DuckDB reads what a file's footer says of the values of every column,
    and fails there already at a value that it cannot hold.
    """
    of_files = [ROW_NUMBER] if _found(path).is_one else [ROW_NUMBER, FILE_NAME]
    excluded = ", ".join([*of_files, *map(quoted, unread)])
    return (
        f"SELECT rows.* EXCLUDE ({excluded}) FROM {_rows(path)} AS rows "  # noqa: S608
        f"ANTI JOIN {table} AS unreadable ON unreadable.number = rows.{ROW_NUMBER} "
        f"AND unreadable.file = {_file(path)}"
    )


def all_rows(files: ParquetFiles, unread: Iterable[str] = ()) -> str:
    """Returns the query for all rows and what folders say, for the owner alone: a text that is no UTF-8 is an error."""
    excluded = ", ".join([*([] if files.is_one else [FILE_NAME]), *map(quoted, unread)])
    return f"SELECT * {f'EXCLUDE ({excluded})' if excluded else ''} FROM {_source(files)}"  # noqa: S608


def _rows(path: Path | ParquetFiles, validation: str = "replace") -> str:
    """Returns the source of all rows, in which what is no UTF-8 is replaced, or left out with `ignore`."""
    return _source(path, f", utf8_validation = '{validation}', file_row_number = true")


def _file(path: Path | ParquetFiles) -> str:
    """Returns what says which file a row of `_rows` is in: nothing where there is one, whose columns have any name."""
    # Not the number of the file: that is another one in a query for which DuckDB needs fewer files.
    return "''" if _found(path).is_one else f"rows.{FILE_NAME}"


def _source(path: Path | ParquetFiles, options: str = "") -> str:
    """Returns the source of exactly the files of that name, and what their folders say.

    DuckDB takes `[1]` in a name for a pattern, and puts what a folder called `country=FR` says in the place of the
    file's own column; it fails at folders that are called `country=a=b`, which one member's row can make.
    """
    files = _found(path)
    held = f"read_parquet({_listed(files)}, hive_partitioning = false{options})"
    if files.is_one:
        return held
    said = "".join(f", {_said(key, files.base)} AS {quoted(key)}" for key in files.keys)
    return f"(SELECT held.*, held.{FILE_NAME}{said} FROM {held} AS held)"  # noqa: S608


def _listed(files: ParquetFiles) -> str:
    return f"[{', '.join(literal(escape(str(each))) for each in files.paths)}]"


def _said(key: str, base: Path) -> str:
    """Returns what a folder below another says of a column, whatever folders above are called."""
    pattern = f"^{re.escape(str(base))}/(?:[^/]*/)*?{re.escape(key)}=([^/]*)/"
    found = f"regexp_extract(held.{FILE_NAME}, {literal(pattern)}, 1)"
    return f"nullif(url_decode({found}), {literal(_NULL_FOLDER)})"


def _found(path: Path | ParquetFiles) -> ParquetFiles:
    return path if isinstance(path, ParquetFiles) else files_of(path)
