"""Conditions on columns as SQL, each of which a row meets or not by itself.

They are total: no row makes one of them an error, whatever it holds, and NULL meets none.
"""

from __future__ import annotations

from collections.abc import Iterator

from dp_service.queries.canonical_columns import (
    Condition,
    Every,
    OrdinalRestriction,
    PartCondition,
    PatternCondition,
    QueryColumn,
    Restriction,
    Some,
    TextRestriction,
)
from dp_service.queries.elements import date_of, timestamp_of
from dp_service.queries.filters import Value
from dp_service.queries.intervals import UNIVERSES, Interval, Intervals, gaps, is_short, parts_written
from dp_service.queries.render.columns import column_expression
from dp_service.queries.render.dialects import Dialect, literal
from dp_service.queries.render.lookups import among, keys_of
from dp_service.queries.render.time_expressions import LocalTimes, is_own_timestamp, times_within
from dp_service.terms import ColumnType


def written_condition(condition: Condition, dialect: Dialect, *, is_nested: bool) -> str:
    """Write a condition of a question or of a CASE."""
    match condition:
        case Every() | Some():
            word = " AND " if isinstance(condition, Every) else " OR "
            return f"({word.join(written_condition(each, dialect, is_nested=is_nested) for each in condition.parts)})"
        case PatternCondition():
            return dialect.matches(column_expression(condition.column, dialect), condition)
        case PartCondition(source=source):
            times = times_within(source.time, condition.times.hull)
            key = time_key(times, dialect, is_nested=is_nested, is_total=True)
            known = restriction_conditions(condition.times, dialect, is_nested=is_nested)
            part = dialect.time(key, times, source.part)
            return f"({' AND '.join([*known, among(part, condition.numbers, dialect)])})"
        case _:
            found = list(restriction_conditions(condition, dialect, is_nested=is_nested))
            return found[0] if len(found) == 1 else f"({' AND '.join(found)})"


def time_key(times: LocalTimes, dialect: Dialect, *, is_nested: bool, is_total: bool) -> str:
    """Write the column of a function of time; `is_total`: brought into the times that the function is of."""
    column = times.time.column
    key = column_of_times(column, dialect, is_nested=is_nested)
    if not is_total:
        return key
    kind = ColumnType.INT64 if column.stored is not None else column.type
    ends = (times.range.start, times.range.end - 1)
    low, last = (literal(value_of_number(end, kind), dialect) for end in ends)
    return f"(CASE WHEN {key} < {low} THEN {low} WHEN {key} > {last} THEN {last} ELSE {key} END)"


def column_of_times(column: QueryColumn, dialect: Dialect, *, is_nested: bool) -> str:
    """Write a column of times as it is compared with literals."""
    key = column_expression(column, dialect)
    if not is_own_timestamp(column):
        return key
    return dialect.timestamp_key(key) if is_nested else dialect.whole_timestamp(key)


def restriction_conditions(restriction: Restriction, dialect: Dialect, *, is_nested: bool) -> Iterator[str]:
    """Write the conditions of a restriction. NULL meets none of them, unless COALESCE replaces it."""
    column = restriction.column
    is_of_keys = column.lookup is not None and not dialect.joins_lookups
    if is_of_keys and isinstance(restriction, TextRestriction):
        # It names values and excludes none: all that the column can have are known.
        yield from keys_of(column, restriction.values, column_expression(column.key, dialect), dialect)
        return
    key = column_expression(column, dialect)
    match restriction:
        case TextRestriction():
            yield among(key, restriction.values, dialect, excluded=restriction.excluded)
        case OrdinalRestriction() if column.type is ColumnType.TIMESTAMP and column.stored is None:
            yield from _timestamp_conditions(
                dialect.timestamp_key(key) if is_nested else key, restriction.intervals, dialect
            )
        case OrdinalRestriction():
            yield from _ordinal_conditions(key, restriction, dialect)


def _ordinal_conditions(key: str, restriction: OrdinalRestriction, dialect: Dialect) -> Iterator[str]:
    """Write a set of integers as a list if it is short, and otherwise by its ends and a list of the gaps between.

    Where a gap is wide, the parts on its sides are written so, each for itself.
    """
    column = restriction.column
    kind = ColumnType.INT64 if column.stored is not None else column.type
    divisions = parts_written(restriction.intervals)
    parts = [" AND ".join(_near(key, each, kind, dialect)) for each in divisions]
    yield parts[0] if len(parts) == 1 else f"({' OR '.join(f'({each})' for each in parts)})"


def _near(key: str, intervals: Intervals, kind: ColumnType, dialect: Dialect) -> Iterator[str]:
    """Write a set of integers without wide gaps."""
    if is_short(intervals):
        yield among(key, _values(intervals, kind), dialect)
        return
    yield from _bounds(key, Interval(intervals[0].start, intervals[-1].end), kind, dialect)
    missing = gaps(intervals)
    if missing:
        yield among(key, _values(missing, kind), dialect, excluded=True)


def _timestamp_conditions(key: str, intervals: Intervals, dialect: Dialect) -> Iterator[str]:
    """Write a set of timestamps by its ends, the upper one exclusive: finer timestamps before it belong to the set.

    Between the ends only the timestamp that stands for NULL can be missing: conditions on timestamps are ranges.
    """
    yield f"{key} >= {literal(timestamp_of(intervals[0].start), dialect)}"
    yield f"{key} < {literal(timestamp_of(intervals[-1].end), dialect)}"
    missing = gaps(intervals)
    if missing:
        yield among(key, _values(missing, ColumnType.TIMESTAMP), dialect, excluded=True)


def _bounds(key: str, hull: Interval, kind: ColumnType, dialect: Dialect) -> Iterator[str]:
    """Write the ends of a set of integers, both members of the set: a narrow column can hold every number written.

    For days both ends are always written: engines can hold days, even infinite ones, that no answer can carry. Such a
    day must only drop its own row, or one member's row would decide whether there is an answer.
    """
    universe, are_days = UNIVERSES[kind], kind is ColumnType.DATE
    if hull == universe and dialect.stores_nulls and not are_days:
        yield f"{key} IS NOT NULL"
    if are_days or hull.start > universe.start:
        yield f"{key} >= {literal(value_of_number(hull.start, kind), dialect)}"
    if are_days or hull.end < universe.end:
        yield f"{key} <= {literal(value_of_number(hull.end - 1, kind), dialect)}"


def _values(intervals: tuple[Interval, ...], kind: ColumnType) -> list[Value]:
    return [value_of_number(i, kind) for interval in intervals for i in range(interval.start, interval.end)]


def value_of_number(number: int, kind: ColumnType) -> Value:
    """Return the value of a column for which an integer stands."""
    match kind:
        case ColumnType.DATE:
            return date_of(number)
        case ColumnType.TIMESTAMP:
            return timestamp_of(number)
        case ColumnType.BOOL:
            return bool(number)
        case _:
            return number
