"""Whether the data have the types that a policy gives to columns: for `gris check --data`.

The unit of integers that stand for times is in no schema of DuckDB's. So the values themselves are looked at, which
only the owner of the data may do.
"""

from __future__ import annotations

import datetime

import duckdb

from dp_service.queries.columns import Column
from dp_service.queries.intervals import ordinal
from dp_service.queries.tables import Table
from dp_service.queries.times import TimeUnit
from dp_service.queries.value_columns import QuantileColumn, ValueColumn
from dp_service.terms import ColumnType
from pinot_connector.engines.base import ColumnType as EngineType
from pinot_connector.engines.base import ValueType as EngineValueType
from pinot_connector.engines.duckdb import ACCEPTED_TYPES, OF_TEXTS, SUMMED_TYPES
from pinot_connector.engines.parquet import BREAKABLE, quoted
from pinot_connector.engines.rows import plain_type

CLOCK_UNITS = (TimeUnit.SECONDS, TimeUnit.MILLISECONDS, TimeUnit.MICROSECONDS)
_FIRST, _END = (ordinal(datetime.datetime(year, 1, 1, tzinfo=datetime.UTC)) for year in (1975, 2100))


def stored_unit(column: Column) -> TimeUnit | None:
    """Return the unit of timestamps that are stored as integers; None: the column holds none."""
    return None if column.timestamps is None else column.timestamps.stored


def types_of_csv(table: Table) -> dict[str, str]:
    """Return the types that a policy gives to columns of a CSV file, by their casefolded names."""
    kinds: list[tuple[str, EngineType | EngineValueType]] = [
        *((each.name, _held_as(each)) for each in table.own_columns),
        *((each.name, EngineValueType(each.type)) for each in table.numbers),
    ]
    return {name.casefold(): OF_TEXTS[kind] for name, kind in kinds if kind in OF_TEXTS}


def fault_of_type(column: Column, found: str) -> str | None:
    """Return what is wrong with DuckDB's type of a column, or None."""
    if found in ACCEPTED_TYPES[_held_as(column)]:
        return None
    return f"{_expected(column)}; the data have {plain_type(found)}{_hint(column, found)}"


def fault_of_value_type(value: ValueColumn | QuantileColumn, found: str) -> str | None:
    """Return what is wrong with DuckDB's type of a column that is summed, or that quantiles are of, or None."""
    if plain_type(found) in SUMMED_TYPES[EngineValueType(value.type)]:
        return None
    expected = f"expected the column {value.name} to be of the policy's type, {value.type}, to be summed"
    return f"{expected}; the data have {plain_type(found)}"


def fault_of_unit(connection: duckdb.DuckDBPyConnection, table: Table, column: Column) -> str | None:
    """Return that another unit fits the integers of a column of timestamps, or None.

    It does if half of them would be far from this century in the policy's unit, and not in that one.
    """
    unit = stored_unit(column)
    middle = None if unit is None else _median(connection, table, column)
    if unit is None or middle is None or is_of_this_time(middle, unit):
        return None
    others = [each for each in CLOCK_UNITS if is_of_this_time(middle, each)]
    return f"{_expected(column)}; the data have what looks like {others[0].name.lower()}" if others else None


def _held_as(column: Column) -> EngineType:
    return EngineType(column.type) if stored_unit(column) is None else EngineType.INT64


def _expected(column: Column) -> str:
    unit = stored_unit(column)
    of_unit = "" if unit is None else f" in {unit.name.lower()}"
    return f"expected the column {column.name} to be of the policy's type, {column.type}{of_unit}"


def _hint(column: Column, found: str) -> str:
    """Return what to declare instead, where a timestamp was taken for something else or the other way round."""
    if found in ACCEPTED_TYPES[EngineType.TIMESTAMP]:
        return ": declare type: timestamp, without a unit"
    if column.type is ColumnType.TIMESTAMP and found in ACCEPTED_TYPES[EngineType.INT64]:
        return ": declare the unit that they count since 1970"
    if column.type is ColumnType.TIMESTAMP and found == BREAKABLE:
        return ", as timestamps in milliseconds or INT96 are in a Parquet file: write them in microseconds"
    return ""


def is_of_this_time(value: int, unit: TimeUnit) -> bool:
    """Return whether a number of units since 1970 falls into the years 1975 to 2099: of no value do two units."""
    return _FIRST <= value * unit.value < _END


def _median(connection: duckdb.DuckDBPyConnection, table: Table, column: Column) -> int | None:
    name = quoted(column.name)
    sql = f"SELECT quantile_disc({name}, 0.5) FROM {quoted(table.name)} WHERE {name} <> ?"  # noqa: S608 - the policy's
    found = connection.execute(sql, [column.null_value]).fetchone()
    return None if found is None or found[0] is None else int(found[0])
