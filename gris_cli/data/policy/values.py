"""What the data have in columns that are summed, or have quantiles: for `gris check --data`.

Members' totals are those of questions, by the same SQL; but of all elements of a member, before it is bounded. They are
true counts, of the owner's data and for the owner alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import duckdb

from dp_service.queries.asked_numbers import AskedNumber, AskedQuantile, Measure, sum_of
from dp_service.queries.canonical import canonicalise
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.columns import Column
from dp_service.queries.coordinates import query_value
from dp_service.queries.policy_values import total_name
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.render.quantiles import member_value
from dp_service.queries.render.sums import measures, usable_conditions
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from dp_service.queries.value_columns import QuantileColumn, ValueColumn
from dp_service.terms import MemberValue, RankFunction, ValueType
from dp_service.values.bounds import Clamp
from gris_cli.data.policy.rows import MemberRows, reading_column, rows_of_members
from pinot_connector.engines.parquet import quoted

_DUCKDB = DIALECTS["duckdb"]
_Valued: TypeAlias = ValueColumn | QuantileColumn


SUMS, QUANTILES = "sums", "quantiles"


@dataclass(frozen=True)
class Clamped:
    """How many numbers of a value column count with an end of their bounds.

    Attributes:
        column: The value column, or that of quantiles.
        by: What questions group by, whose members' totals these are; empty: one total. None: they are single rows.
        counted: How many numbers count.
        below: Those of them that are raised to the lower end.
        above: Those that are lowered to the upper end.
        of: What the bounds are for, since a column may be summed and have quantiles: "sums" or "quantiles".
        what: What is counted, in one word or two.
        size: What the numbers add up to, each without its sign; None: more than a double holds, or they are of
            quantiles, which no size changes.
        raised_by: How much is added to those below the lower end, together.
        lowered_by: How much is taken from those above the upper end, together.
    """

    column: str
    by: str | None
    counted: int
    below: int
    above: int
    of: str = SUMS
    what: str = "row"
    size: float | None = None
    raised_by: float | None = None
    lowered_by: float | None = None


def unusable(table: Table) -> Iterator[tuple[_Valued, str]]:
    """Yield the columns of which rows are left out for their value, with the condition for these rows."""
    for value in table.numbers:
        if conditions := _usable(value):
            yield value, f"NOT ({' AND '.join(conditions)})"


def clamped(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[Clamped]:
    """Count what clamping changes of rows, and of members' totals in one element: all, and of each column."""
    for value in table.numbers:
        with reading_column(value.name):
            yield from _clamped_of(connection, table, value)


def _clamped_of(connection: duckdb.DuckDBPyConnection, table: Table, value: _Valued) -> Iterator[Clamped]:
    yield _of_rows(connection, table, value)
    if value.type is ValueType.DATE:
        return
    for column in (None, *(each for each in table.columns if each.group_by)):
        yield _of_totals(connection, table, value, column)


def _asking(table: Table, value: _Valued) -> CanonicalQuery:
    """Return a question that sums a column, or asks for the largest total of a member."""
    aggregates: tuple[AskedNumber, ...] = ()
    quantiles: tuple[AskedQuantile, ...] = ()
    if isinstance(value, QuantileColumn):
        quantiles = (AskedQuantile(RankFunction.LARGEST, value.name, of=MemberValue.TOTAL),)
    else:
        aggregates = (sum_of(value.name),)
    question = HistogramQuery(
        table.name, (), Measure.DISTINCT_MEMBERS, aggregates=aggregates, quantiles=quantiles
    )
    return canonicalise(question, table, closed_before=None)


def _of_member(table: Table, value: _Valued) -> str:
    """Return how a query writes the value of a member that counts, before it is clamped."""
    query = _asking(table, value)
    if query.quantiles is None:
        return measures(query, _DUCKDB)[0]
    return f"{member_value(query.quantiles, _DUCKDB)} AS {total_name(0)}"


def _usable(value: _Valued) -> list[str]:
    """Return which rows the column's own numbers are of, also where the others count without it."""
    return list(usable_conditions(query_value(value), _DUCKDB))


def _of_rows(connection: duckdb.DuckDBPyConnection, table: Table, value: _Valued) -> Clamped:
    source, bounds = rows_of_members(table, ()), value.bounds
    held = _DUCKDB.days(quoted(value.name)) if value.type is ValueType.DATE else quoted(value.name)
    number, half = f"CAST({held} AS DOUBLE)", bounds.quantum.size / 2
    # A number is rounded before it is clamped.
    low, high = (float(end * bounds.quantum.size) for end in (bounds.rows.low, bounds.rows.high))
    sql = (
        f"SELECT {_counted(f'{number} < $low - $half', f'{number} >= $high + $half', number)} "  # noqa: S608
        f"FROM {source.table} WHERE {' AND '.join([source.condition, *_usable(value)])}"
    )
    found = connection.execute(
        sql, {"low": low, "high": high, "half": float(half), **source.values}
    ).fetchone()
    return _clamped(value, None, found, "row", 1.0)


def _of_totals(
    connection: duckdb.DuckDBPyConnection, table: Table, value: _Valued, column: Column | None
) -> Clamped:
    by = "" if column is None else column.name
    source = rows_of_members(table, () if column is None else (column,))
    keys = source.member if column is None else f"{source.member}, {source.element}"
    return _of_groups(connection, table, value, (by, source, keys), value.bounds.totals)


def _of_groups(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    value: _Valued,
    groups: tuple[str, MemberRows, str],
    totals: Clamp,
) -> Clamped:
    """Count what bounds change of members' values in groups: what these are called, of which rows, by which keys."""
    by, source, keys = groups
    name = total_name(0)
    condition = " AND ".join([source.condition, *_usable(value)])
    sql = (
        f"SELECT {_counted(f'{name} < $low', f'{name} > $high', name)} FROM ("  # noqa: S608
        f"SELECT {_of_member(table, value)} FROM {source.table} WHERE {condition} GROUP BY {keys})"
    )
    ends = {"low": totals.low, "high": totals.high}
    found = connection.execute(sql, {**ends, **source.values}).fetchone()
    return _clamped(value, by, found, "member total", float(value.bounds.quantum.size))


def _counted(below: str, above: str, number: str) -> str:
    """Write how many numbers there are, below and above; and what they add up to, and each end adds or takes."""
    return (
        f"count(*), count(*) FILTER ({below}), count(*) FILTER ({above}), sum(abs({number})), "
        f"sum($low - {number}) FILTER ({below}), sum({number} - $high) FILTER ({above})"
    )


def _clamped(value: _Valued, by: str | None, found: Any, what: str, unit: float) -> Clamped:
    """Return what `_counted` found, its sums in units."""
    counted, below, above, *sums = found
    clamped = Clamped(value.name, by, int(counted), int(below), int(above), what=what)
    if isinstance(value, QuantileColumn):
        return replace(clamped, of=QUANTILES)
    size, raised_by, lowered_by = (unit * float(each or 0) for each in sums)
    if not math.isfinite(size):
        return clamped
    return replace(clamped, size=size, raised_by=raised_by, lowered_by=lowered_by)
