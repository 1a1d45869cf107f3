"""What a question adds up beside its count: each coordinate of its release once, and of which of them each number is.

A coordinate adds up one number of each member in each element, or of its rows: the total of a value column, also in the
rows alone that meet a condition, or how many rows there are, or whether there is one. All are bounded as sums are, so
the argument of `mechanisms.aggregates.bound_moments` holds for them: which rows count, in which elements a member
counts, and with how many rows, is decided before by the question alone, and a condition by each row alone.

The sum of a column is 0 for a member without a row that has a value and meets the condition. An average, which 0 would
distort, has a count of its own. Both count as many rows of a member as the policy says of the column, or else of the
table; a count of rows beside one of members is a sum, too, of a 1 for each row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dp_service.parameters.numbers import THE_COUNT, Average, Computed, Form
from dp_service.queries.asked_numbers import Measure, Part
from dp_service.queries.canonical_bytes import condition_bytes, coordinate_bytes
from dp_service.queries.canonical_columns import (
    Condition,
    Coordinate,
    Every,
    QueryCount,
    QueryValue,
)
from dp_service.queries.canonical_conditions import conditions_of
from dp_service.queries.columns import Nulls
from dp_service.queries.filters import Filter
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from dp_service.queries.value_columns import QuantileColumn, ValueColumn
from dp_service.terms import AggregateFunction
from dp_service.values.bounds import Clamp, ValueBounds
from dp_service.values.quantum import Quantum


@dataclass(frozen=True)
class AddedUp:
    """The coordinates of a question, in an order that no spelling changes.

    Attributes:
        coordinates: Each once: columns by name, then what has a condition, and numbers of rows.
        numbers: For each the number of its condition, by the order in which the question names them, from 1 on; 0: it
            has none.
        places: For each number of the question the places of its parts, or THE_COUNT.
        rows: For each coordinate how many rows of a member count in full in it, in all elements together; None: the
            policy does not say so.
    """

    coordinates: tuple[Coordinate, ...]
    numbers: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]
    rows: tuple[int | None, ...]


def added_up(query: HistogramQuery, table: Table, shares: Fraction) -> AddedUp:
    """Return what a question adds up beside its count; `shares` are those of `row_shares`.

    Raises:
        RefusedByPolicyError: The policy does not list the values of a column, or offers no count of rows.
        QuestionError: No row can meet a condition.
    """
    found: dict[bytes, tuple[Coordinate, int, int | None]] = {}
    conditions: dict[bytes, int] = {}

    def name_of(part: Part, form: Form[Part]) -> bytes:
        """Return the name of a part's coordinate, which is taken up; empty: it is the count."""
        if part == query.the_count:
            return b""
        condition, number = _condition(part.condition, table), 0
        if condition is not None:
            number = conditions.setdefault(condition_bytes(condition), len(conditions) + 1)
        # An average has a coordinate of its own: beside it a sum must not become one of other rows.
        coordinate = _coordinate(part, condition, isinstance(form, Average), query, table, shares=shares)
        name = coordinate_bytes(coordinate)
        found.setdefault(name, (coordinate, number, _rows_in_full(coordinate, query, table)))
        return name

    of = [
        tuple(name_of(part, form) for form in _released(each.form) for part in form.parts)
        for each in query.aggregates
    ]
    order = sorted(found, key=lambda name: (*_rank(found[name][0]), name))
    in_order = [found[name] for name in order]
    return AddedUp(
        tuple(coordinate for coordinate, _, _ in in_order),
        tuple(number for _, number, _ in in_order),
        tuple(tuple(order.index(name) if name else THE_COUNT for name in names) for names in of),
        tuple(rows for _, _, rows in in_order),
    )


def _released(form: Form[Part]) -> tuple[Form[Part], ...]:
    """Return the numbers that are released for one that a question asks for."""
    return form.numbers if isinstance(form, Computed) else (form,)


def query_value(column: ValueColumn | QuantileColumn) -> QueryValue:
    """Return a column whose values a question needs."""
    keeps_nulls = column.nulls is Nulls.KEEP
    return QueryValue(column.name, column.type, column.bounds, keeps_nulls, column.null_value)


def _rank(coordinate: Coordinate) -> tuple[int, str]:
    is_plain = isinstance(coordinate, QueryValue) and coordinate.condition is None
    return (0, coordinate.name) if is_plain and isinstance(coordinate, QueryValue) else (1, "")


def _condition(filters: tuple[Filter, ...], table: Table) -> Condition | None:
    """Return the condition of a number; None: it has none, or every row meets it."""
    found = conditions_of(filters, table)
    if not found:
        return None
    return found[0] if len(found) == 1 else Every(found)


def _coordinate(
    part: Part,
    condition: Condition | None,
    averaged: bool,
    query: HistogramQuery,
    table: Table,
    *,
    shares: Fraction,
) -> Coordinate:
    """Return of what a number is."""
    counted = _COUNTED.get(part.function)
    if counted is not None:
        most = 1 if counted is Measure.DISTINCT_MEMBERS else table.tau(Measure.EVENTS, shares)
        bounds = ValueBounds(Quantum(Fraction(1)), Clamp(0, 1), Clamp(0, most))
        is_sum = counted is not query.measure and not averaged
        return QueryCount(counted, bounds.of_sum(most) if is_sum else bounds, condition)
    column = table.value(part.column)
    value = replace(query_value(column), condition=condition)
    of_rows = _is_of_rows(query)
    if averaged:
        rows = table.rows_with_value(column, shares) if of_rows else None
        return replace(value, has_own_count=True, rows=rows)
    is_bounded = column.rows is not None or table.measures.counts_rows
    rows = table.rows_with_value(column, shares) if of_rows and is_bounded else None
    return replace(value, bounds=value.bounds.of_sum(rows))


def _is_of_rows(query: HistogramQuery) -> bool:
    return query.over_rows or query.measure is Measure.EVENTS


def _rows_in_full(coordinate: Coordinate, query: HistogramQuery, table: Table) -> int | None:
    if isinstance(coordinate, QueryCount):
        return (
            table.measures.rows
            if coordinate.counted is Measure.EVENTS and coordinate.has_own_weight
            else None
        )
    return (table.value(coordinate.name).rows or table.measures.rows) if _is_of_rows(query) else None


_COUNTED = {
    AggregateFunction.MEMBERS: Measure.DISTINCT_MEMBERS,
    AggregateFunction.ROWS: Measure.EVENTS,
}
