"""The rows that are to be bounded: a Parquet or CSV file, checked before anything is made of it.

A file is refused as a whole, by line or row and by column, rather than read in part. Nothing that the file holds is
repeated in a message.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from glob import escape
from pathlib import Path

import duckdb

from gris_cli.data.dialects import DUCKDB, NANOSECONDS, READ_TIME, DataDialect
from gris_cli.data.errors import InputError
from gris_cli.data.input_files import require_file, require_table_file
from pinot_connector.engines.bounded_copy import CALENDAR_PERIOD, ONE_PERIOD, WEIGHT_COLUMN
from pinot_connector.engines.csv_files import csv_rows, names_in_first_line
from pinot_connector.engines.file_versions import unreadable
from pinot_connector.engines.parquet import (
    BREAKABLE,
    BREAKABLE_ADVICE,
    ROW_NUMBER,
    all_rows,
    columns_of,
    count_unreadable,
    literal,
    quoted,
    require_alike,
    unread_columns,
)
from pinot_connector.engines.parquet_files import PARQUET, files_of, is_many
from pinot_connector.errors import EngineError

ROWS = "source_rows"
"""The view of all rows of the input."""

_REJECTED = "rejected_rows"
_REJECTED_FILES = "rejected_files"
_MOST_REJECTED = 1000
_REASONS = {
    "MISSING COLUMNS": "has too few columns",
    "TOO MANY COLUMNS": "has too many columns",
    "UNQUOTED VALUE": "has a quote where none may be",
    "INVALID ENCODING": "holds a text that is not UTF-8",
    "LINE SIZE OVER MAXIMUM": "is too long",
}


@dataclass(frozen=True)
class Columns:
    """What the columns of the input are: who a member is, what an element is and, if it has one, what a period is.

    With a `calendar` - day, week or month - the periods are those that the period column falls into. It holds days, or
    timestamps in UTC; `zone` then says where days begin.
    """

    member: str
    elements: tuple[str, ...]
    period: str = ""
    calendar: str = ""
    zone: str = ""

    @property
    def stated_period(self) -> str:
        """What a copy says of its periods."""
        if not self.calendar:
            return self.period or ONE_PERIOD
        return f"{self.calendar}({self.period}{f', {self.zone}' if self.zone else ''})"

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns in which every row needs a value."""
        return (self.member, *self.elements, *((self.period,) if self.period else ()))

    def use_of(self, name: str) -> str:
        """Return which of these fields names a column that is needed."""
        if name in self.elements:
            return "elements"
        return "member" if name == self.member else "period"


def open_rows(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    columns: Columns,
) -> None:
    """Make the view `ROWS` of all rows of a file, and the macro `READ_TIME`, which gives periods in microseconds.

    The view does not have the columns of a Parquet file of which one row can fail a query.

    Args:
        connection: Where to make it.
        path: The file, or a folder or pattern of Parquet files.
        columns: What its columns are.

    Raises:
        InputError: There is no such file, it is neither Parquet nor CSV, a column is missing, named twice or of a
            type that cannot be a member, an element or a period, the period column is called as `ONE_PERIOD` is, or
            a text in a Parquet file is not UTF-8.
    """
    require_different(columns)
    require_table_file(path)
    suffix = PARQUET if is_many(path) else path.suffix.lower()
    if suffix not in (PARQUET, ".csv", ".tsv"):
        raise InputError(f"expected a file named .parquet, .csv or .tsv, got {path.name}")
    failure = None
    try:
        types = _parquet(connection, path) if suffix == PARQUET else _separated(connection, path)
    except duckdb.Error:
        # What DuckDB says may quote the file's content.
        failure = InputError(
            str(unreadable(path))
            if suffix == PARQUET
            else f"expected a file that can be read to its end, got {path.name}"
        )
    if failure:
        raise failure
    check_types(DUCKDB, types, columns)
    read = in_microseconds("t") if types.get(columns.period) == NANOSECONDS else "t"
    connection.execute(f"CREATE TEMP MACRO {READ_TIME}(t) AS {read}")


