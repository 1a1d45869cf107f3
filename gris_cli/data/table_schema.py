"""The columns of somebody's own table, for `gris draft` and `gris serve`: names and types, and never a row."""

from __future__ import annotations

import datetime
import re
import shlex
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import duckdb

from dp_service.queries.elements import timestamp_of
from dp_service.queries.filters import Value
from dp_service.terms import ColumnType
from gris_cli.data.csv_types import csv_types
from gris_cli.data.engines import PinotAccess
from gris_cli.data.errors import InputError
from gris_cli.data.input_files import require_table_file
from pinot_connector.days import FIRST_DAY, LAST_DAY, date_of
from pinot_connector.engines.csv_files import is_csv
from pinot_connector.engines.duckdb import ACCEPTED_TYPES, is_member_type
from pinot_connector.engines.duckdb_files import attach_database
from pinot_connector.engines.file_versions import unreadable
from pinot_connector.engines.parquet import (
    breakable_columns,
    columns_of,
    literal,
    quoted,
    require_alike,
)
from pinot_connector.engines.parquet_files import PARQUET, files_of, is_many, is_parquet, table_path
from pinot_connector.errors import EngineRefused, EngineUnavailable, GrisError

if TYPE_CHECKING:
    from pinot_connector.engines.pinot.columns import PinotColumn

DATABASES = (".duckdb", ".db")
JSON_FILES = (".json", ".jsonl", ".ndjson")
PINOT_SECONDS = 10.0
# By the names that DuckDB, Pinot and others give them.
_FRACTIONS = frozenset(("FLOAT", "DOUBLE", "DECIMAL", "REAL", "BIG_DECIMAL"))
_TYPE_NAME = re.compile(r"[A-Z0-9_ ]*")
_POLICY_TYPES = {held: ColumnType(kind.value) for kind, names in ACCEPTED_TYPES.items() for held in names}


@dataclass(frozen=True)
class TableColumn:
    """A column as its engine holds it.

    Attributes:
        name: Its name.
        type: The type that a policy gives it; None: no question can read it.
        held: What the engine calls its type, without what follows: the type of an ENUM lists values.
        can_be_member: Whether members can be counted by it.
        null_value: What the engine stores for NULL, if a policy has to state it.
        time_unit: What its integers count since 1970, if the schema says that it is a time: then its type is timestamp.
        fault: Why no question can read it although its type could be read; empty if there is no such reason.
    """

    name: str
    type: ColumnType | None
    held: str
    can_be_member: bool
    null_value: Value | None = None
    time_unit: str = ""
    fault: str = ""

    @property
    def has_fractions(self) -> bool:
        """Whether it holds numbers that no question groups by, though they can be summed."""
        return self.type is None and self.held in _FRACTIONS


@dataclass(frozen=True)
class TableSchema:
    """A table's name and columns, and where they were read: the location that an engine takes, or Pinot."""

    name: str
    columns: tuple[TableColumn, ...]
    location: str


def _described(table: str, path: Path) -> list[tuple[str, str, bool]]:
    """Return name and type of each column, and whether one row of it can fail a query."""
    try:
        with duckdb.connect() as connection:
            if is_parquet(path):
                files = files_of(path)
                require_alike(connection, files, str)
                breakable = breakable_columns(connection, files)
                types = columns_of(connection, files)
                return [(name, held, name.casefold() in breakable) for name, held in types.items()]
            attach_database(connection, table, path)
            described = connection.execute(f"DESCRIBE SELECT * FROM source.{quoted(table)}").fetchall()  # noqa: S608
            return [(row[0], row[1], False) for row in described]
    except (EngineRefused, EngineUnavailable) as error:
        problem = f"{path}: {error}"
    except duckdb.Error:
        # What DuckDB says may quote the file.
        is_database = path.suffix in DATABASES
        problem = f"expected a table {table} in {path}" if is_database else str(unreadable(path))
    raise InputError(problem)


def file_schema(text: str) -> TableSchema:
    """Return the table that a text names: PATH or TABLE=PATH.

    Raises:
        InputError: The file cannot be read, or it does not say which table is meant.
    """
    named, location = _named(text)
    path = Path(location)
    _require_file(path)
    table = _only_table(path) if named is None else named
    if is_csv(path):
        described = [(name, held, False) for name, held in csv_types(path).items()]
    else:
        described = _described(table, path)
    columns = tuple(_file_column(*each) for each in described)
    return TableSchema(table, columns, location)


def _named(text: str) -> tuple[str | None, str]:
    """Return the table's name, None if there is none, and the path; folders such as `country=FR` are no names."""
    named, equals, location = text.partition("=")
    if not equals or "/" in named or not location or Path(text).exists():
        return None, text
    return named, location


def _require_file(path: Path) -> None:
    require_table_file(path)
    if is_many(path):
        return
    if path.suffix in JSON_FILES:
        made = str(path.with_suffix(PARQUET))
        copy = shlex.quote(f"import duckdb; duckdb.read_json({str(path)!r}).write_parquet({made!r})")
        raise InputError(
            f"{path.name}: the rows of such a file decide the types of its columns; make a Parquet file of it: "
            f"python -c {copy}"
        )
    if path.suffix not in (PARQUET, *DATABASES) and not is_csv(path):
        raise InputError(f"expected a file named .parquet, .csv, .tsv, .duckdb or .db, got {path.name}")


