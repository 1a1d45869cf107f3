"""Which rows no question sees: counts for `gris policy check --data`.

They are true counts, of the owner's data and for the owner alone. No service imports this.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from dp_service.queries.intervals import END_OF_TIMESTAMPS, FIRST_TIMESTAMP
from dp_service.queries.structured import MAXIMUM_TEXT_LENGTH, Value
from dp_service.queries.tables import Column, Nulls, Table
from dp_service.terms import ColumnType
from gris_cli.policy_types import fault_of_type, fault_of_unit, stored_unit
from pinot_connector.engines.duckdb import DuckDBEngine, is_member_type
from pinot_connector.engines.parquet import count_unreadable, quoted
from pinot_connector.errors import EngineError

EVERY = "every question"
NAMING = "questions that name it"
SHOWING = "answers that show it"


class DataError(ValueError):
    """The data cannot be read, or are not what the policy says; the text says what was expected."""


@dataclass(frozen=True)
class LeftOut:
    """How many rows are left out for one reason: of which questions, and because of which column."""

    column: str
    reason: str
    rows: int
    of: str


@dataclass(frozen=True)
class DataReport:
    """A table's rows, how many of them no question sees, and what else is left out, column by column."""

    table: str
    rows: int
    rows_in_no_question: int
    left_out: tuple[LeftOut, ...]


def examined(table: Table, path: Path) -> DataReport:
    """Read a Parquet file or DuckDB database and count what is left out of questions about a table.

    Raises DataError: the data cannot be read, or a column is missing or of another type than the policy says.
    """
    try:
        with closing(DuckDBEngine({table.name: path})) as engine, engine.reading(table.name) as connection:
            _require_columns(engine.types(connection, table.name), table)
            for column in table.columns:
                fault = fault_of_unit(connection, table, column)
                if fault is not None:
                    raise DataError(fault)
            return _report(connection, table, path)
    except DataError:
        raise
    except EngineError as error:
        failure = DataError(str(error))
    except Exception:
        # What DuckDB says may quote the data, and where Python cannot decode it, so does Python's error.
        failure = DataError("expected data that can be read to their end")
    raise failure


def _report(connection: duckdb.DuckDBPyConnection, table: Table, path: Path) -> DataReport:
    unseen, texts = count_unreadable(connection, path) if path.suffix == ".parquet" else (0, {})
    found = [LeftOut(column, "a text that is not UTF-8", rows, EVERY) for column, rows in texts.items()]
    found.extend(_counted(connection, table))
    seen = _count(connection, table, "TRUE")
    return DataReport(table.name, seen + unseen, unseen, tuple(each for each in found if each.rows))


def _require_columns(types: Mapping[str, str], table: Table) -> None:
    for name in (table.member, *(column.name for column in table.columns)):
        if name.casefold() not in types:
            raise DataError(f"expected a column {name} in the data of {table.name}")
    for column in table.columns:
        fault = fault_of_type(column, types[column.name.casefold()])
        if fault is not None:
            raise DataError(fault)
    if table.member_column() is None and not is_member_type(types[table.member.casefold()]):
        raise DataError(f"expected the column {table.member} to be of a type that members can have")


def _counted(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[LeftOut]:
    """Count rows that questions see, but not all of them."""
    if table.member_column() is None:
        rows = _count(connection, table, f"{quoted(table.member)} IS NULL")
        yield LeftOut(table.member, "no member", rows, EVERY)
    for column in table.columns:
        is_member = column.name == table.member
        for reason, of, condition, values in _reasons(column, is_member=is_member):
            rows = _count(connection, table, condition, *values)
            yield LeftOut(column.name, reason, rows, EVERY if is_member else of)


def _reasons(column: Column, *, is_member: bool) -> Iterator[tuple[str, str, str, list[Any]]]:
    """Yield why a row is left out, of what, and the condition for it with its parameters."""
    name = quoted(column.name)
    if column.nulls is Nulls.DROP:
        missing = [] if column.null_value is None else [_parameter(column.null_value)]
        stands = f" OR {name} = ?" if missing else ""
        yield (
            "no member" if is_member else "NULL, which is dropped",
            NAMING,
            f"{name} IS NULL{stands}",
            missing,
        )
    if column.type is ColumnType.DATE:
        days = f"{name} NOT BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        yield "a day outside the years 1 to 9999", NAMING, days, []
    if column.type is ColumnType.TIMESTAMP and stored_unit(column) is None:
        ends = f"NOT ({name} >= ? AND {name} < ?)"
        yield "a timestamp outside the years 1700 to 2261", NAMING, ends, _ENDS_OF_TIMESTAMPS
    if column.type is ColumnType.STRING and column.group_by and column.domain is None:
        long = f"length({name}) > {MAXIMUM_TEXT_LENGTH}"
        yield f"a text of more than {MAXIMUM_TEXT_LENGTH:,} characters", SHOWING, long, []
    if column.group_by and column.domain is not None:
        yield "a value outside the domain", SHOWING, *_outside(column, column.domain)


def _parameter(value: Value) -> Value:
    # The connection's zone is UTC, and only a timestamp without a zone is compared with every type of them.
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value


_ENDS_OF_TIMESTAMPS = [_parameter(each) for each in (FIRST_TIMESTAMP, END_OF_TIMESTAMPS)]


def _outside(column: Column, domain: tuple[Value, ...]) -> tuple[str, list[Any]]:
    name = quoted(column.name)
    held = f"{name} IS NOT NULL"
    if column.value_for_null is not None:
        # A kept NULL counts as its null value, which the domain may not list.
        name, held = f"coalesce({name}, ?)", "TRUE"
        return f"{held} AND {name} NOT IN (SELECT unnest(?))", [column.value_for_null, list(domain)]
    dropped = [] if column.null_value is None else [column.null_value]
    not_dropped = f" AND {name} <> ?" if dropped else ""
    return f"{held}{not_dropped} AND {name} NOT IN (SELECT unnest(?))", [*dropped, list(domain)]


def _count(connection: duckdb.DuckDBPyConnection, table: Table, condition: str, *values: Any) -> int:
    sql = f"SELECT count(*) FROM {quoted(table.name)} WHERE {condition}"  # noqa: S608 - names of the policy
    found = connection.execute(sql, list(values)).fetchone()
    return 0 if found is None else int(found[0])