def in_microseconds(nanoseconds: str) -> str:
    """Write a TIMESTAMP_NS as the microsecond that it is in. A cast takes the nearest one, maybe of the next day."""
    number = f"epoch_ns({nanoseconds})"
    return f"make_timestamp({number} // 1000 - CASE WHEN {number} % 1000 < 0 THEN 1 ELSE 0 END)"


def require_different(columns: Columns) -> None:
    """Raise InputError if one column is two things, or the period's name would say that there is none."""
    if len(set(columns.needed)) != len(columns.needed):
        raise InputError(
            "expected different columns", "member", "elements", *(["period"] if columns.period else [])
        )
    for name in columns.needed:
        if name.casefold() == WEIGHT_COLUMN:
            raise InputError(
                f"a copy has a column {WEIGHT_COLUMN} of its own: rename it", columns.use_of(name)
            )
    if columns.period == ONE_PERIOD:
        # A copy could not say whether it has a period column.
        raise InputError(f"a period column must not be called {ONE_PERIOD}: rename it", "period")
    is_stated_plainly = CALENDAR_PERIOD.fullmatch(columns.stated_period) is not None
    if columns.period and is_stated_plainly != bool(columns.calendar):
        # What a copy states of its periods could be read otherwise.
        raise InputError(
            "a period column must be called by letters, digits and underscores with a calendar, and without one not as "
            "a calendar's periods are: rename it",
            "period",
        )


def _parquet(connection: duckdb.DuckDBPyConnection, path: Path) -> dict[str, str]:
    try:
        files = files_of(path)
        require_alike(connection, files, str)
    except EngineError as error:
        raise InputError(f"{path}: {error}") from None
    types = columns_of(connection, files)
    _, odd = count_unreadable(connection, files, "true")
    require_no_odd_texts(odd)
    unread = unread_columns(connection, files)
    connection.execute(f"CREATE TEMP VIEW {ROWS} AS {all_rows(files, unread)}")
    return types | dict.fromkeys(unread, BREAKABLE)


def odd_texts(dialect: DataDialect, types: Mapping[str, str]) -> dict[str, str]:
    """Write, for each column of texts, the condition on a row of `given` that it holds one which is not UTF-8.

    There are none for an engine that holds no such texts; of a file, `open_rows` has refused them.
    """
    well_formed = dialect.of_questions.well_formed
    names = [] if well_formed is None else [name for name, kind in types.items() if kind == dialect.text]
    return {name: f"NOT ({well_formed(f'given.{dialect.quoted(name)}')})" for name in names if well_formed}


def require_no_odd_texts(counts: Mapping[str, int]) -> None:
    """Raise InputError if a column has rows with a text that is not UTF-8."""
    for name, rows in counts.items():
        if rows:
            raise InputError(f"column {name}: {rows} rows hold a text that is not UTF-8")


def require_unbreakable(types: Mapping[str, str], columns: Iterable[str]) -> None:
    """Raise InputError if one of these columns is one of which one row can fail a query."""
    for name in columns:
        if types[name] == BREAKABLE:
            raise InputError(f"column {name}: expected a type that can be read, and not {BREAKABLE_ADVICE}")


def _separated(connection: duckdb.DuckDBPyConnection, path: Path) -> dict[str, str]:
    """Make the view of a CSV file. All columns are texts, and nothing is sniffed: no row decides what others mean.

    Returns:
        The type of each column.

    Raises:
        InputError: There is no such file, or its first line does not name the columns.
    """
    require_file(path)
    options = f", store_rejects = true, rejects_table = '{_REJECTED}', rejects_scan = '{_REJECTED_FILES}'"
    try:
        names, _ = names_in_first_line(path)
    except EngineError as error:
        problem = str(error)
    else:
        rows = csv_rows(path, f"{options}, rejects_limit = {_MOST_REJECTED}")
        connection.execute(f"CREATE TEMP VIEW {ROWS} AS FROM {rows}")
        return dict.fromkeys(names, DUCKDB.text)
    raise InputError(problem)


