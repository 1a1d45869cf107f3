"""Values as SQL: from a row's value to steps of the quantum, to a member's total, to what the total adds to a sum.

It is `dp_service.values` for engines, in IEEE doubles and 64-bit integers alone, which mean the same on all of them:

    steps = floor(x * d + 1/2), or floor(x / q + 1/2) for a whole quantum q, brought between the clamps of a row;
    s = the sum of a member's steps in an element, brought between the clamps of a total;
    the sum over members of 2 s, or for an average of totals of 2 s - (low + high).

In an average over rows a member counts as at most tau rows, with the sum S of the steps of all its c rows with a value,
or where c > tau with that of tau rows of their mean:

    S' = S, or floor(S * tau / c + 1/2) within tau * low and tau * high of a row;
    the sum over members of 2 S' - (low + high) min(c, tau),

all in steps of which there are at least a thousand between the ends of a row (`Clamp.finer`).

A value is brought between two whole numbers around the clamps before it is multiplied, so that nothing overflows, and a
row is clamped before anything is added up: whether a sum fails would tell of somebody's rows. A row whose value cannot
be used, or that does not meet a number's condition, adds 0 to that number, and counts in the others; a number of rows
adds 1 for each other one. A condition is a function of one row, and is evaluated before rows are added up, as the
number of steps is.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from fractions import Fraction

from dp_service.queries.answer_columns import MEMBER_COUNT_COLUMN
from dp_service.queries.canonical_columns import (
    Coordinate,
    QueryCount,
    QueryValue,
)
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.filters import INT64_MINIMUM
from dp_service.queries.policy_values import own_count_name, sum_name, total_name, used_name
from dp_service.queries.render.conditions import written_condition
from dp_service.queries.render.dialects import Dialect, identifier, literal
from dp_service.terms import GRID, ValueType
from dp_service.values.bounds import Clamp

WEIGHT = "gris_weight"


def usable_conditions(value: QueryValue, dialect: Dialect) -> Iterator[str]:
    """Write when a row's value is a number that can be summed, or a day, unless one stands for those without any."""
    if value.keeps_nulls:
        return
    name = identifier(value.name, dialect)
    if dialect.stores_nulls:
        yield f"{name} IS NOT NULL"
    if value.type is ValueType.DATE:
        # Engines can hold days, even infinite ones, that are none of the calendar's.
        yield f"{name} >= {literal(datetime.date.min, dialect)}"
        yield f"{name} <= {literal(datetime.date.max, dialect)}"
    if value.type is ValueType.DECIMAL:
        yield dialect.finite(_number(value, dialect))
    if value.null_value is not None:
        yield _is_not(value, value.null_value, dialect)


def measured(query: CanonicalQuery, dialect: Dialect) -> list[str]:
    """Return what a query calls the numbers that it takes of each member in each element."""
    totals = [identifier(total_name(place), dialect) for place in range(len(query.used_values))]
    totals += [identifier(used_name(place), dialect) for place in query.own_counts]
    counts = [identifier(MEMBER_COUNT_COLUMN, dialect)]
    return totals + counts if query.rows_summed is not None else totals or counts


def measures(query: CanonicalQuery, dialect: Dialect) -> list[str]:
    """Write these numbers: totals, how many rows some are of, and over rows or without sums the number of events."""
    numbers = [_member_total(value, dialect) for value in query.values]
    numbers += [_number_of_rows(query.values[place], dialect) for place in query.own_counts]
    if query.rows_summed is not None or not numbers:
        numbers.append("COUNT(*)")
    names = measured(query, dialect)
    return [f"{number} AS {name}" for number, name in zip(numbers, names, strict=True)]


def sums(query: CanonicalQuery, dialect: Dialect) -> Iterator[str]:
    """Write the sum of each column, over the members that are counted beside it, and then own counts."""
    for _, number, name in numbers_of_member(query, dialect):
        yield f"{over_members(number, query, dialect)} AS {name}"


def weighted_sums(query: CanonicalQuery, dialect: Dialect) -> Iterator[str]:
    """Write the same where each member has a weight, of what a query calls as its sums.

    Numbers of rows and members, and values of few steps, are on the grid. Values of many steps stay in them: rounded
    towards 0, they are no more than their part.
    """
    values: list[Coordinate | None] = [*query.values, *(None for _ in query.own_counts)]
    for value, (place, _, name) in zip(values, numbers_of_member(query, dialect), strict=True):
        weighted = f"{name} * {identifier(weight_name(query, place), dialect)}"
        if isinstance(value, QueryValue) and (value.rows is not None or value.bounds.totals.is_fine):
            # Pinot's multi-stage engine takes no minus sign before an expression.
            part = f"FLOOR(ABS(CAST({weighted} AS DOUBLE)) / {GRID})"
            weighted = f"CAST(CASE WHEN {name} < 0 THEN 0 - {part} ELSE {part} END AS BIGINT)"
        yield f"{dialect.total(weighted)} AS {name}"


