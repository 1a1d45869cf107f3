"""What the data have in columns that are summed: for `gris policy check --data`.

Members' totals are those of questions, by the same SQL; but of all elements of a member, before it is bounded. They are
true counts, of the owner's data and for the owner alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb

from dp_service.queries.canonical import CanonicalQuery, canonicalise
from dp_service.queries.policy_values import total_name
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.render.sums import measures, usable_conditions
from dp_service.queries.structured import Aggregate, HistogramQuery, Measure
from dp_service.queries.tables import Column, Table, ValueColumn
from dp_service.terms import AggregateFunction
from gris_cli.policy_rows import rows_of_members
from pinot_connector.engines.parquet import quoted

_DUCKDB = DIALECTS["duckdb"]


@dataclass(frozen=True)
class Clamped:
    """How many numbers of a value column count with an end of their bounds.

    Attributes:
        column: The value column.
        by: What questions group by, whose members' totals these are; empty: one total. None: they are single rows.
        counted: How many numbers count.
        below: Those of them that are raised to the lower end.
        above: Those that are lowered to the upper end.
    """

    column: str
    by: str | None
    counted: int
    below: int
    above: int


def unusable(table: Table) -> Iterator[tuple[ValueColumn, str]]:
    """Yield the columns of which rows are left out for their value, with the condition for these rows."""
    for value in table.values:
        if conditions := _usable(table, value):
            yield value, f"NOT ({' AND '.join(conditions)})"


def clamped(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[Clamped]:
    """Count what clamping changes of rows, and of members' totals in one element: all, and of each column."""
    for value in table.values:
        yield _of_rows(connection, table, value)
        for column in (None, *(each for each in table.columns if each.group_by)):
            yield _of_totals(connection, table, value, column)


def _summing(table: Table, value: ValueColumn) -> CanonicalQuery:
    """Return a question that sums a column."""
    aggregate = Aggregate(AggregateFunction.SUM, value.name)
    question = HistogramQuery(table.name, (), Measure.DISTINCT_MEMBERS, aggregates=(aggregate,))
    return canonicalise(question, table, closed_before=None)


def _usable(table: Table, value: ValueColumn) -> list[str]:
    (summed,) = _summing(table, value).values
    return list(usable_conditions(summed, _DUCKDB))


def _of_rows(connection: duckdb.DuckDBPyConnection, table: Table, value: ValueColumn) -> Clamped:
    source, bounds = rows_of_members(table, ()), value.bounds
    number, half = f"CAST({quoted(value.name)} AS DOUBLE)", bounds.quantum.size / 2
    # A number is rounded before it is clamped.
    low, high = (float(end * bounds.quantum.size) for end in (bounds.rows.low, bounds.rows.high))
    sql = (
        f"SELECT count(*), count(*) FILTER ({number} < $low), count(*) FILTER ({number} >= $high) "  # noqa: S608
        f"FROM {source.table} WHERE {' AND '.join([source.condition, *_usable(table, value)])}"
    )
    ends = {"low": low - float(half), "high": high + float(half)}
    return Clamped(value.name, None, *_three(connection, sql, {**ends, **source.values}))


def _of_totals(
    connection: duckdb.DuckDBPyConnection, table: Table, value: ValueColumn, column: Column | None
) -> Clamped:
    source = rows_of_members(table, () if column is None else (column,))
    keys = source.member if column is None else f"{source.member}, {source.element}"
    (total,) = measures(_summing(table, value), _DUCKDB)
    name, totals = total_name(0), value.bounds.totals
    sql = (
        f"SELECT count(*), count(*) FILTER ({name} < $low), count(*) FILTER ({name} > $high) FROM ("  # noqa: S608
        f"SELECT {total} FROM {source.table} WHERE {' AND '.join([source.condition, *_usable(table, value)])} "
        f"GROUP BY {keys})"
    )
    ends = {"low": totals.low, "high": totals.high}
    found = _three(connection, sql, {**ends, **source.values})
    return Clamped(value.name, "" if column is None else column.name, *found)


def _three(
    connection: duckdb.DuckDBPyConnection, sql: str, values: dict[str, object]
) -> tuple[int, int, int]:
    counted, below, above = connection.execute(sql, values).fetchone() or (0, 0, 0)
    return int(counted), int(below), int(above)
