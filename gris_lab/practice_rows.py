"""Made-up rows of a policy's shape, to practise on: the policy is all that is read, and no row of anybody.

Columns have the policy's types, domains and bounds. What a policy does not list is invented: elements `NAME 1`,
`NAME 2`, .., each about as often as its number is small, for members with ten rows each on average, within the last
year. Where a policy says with how many values of a column a member can appear, no member has more. One policy gives the
same rows throughout a day.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dp_service.terms import ColumnType, ValueType
from gris_data.errors import InputError

if TYPE_CHECKING:
    from dp_service.queries.columns import Column
    from dp_service.queries.filters import Value
    from dp_service.queries.tables import Policy, Table
    from dp_service.queries.times import TimeColumn, TimeUnit
    from dp_service.values.bounds import ValueBounds

MEMBERS = 20_000
ROWS = 200_000
DAYS = 365
ELEMENTS = 40
# Of a large domain.
MOST_LISTED = 1000
# The parts of a member's total that one row has, so that totals reach their bounds in a few rows.
_ROWS_OF_A_TOTAL = 4
_MILLION = 1_000_000


def practice_tables(policy: Policy, folder: Path, today: datetime.date) -> dict[str, Path]:
    """Write a Parquet file for each table of a policy; return them by table.

    Args:
        policy: The policy.
        folder: Where the files are written.
        today: The day after the last one with rows.

    Raises:
        InputError: A table is answered from a prepared copy, which cannot be made up.
    """
    import duckdb  # noqa: PLC0415 - an extra

    found = {table.name: folder / f"{table.name}.parquet" for table in policy.tables}
    with duckdb.connect() as connection:
        for table in policy.tables:
            connection.execute(
                f"COPY ({rows_of(table, today)}) TO {_quoted(found[table.name])} (FORMAT parquet)"
            )
    return found


def rows_of(table: Table, today: datetime.date) -> str:
    """Return the query of DuckDB that makes the rows of a table.

    Raises:
        InputError: It is answered from a prepared copy.
    """
    bound = table.contributions
    if table.prepared is not None or (bound is not None and bound.elements):
        raise InputError(
            f"the table {table.name} is answered from a prepared copy, of which no practice rows are made"
        )
    selected = ", ".join(
        f"{expression} AS {_name(name)}" for name, expression in _columns(table, today).items()
    )
    # Members differ in how many rows they have.
    member = f"CAST(floor({MEMBERS} * pow({_share('i')}, 1.3)) AS BIGINT)"
    numbered = f"SELECT i, {member} AS m FROM range({ROWS}) AS r(i)"  # noqa: S608 - numbers of this module
    return f"SELECT {selected} FROM ({numbered}) AS rows"  # noqa: S608 - names are identifiers of a policy


def _columns(table: Table, today: datetime.date) -> dict[str, str]:
    """Return the expression of each column that questions may read."""
    looked_up = {
        column.lookup.key.name: tuple(key for key, _ in column.lookup.entries)
        for column in table.columns
        if column.lookup is not None
    }
    found = {
        column.name: _element(column, column.domain or looked_up.get(column.name), today)
        for column in table.own_columns
    }
    found |= {each.name: _value(each.type, each.bounds, each.name) for each in table.values}
    found |= {
        each.name: _value(each.type, each.bounds, each.name)
        for each in table.quantiles
        if each.name not in found
    }
    if table.time is not None:
        found[table.time.name] = _time(table.time, today)
    found[table.member] = _member(table)
    return found


def _member(table: Table) -> str:
    types = {column.name: column.type for column in table.own_columns}
    match types.get(table.member, ColumnType.STRING):
        case ColumnType.INT64:
            return "m"
        case ColumnType.STRING:
            return "'member ' || m"
    raise InputError(f"the member of the table {table.name} is neither a text nor a number")


def _element(column: Column, known: Sequence[Value] | None, today: datetime.date) -> str:
    """Return an element: chosen by the row, or where a member can have few of them by the member and one of so many.

    Args:
        column: The column.
        known: Its domain, or what is looked up by it; None: something is invented.
        today: The day after the last one.
    """
    by = "i"
    if column.delta is not None or column.attribute:
        by = f"m * 1000003 + i % {1 if column.attribute else column.delta}"
    if column.timestamps is not None:
        return _timestamp(by, column.name, today, column.timestamps.stored)
    if column.type is ColumnType.DATE and known is None:
        return _day(by, column.name, today)
    listed = [_literal(each) for each in (known or _invented(column))[:MOST_LISTED]]
    rank = f"CAST(floor(pow({len(listed) + 1}, {_share(by, column.name)})) AS BIGINT)"
    return f"list_extract([{', '.join(listed)}], {rank})"


def _invented(column: Column) -> Sequence[Value]:
    """Return elements of a column, the most frequent first."""
    match column.type:
        case ColumnType.STRING:
            return [f"{column.name} {position}" for position in range(1, ELEMENTS + 1)]
        case ColumnType.BOOL:
            return [True, False]
        case _:
            return range(1, ELEMENTS + 1)


def _literal(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value}::BIGINT"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return _quoted(value)


def _value(kind: ValueType, bounds: ValueBounds, name: str) -> str:
    """Return a value within the bounds of rows, of which a few make a member's total."""
    low, high = bounds.rows.low, bounds.rows.high
    high = max(low, min(high, -(-bounds.totals.high // _ROWS_OF_A_TOTAL)))
    # Small values are many.
    steps = f"{low} + CAST(floor({high - low + 1} * pow({_share('i', name)}, 3)) AS BIGINT)"
    quantum = bounds.quantum.size
    match kind:
        case ValueType.INT64:
            return f"CAST(({steps}) * {quantum.numerator} AS BIGINT)"
        case ValueType.DATE:
            return f"DATE '1970-01-01' + CAST(({steps}) * {quantum.numerator} AS INTEGER)"
        case ValueType.DECIMAL:
            return f"CAST(({steps}) AS DOUBLE) * {quantum.numerator} / {quantum.denominator}"


def _time(time: TimeColumn, today: datetime.date) -> str:
    if time.type == "date":
        return _day("i", time.name, today)
    if time.counts == "days":
        return f"CAST({_day('i', time.name, today)} - DATE '1970-01-01' AS BIGINT)"
    return _timestamp("i", time.name, today, None if time.type == "timestamp" else time.unit)


def _day(by: str, name: str, today: datetime.date) -> str:
    return f"DATE '{today.isoformat()}' - CAST(1 + floor({DAYS} * {_share(by, name)}) AS INTEGER)"


def _timestamp(by: str, name: str, today: datetime.date, stored: TimeUnit | None) -> str:
    """Return a timestamp, or as an integer in its unit."""
    microseconds = 86_400 * _MILLION * DAYS
    timestamp = (
        f"TIMESTAMP '{today.isoformat()} 00:00:00' - to_microseconds(CAST(1 + {microseconds - 1} * "
        f"{_share(by, name)} AS BIGINT))"
    )
    return timestamp if stored is None else f"epoch_us({timestamp}) // {stored.value}"


def _share(by: str, name: str = "") -> str:
    """Return a number from 0 to below 1 that follows from an integer and a name alone."""
    return f"((hash({by}, {_quoted(name)}) % {_MILLION}) / {float(_MILLION)})"


def _quoted(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