def _only_table(path: Path) -> str:
    """Return the name of a file's table: that of Parquet or its folder, or of the one table in a database."""
    if is_parquet(path) or is_csv(path):
        return table_path(path).stem
    problem = ""
    try:
        with duckdb.connect() as connection:
            _attach(connection, path)
            found = connection.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_catalog = 'source' "
                "AND table_schema = 'main' ORDER BY 1"
            ).fetchall()
    except duckdb.Error:
        problem = str(unreadable(path))
    if problem:
        raise InputError(problem)
    names = [name for (name,) in found]
    if len(names) != 1:
        raise InputError(f"TABLE={path} says which table is meant; there are: {', '.join(names) or 'none'}")
    return str(names[0])


def _attach(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    connection.execute(f"ATTACH {literal(str(path))} AS source (READ_ONLY, TYPE duckdb)")


def _file_column(name: str, held: str, is_breakable: bool) -> TableColumn:
    begins = _TYPE_NAME.match(held)
    shown = begins.group().strip() if begins else ""
    # The type of a list begins with that of its values.
    shown = "LIST" if held.endswith("]") else shown
    kind = None if is_breakable else _POLICY_TYPES.get(held)
    return TableColumn(name, kind, shown, not is_breakable and is_member_type(held))


def pinot_schema(controller: str, table: str, access: PinotAccess) -> TableSchema:
    """Return a table of Pinot, by the schema that its controller has.

    Args:
        controller: The controller's URL.
        table: The table's name.
        access: The credentials.

    Raises:
        InputError: The controller cannot be reached, or has no such table.
    """
    columns = pinot_columns(controller, table, access)
    return TableSchema(table, tuple(_pinot_column(name, held) for name, held in columns.items()), "")


def pinot_columns(controller: str, table: str, access: PinotAccess) -> Mapping[str, PinotColumn]:
    """Return the columns of a table of Pinot, as its controller describes them.

    Args:
        controller: The controller's URL.
        table: The table's name.
        access: The credentials.

    Raises:
        InputError: The controller cannot be reached, or has no such table.
    """
    from pinot_connector.engines.pinot.columns import columns_of as described

    try:
        return described(_pinot_answer(controller, f"/tables/{table}/schema", access))
    except InputError:
        raise
    except GrisError as error:
        problem = f"{error} ({controller}, table {table})"
    except (AttributeError, KeyError, TypeError, ValueError):
        problem = f"{controller} gave no schema of {table}"
    raise InputError(problem)


def _pinot_answer(controller: str, path: str, access: PinotAccess) -> Mapping[str, Any]:
    from pinot_connector.engines.pinot.controller_http import ControllerHttp

    url = urlsplit(controller)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise InputError(f"expected a URL such as http://localhost:9000, got {controller}")
    http = ControllerHttp(
        url, authorization=access.authorization(), tls=access.tls(), timeout_seconds=PINOT_SECONDS
    )
    with closing(http):
        answer: Mapping[str, Any] = http.read(path).json()
        return answer


_PINOT_TYPES = {
    "STRING": ColumnType.STRING,
    "INT": ColumnType.INT64,
    "LONG": ColumnType.INT64,
    "BOOLEAN": ColumnType.BOOL,
    "TIMESTAMP": ColumnType.TIMESTAMP,
}
# What a policy takes for granted, and need not state.
_USUAL_NULLS: dict[ColumnType, Value] = {
    ColumnType.STRING: "null",
    ColumnType.INT64: -(2**63),
    ColumnType.BOOL: False,
    ColumnType.TIMESTAMP: 0,
}
_TIMES = re.compile(
    r"1:(DAYS|SECONDS|MILLISECONDS):EPOCH|EPOCH\|(DAYS|SECONDS|MILLISECONDS)(?:\|1)?", re.IGNORECASE
)


def _pinot_column(name: str, held: PinotColumn) -> TableColumn:
    kind = _PINOT_TYPES.get(held.type)
    time = _TIMES.fullmatch(held.format or "")
    unit = "" if time is None or kind is not ColumnType.INT64 else (time.group(1) or time.group(2)).lower()
    fault = "" if held.is_single else "one row has several values in it"
    if unit == "days":
        day = _day(held.null_value)
        return TableColumn(name, ColumnType.DATE, held.type, held.is_single, day, "", fault)
    stated: Value | None = None if kind is None or held.null_value == _USUAL_NULLS[kind] else held.null_value
    if kind is ColumnType.TIMESTAMP and stated is not None:
        stated = _timestamp(stated)
        fault = fault or ("" if stated is not None else _NO_TIMESTAMP)
    can_be_member = kind not in (None, ColumnType.TIMESTAMP) and held.is_single
    return TableColumn(
        name, ColumnType.TIMESTAMP if unit else kind, held.type, can_be_member, stated, unit, fault
    )


_NO_TIMESTAMP = (
    "its defaultNullValue is no time that a policy can state; the schema can state it in milliseconds since 1970, "
    "between the years 1 and 9999"
)


def _timestamp(stored: object) -> datetime.datetime | None:
    """Return the time of a number of microseconds since 1970; None for a text, whose zone only the controller knows."""
    try:
        return timestamp_of(stored) if isinstance(stored, int) else None
    except OverflowError:
        return None


def _day(stored: object) -> datetime.date | None:
    """Return the day that Pinot stores for NULL; its default, the smallest integer, is none and need not be stated."""
    return date_of(stored) if isinstance(stored, int) and FIRST_DAY <= stored <= LAST_DAY else None