def weight_name(query: CanonicalQuery, place: int) -> str:
    """Return what a query calls the weight of a member in the sum in a place: its own, or that of the count."""
    return f"gris_weight_{place + 1}" if query.values[place].has_own_weight else WEIGHT


def own_cells(query: CanonicalQuery, dialect: Dialect) -> Iterator[tuple[int, str, int]]:
    """Write a member's cells of each sum with weights of its own, behind its place, and how much counts in full."""
    for place, value in enumerate(query.values):
        if not value.has_own_weight:
            continue
        totals = value.bounds.totals
        if value.has_own_count:
            most = _rows_of(value) or 1
            cell = f"({at_most(most, used_name(place), dialect)})"
        else:
            most = totals.largest // totals.cell_step
            cell = f"ABS({_clamped(identifier(total_name(place), dialect), totals)})"
            if totals.cell_step > 1:
                cell = f"CAST(CEIL(CAST({cell} AS DOUBLE) / {totals.cell_step}) AS BIGINT)"
        yield place, cell, most


def numbers_of_member(query: CanonicalQuery, dialect: Dialect) -> Iterator[tuple[int, str, str]]:
    """Write what a member adds to each sum, and to each own count, behind its place and with what a query calls it."""
    for place, value in enumerate(query.values):
        tau = query.rows_summed if isinstance(value, QueryCount) else value.rows
        if tau is not None:
            added = _centred_rows(value, place, tau, dialect)
        else:
            added = _of_total(value, place, dialect)
            if value.has_own_count:
                # A member without a usable row adds nothing, and not twice a total of 0 less low + high.
                added = f"({added}) * ({at_most(1, used_name(place), dialect)})"
        yield place, added, identifier(sum_name(place), dialect)
    for number, place in enumerate(query.own_counts):
        counted = at_most(_rows_of(query.values[place]) or 1, used_name(place), dialect)
        yield place, counted, identifier(own_count_name(number), dialect)


def _rows_of(value: Coordinate) -> int | None:
    return value.rows if isinstance(value, QueryValue) else None


def at_most(most: int, name: str, dialect: Dialect) -> str:
    """Write the smaller of a number and a bound: LEAST would return a float on Pinot.

    What is 0 for some rows is added up in terms of it, and never as CASE .. ELSE 0 END. From 1.2 on Pinot's planner
    would turn such a CASE (Calcite's AggregateCaseToFilterRule) into a filter of the sum, and where no row of a group
    passes that, answer NULL: one row would decide whether the answer can be read. COALESCE would not help: to the
    planner, whose columns are never NULL, a group's sum is not either, so it may leave the COALESCE out.
    """
    number = identifier(name, dialect)
    return f"CASE WHEN {number} > {most} THEN {most} ELSE {number} END"


def over_members(number: str, query: CanonicalQuery, dialect: Dialect) -> str:
    """Write the sum of a number over members; all rows together may be none."""
    total = dialect.total(number)
    return total if query.dimensions else f"COALESCE({total}, 0)"


def _member_total(value: Coordinate, dialect: Dialect) -> str:
    """Write the sum of a member's rows in an element, each of them rounded and clamped, or their number."""
    if isinstance(value, QueryCount):
        return _number_of_rows(value, dialect)
    steps = _clamped(_steps(value, dialect), value.bounds.rows)
    return dialect.total(_used_or_not(value, steps, dialect))


def _number_of_rows(value: Coordinate, dialect: Dialect) -> str:
    """Write how many of a member's rows in an element meet the condition and have a value that can be used."""
    number = _used_or_not(value, "1", dialect)
    return "COUNT(*)" if number == "1" else dialect.total(number)


def _used_or_not(value: Coordinate, number: str, dialect: Dialect) -> str:
    """Write a whole number for the rows that meet the condition and whose value can be used, and 0 for the others."""
    conditions = list(usable_conditions(value, dialect)) if isinstance(value, QueryValue) else []
    if value.condition is not None:
        conditions.append(written_condition(value.condition, dialect, is_nested=True))
    if conditions:
        number = f"CASE WHEN {' AND '.join(conditions)} THEN {number} ELSE 0 END"
    return number if number == "1" else f"CAST({number} AS BIGINT)"


