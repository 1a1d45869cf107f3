"""The columns that a query names, and what it assumes about each; an engine has to check these assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dp_service.queries.canonical_columns import (
    ColumnCondition,
    OrdinalRestriction,
    PartCondition,
    QueryValue,
)
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.columns import Column
from dp_service.queries.filters import Value
from dp_service.queries.intervals import Interval, ordinal, written
from dp_service.queries.tables import Table
from dp_service.queries.times import TimeUnit
from dp_service.terms import ColumnType, ValueType

MISSING_MEMBER = "null"
"""What Apache Pinot stores in a text column where there is no member, if its schema says nothing else."""


@dataclass(frozen=True)
class ReadColumn:
    """A column that a query names, and what the query assumes about it.

    Attributes:
        name: The name of the column.
        type: Its type; None: it is the member column and the policy does not list it. For an engine that stores no NULL
            it is then a text.
        null_value: What such an engine stores where a value is missing; None: something that is no day.
        numbers: Spans the integers that the column is compared with; None: there are none.
        stored: The unit of timestamps that are stored as integers; None: there are none, or the engine's own type is
            expected.
    """

    name: str
    type: ColumnType | None
    null_value: Value | None
    numbers: Interval | None
    stored: TimeUnit | None = None


@dataclass(frozen=True)
class ReadValue:
    """A column that a query sums.

    `null_value` is what an engine without NULL stores where a value is missing; None: an infinity, or nothing that is a
    number.
    """

    name: str
    type: ValueType
    null_value: Fraction | None


def values_read(query: CanonicalQuery) -> tuple[ReadValue, ...]:
    """Return the columns that the query of a question sums, in the order of the sums; a number of rows has no name."""
    return tuple(
        ReadValue(value.name, value.type, value.null_value)
        if isinstance(value, QueryValue)
        else ReadValue("", ValueType.INT64, None)
        for value in query.values
    )


def quantiles_read(query: CanonicalQuery) -> tuple[ReadValue, ...]:
    """Return the column that a question's quantiles are of, if it asks for any."""
    asked = query.quantiles
    return () if asked is None else (ReadValue(asked.value.name, asked.value.type, asked.value.null_value),)


def bins_read(query: CanonicalQuery) -> tuple[ReadValue, ...]:
    """Return the columns whose bins a question groups by."""
    values = (value for each in query.dimensions for value in each.values_read)
    return tuple(ReadValue(each.name, each.type, each.null_value) for each in values)


def columns_read(query: CanonicalQuery, table: Table) -> tuple[ReadColumn, ...]:
    """Return the columns that the query of a question to this table names, each once, by name."""
    conditions: dict[str, list[ColumnCondition]] = {}
    for each in query.column_conditions:
        conditions.setdefault(each.column.name, []).append(each)
    dimensions = {each.name for dimension in query.dimensions for each in dimension.read_from}
    restricted = {each.column.key.name for each in query.column_conditions}
    listed = {column.name: column for column in table.columns}
    keys = _looked_up(query)
    return tuple(
        _read(name, listed.get(name), conditions.get(name, ()), keys.get(name))
        for name in sorted({*dimensions, *restricted, query.member})
    )


def _looked_up(query: CanonicalQuery) -> Mapping[str, Interval]:
    """Return the span of the integers that each column of keys is compared with, to look them up."""
    columns = [*query.dimensions, *(each.column for each in query.column_conditions)]
    lookups = [each.lookup for each in columns if each.lookup is not None]
    spans = [
        (each.key.name, Interval(ordinal(each.entries[0][0]), ordinal(each.entries[-1][0]) + 1))
        for each in lookups
        if each.key.type is ColumnType.INT64
    ]
    return {name: _hull(each for of, each in spans if of == name) for name, _ in spans}


def _hull(intervals: Iterable[Interval]) -> Interval:
    found = list(intervals)
    return Interval(min(each.start for each in found), max(each.end for each in found))


def _read(
    name: str, column: Column | None, conditions: Iterable[ColumnCondition], keys: Interval | None
) -> ReadColumn:
    if column is None:
        # Only the member column can be named without being listed.
        return ReadColumn(name, None, MISSING_MEMBER, None)
    stored = None if column.timestamps is None else column.timestamps.stored
    numbers = [each for each in (*map(_numbers, conditions), keys) if each is not None]
    return ReadColumn(name, column.type, column.null_value, _hull(numbers) if numbers else None, stored)


def _numbers(condition: ColumnCondition) -> Interval | None:
    if isinstance(condition, PartCondition):
        condition = condition.times
    if not isinstance(condition, OrdinalRestriction):
        return None
    column = condition.column
    if column.type is not ColumnType.INT64 and column.stored is None:
        return None
    return written(condition.intervals, column.universe)