def check_types(dialect: DataDialect, types: Mapping[str, str], columns: Columns) -> None:
    """Raise InputError if a column is missing, or of a type that it cannot have."""
    for name in columns.needed:
        if name not in types:
            raise InputError(f"there is no column {name}", columns.use_of(name))
    require_unbreakable(types, columns.needed)
    if types[columns.member] not in dialect.members:
        raise InputError(f"column {columns.member}: expected members that are texts or integers", "member")
    for name in columns.elements if columns.calendar else columns.needed[1:]:
        if types[name] not in dialect.elements:
            problem = f"column {name}: expected texts, integers, truth values or days"
            raise InputError(problem, columns.use_of(name))
    if columns.calendar:
        _check_calendar(dialect, types[columns.period], columns)


def _check_calendar(dialect: DataDialect, kind: str, columns: Columns) -> None:
    """Raise InputError if the period column does not fall into periods of the calendar."""
    if kind == dialect.day:
        if columns.zone:
            raise InputError(f"column {columns.period} holds days: expected no zone", "zone")
    elif kind not in dialect.timestamps:
        raise InputError(f"column {columns.period}: expected days or timestamps", "period")
    elif not columns.zone:
        raise InputError(
            f"column {columns.period} holds timestamps: expected the time column's zone in the policy",
            remedy="zone",
        )


def require_all_read(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Raise InputError if a row was rejected while the rows of a CSV file were read, with the first one's line."""
    if is_many(path) or path.suffix.lower() == PARQUET:
        return
    first = connection.execute(
        f"SELECT line_byte_position, column_name, error_type FROM {_REJECTED} "  # noqa: S608
        "ORDER BY line_byte_position, column_idx LIMIT 1"
    ).fetchone()
    if first:
        start, column, kind = first
        reason = _REASONS.get(str(kind), "cannot be read")
        of_column = f", column {column}" if column else ""
        raise InputError(f"line {_line_at(path, start)}{of_column}: the row {reason}")


def _line_at(path: Path, position: int) -> int:
    """Return the line of a byte, counted from 1; a quoted text may span several."""
    line, left = 1, position - 1
    with path.open("rb") as stream:
        while left > 0 and (block := stream.read(min(left, 2**20))):
            line += block.count(b"\n")
            left -= len(block)
    return line


def first_missing(connection: duckdb.DuckDBPyConnection, path: Path, columns: Columns) -> str:
    """Return where the first row is that has no value in a needed column, for a message."""
    if is_many(path):
        return "a row"
    if path.suffix.lower() != PARQUET:
        try:
            return _first_missing_line(path, columns)
        except csv.Error:
            # Such as a text that is longer than Python's reader takes; DuckDB has read it.
            return "a line"
    source = f"read_parquet({literal(escape(str(path)))}, hive_partitioning = false, file_row_number = true)"
    tests = " ".join(
        f"WHEN rows.{quoted(name)} IS NULL THEN {place}" for place, name in enumerate(columns.needed)
    )
    found = connection.execute(
        f"SELECT rows.{ROW_NUMBER}, CASE {tests} END AS place FROM {source} AS rows "  # noqa: S608
        f"WHERE CASE {tests} END IS NOT NULL ORDER BY rows.{ROW_NUMBER} LIMIT 1"
    ).fetchone()
    return f"row {found[0] + 1}, column {columns.needed[found[1]]}" if found else "a row"


def _first_missing_line(path: Path, columns: Columns) -> str:
    header, separator = names_in_first_line(path)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=separator, strict=True)
        next(reader)
        line = reader.line_num + 1
        for row in reader:
            for name in columns.needed:
                if row and not row[header.index(name)]:
                    return f"line {line}, column {name}"
            line = reader.line_num + 1
    return "a line"