def row_steps(value: QueryValue, dialect: Dialect, integer: str = "BIGINT") -> str:
    """Write how many steps a row counts with: rounded, and within the clamps of rows; `integer` is their type."""
    is_day = value.type is ValueType.DATE
    steps = dialect.days(identifier(value.name, dialect)) if is_day else _steps(value, dialect)
    return f"CAST({_clamped(steps, value.bounds.rows)} AS {integer})"


def within_totals(number: str, value: QueryValue) -> str:
    """Write a number of a member, brought between the clamps of totals."""
    return _clamped(number, value.bounds.totals)


def _of_total(value: Coordinate, place: int, dialect: Dialect) -> str:
    """Write what the total of one member adds to the sum of a column: 2 s, or 2 s - (low + high)."""
    totals = value.bounds.totals
    clamped = _clamped(identifier(total_name(place), dialect), totals)
    return f"2 * {clamped} - ({totals.centre})" if totals.is_centred else f"2 * {clamped}"


def _centred_rows(value: Coordinate, place: int, tau: int, dialect: Dialect) -> str:
    """Write what the rows of one member add to the sum of a column, at most tau of them: 2 S' - (low + high) rows."""
    of_row, total = value.bounds.rows, identifier(total_name(place), dialect)
    rows, parts = of_row.finer, of_row.parts
    if parts > 1:
        total = f"({total} * {parts})"
    count = identifier(used_name(place) if value.has_own_count else MEMBER_COUNT_COLUMN, dialect)
    mean = f"FLOOR(CAST({total} AS DOUBLE) * {tau} / {count} + 0.5)"
    of_tau = f"CAST({_clamped(mean, Clamp(rows.low * tau, rows.high * tau))} AS BIGINT)"
    is_more = f"CASE WHEN {count} > {tau} THEN"
    return f"2 * ({is_more} {of_tau} ELSE {total} END) - ({rows.centre}) * ({is_more} {tau} ELSE {count} END)"


def _number(value: QueryValue, dialect: Dialect) -> str:
    return f"CAST({identifier(value.name, dialect)} AS DOUBLE)"


def _is_not(value: QueryValue, null_value: Fraction, dialect: Dialect) -> str:
    """Write that a value is not the one that stands for NULL."""
    name = identifier(value.name, dialect)
    if null_value == INT64_MINIMUM:
        # No number is below, and not every engine reads this one.
        return f"{name} >= {INT64_MINIMUM + 1}"
    if value.type is ValueType.INT64:
        return f"{name} <> {null_value}"
    return f"{_number(value, dialect)} <> {_quotient(null_value)}"


def _quotient(number: Fraction) -> str:
    """Write a number as the double that is nearest to it: a whole one, or a division of two."""
    if number.denominator == 1:
        return str(number)
    return f"CAST({number.numerator} AS DOUBLE) / {number.denominator}"


def _steps(value: QueryValue, dialect: Dialect) -> str:
    """Write how many steps a value is, a double; within the clamps it is what `Quantum.steps_of` returns."""
    size = value.bounds.quantum.size
    if value.type is ValueType.INT64 and size == 1:
        return _used(value, dialect)
    number = _within(_used(value, dialect), value)
    scaled = f"{number} / {size}" if size.denominator == 1 else f"{number} * {size.denominator}"
    return f"FLOOR({number if size == 1 else scaled} + 0.5)"


def _used(value: QueryValue, dialect: Dialect) -> str:
    """Write the number that counts: where rows without a usable one are kept, the one that stands for NULL."""
    number = _number(value, dialect)
    if not value.keeps_nulls or value.null_value is None:
        return number
    is_usable = f"{identifier(value.name, dialect)} IS NOT NULL"
    if value.type is ValueType.DECIMAL:
        finite = dialect.finite(number)
        is_usable = f"{is_usable} AND {finite}" if dialect.stores_nulls else finite
    elif not dialect.stores_nulls:
        # Such an engine stores the number itself.
        return number
    return f"CASE WHEN {is_usable} THEN {number} ELSE {_quotient(value.null_value)} END"


def _within(number: str, value: QueryValue) -> str:
    """Write a number brought between two whole numbers that lie around the clamps of a row."""
    rows, size = value.bounds.rows, value.bounds.quantum.size
    return _clamped(number, Clamp(math.floor(rows.low * size) - 1, math.ceil(rows.high * size) + 1))


def _clamped(number: str, clamp: Clamp) -> str:
    """Write a number brought between two ends: LEAST and GREATEST are not the same on every engine."""
    low, high = clamp.low, clamp.high
    return f"(CASE WHEN {number} < {low} THEN {low} WHEN {number} > {high} THEN {high} ELSE {number} END)"
