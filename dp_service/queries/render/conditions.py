"""Which rows count in a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from dp_service.queries.answer_columns import BUCKET_COLUMN
from dp_service.queries.canonical_query import (
    CanonicalQuery,
    Condition,
    Every,
    OrdinalRestriction,
    PatternCondition,
    QueryBucket,
    QueryColumn,
    Restriction,
    Some,
    TextRestriction,
    column_conditions,
)
from dp_service.queries.elements import date_of, timestamp_of
from dp_service.queries.filters import MAXIMUM_TEXT_LENGTH, Value
from dp_service.queries.intervals import UNIVERSES, Interval, Intervals, gaps, is_short, parts_written
from dp_service.queries.read_columns import MISSING_MEMBER
from dp_service.queries.render.bucket_expressions import bucketed_times
from dp_service.queries.render.dialects import Dialect, identifier, literal
from dp_service.queries.render.expressions import column_expression, grouping_keys
from dp_service.queries.render.lookups import among, keys_of
from dp_service.queries.render.sums import usable_conditions
from dp_service.queries.resolution import NAMES_TO_COME, Resolution
from dp_service.terms import ColumnType, Element, Scalar


def where_condition(resolution: Resolution, dialect: Dialect, *, is_nested: bool = False) -> str:
    """Write which rows count in a question."""
    conditions = [
        *_member_conditions(resolution.query, dialect),
        *conditions_of_question(resolution, dialect, is_nested=is_nested),
        *text_conditions(resolution, dialect),
        *_name_conditions(resolution, dialect, is_nested=is_nested),
        *(each for value in resolution.query.used_values for each in usable_conditions(value, dialect)),
    ]
    return " AND ".join(conditions)


def conditions_of_question(resolution: Resolution, dialect: Dialect, *, is_nested: bool) -> Iterator[str]:
    """Write the restrictions of a question's columns, and its other conditions."""
    for restriction in resolution.query.restrictions:
        yield from _conditions(restriction, dialect, is_nested=is_nested)
    for condition in resolution.query.conditions:
        yield _written(condition, dialect, is_nested=is_nested)


def _written(condition: Condition, dialect: Dialect, *, is_nested: bool) -> str:
    """Write a condition that is no set of one column's values."""
    match condition:
        case Every() | Some():
            word = " AND " if isinstance(condition, Every) else " OR "
            return f"({word.join(_written(each, dialect, is_nested=is_nested) for each in condition.parts)})"
        case PatternCondition():
            return dialect.matches(column_expression(condition.column, dialect), condition)
        case _:
            found = list(_conditions(condition, dialect, is_nested=is_nested))
            return found[0] if len(found) == 1 else f"({' AND '.join(found)})"


def _name_conditions(resolution: Resolution, dialect: Dialect, *, is_nested: bool) -> Iterator[str]:
    """Leave only the names that a first look has found."""
    names, columns = resolution.names, resolution.query.dimensions
    if names is None:
        return
    is_of_keys = not dialect.joins_lookups and any(column.lookup is not None for column in columns)
    if is_of_keys and names != NAMES_TO_COME:
        yield _is_one_of(resolution.query, columns, names, dialect, is_nested=is_nested)
        return
    keys = grouping_keys(resolution.query, dialect, is_nested=is_nested)
    if names == NAMES_TO_COME:
        yield f"{keys[0] if len(keys) == 1 else '(' + ', '.join(keys) + ')'} IN (:names)"
    elif len(keys) == 1:
        values = [_value_of(name[0], columns[0].type) for name in names]
        yield among(keys[0], values, dialect)
    else:
        named = [
            " AND ".join(_is_named(resolution.query, columns, name, dialect, is_nested=is_nested))
            for name in names
        ]
        yield f"({' OR '.join(f'({each})' for each in named)})"


def _is_one_of(
    query: CanonicalQuery,
    columns: Sequence[QueryColumn],
    names: Sequence[Element],
    dialect: Dialect,
    *,
    is_nested: bool,
) -> str:
    """Write that columns have the values of one of some names: the keys of each looked-up value only once."""
    place = next((i for i, column in enumerate(columns) if column.lookup is not None), None)
    if place is None:
        named = [
            " AND ".join(_is_named(query, columns, name, dialect, is_nested=is_nested)) for name in names
        ]
        return f"({' OR '.join(f'({each})' for each in named)})"
    column, others = columns[place], [*columns[:place], *columns[place + 1 :]]
    alternatives = []
    for text in dict.fromkeys(name[place] for name in names):
        key = column_expression(column.of_table, dialect)
        conditions = list(keys_of(column, [str(text)], key, dialect))
        if others:
            rest = [(*name[:place], *name[place + 1 :]) for name in names if name[place] == text]
            conditions.append(_is_one_of(query, others, rest, dialect, is_nested=is_nested))
        alternatives.append(" AND ".join(conditions) or "1 = 1")
    return f"({' OR '.join(f'({each})' for each in alternatives)})"


def _is_named(
    query: CanonicalQuery, columns: Sequence[QueryColumn], name: Element, dialect: Dialect, *, is_nested: bool
) -> Iterator[str]:
    """Write that the columns have the values of an element; not every engine compares tuples."""
    for column, scalar in zip(columns, name, strict=True):
        if query.bucket is not None and column.name == BUCKET_COLUMN:
            yield _is_in_bucket(query, query.bucket, date_of(int(scalar)), dialect, is_nested=is_nested)
        else:
            yield f"{column_expression(column, dialect)} = {literal(_value_of(scalar, column.type), dialect)}"


def _is_in_bucket(
    query: CanonicalQuery, bucket: QueryBucket, first_day: date, dialect: Dialect, *, is_nested: bool
) -> str:
    """Write the range of a bucket's times: a function could fail on times that another condition leaves out."""
    ranges = [
        " AND ".join(_conditions(OrdinalRestriction(bucket.column, (each,)), dialect, is_nested=is_nested))
        for each in bucketed_times(query, bucket).values_in(first_day)
    ]
    return ranges[0] if len(ranges) == 1 else f"({' OR '.join(f'({each})' for each in ranges)})"


def _value_of(scalar: Scalar, kind: ColumnType) -> Value:
    """Return a value of an element in the form that it has in questions."""
    return scalar if isinstance(scalar, str) else _value(scalar, kind)


def _member_conditions(query: CanonicalQuery, dialect: Dialect) -> Iterator[str]:
    """Leave out rows without a member; if the policy lists the member column, a restriction already does.

    If it does not, and the engine stores no NULL, the query assumes that the member is a text; the engine has to check
    that (`reads`).
    """
    if any(restriction.column.name == query.member for restriction in query.restrictions):
        return
    member = identifier(query.member, dialect)
    yield (
        f"{member} IS NOT NULL" if dialect.stores_nulls else f"{member} <> {literal(MISSING_MEMBER, dialect)}"
    )


def text_conditions(resolution: Resolution, dialect: Dialect) -> Iterator[str]:
    """Leave out texts that a table may hold but an answer cannot; a list of values has none of them."""
    lists = {
        each.column: each.excluded
        for each in resolution.query.restrictions
        if isinstance(each, TextRestriction)
    }
    texts = [each for each in resolution.query.dimensions if each.type is ColumnType.STRING]
    shown = [each for each in texts if lists.get(each, True)]
    if dialect.stores_long_texts:
        for column in shown:
            yield f"length({column_expression(column, dialect)}) <= {MAXIMUM_TEXT_LENGTH}"
    if dialect.well_formed is not None:
        # A text that is not UTF-8 equals no listed text, but meets conditions that only exclude some, also on members.
        excluding = [column for column, excluded in lists.items() if excluded]
        # Nor does it equal a key, but a key that is none of the file's may count.
        keys = [column.lookup.key for column in (*texts, *lists) if column.lookup is not None]
        # Where another alternative holds, its row is left out all the same, as engines do that hold no such text.
        alternatives = [each.column for one in resolution.query.conditions for each in column_conditions(one)]
        named = dict.fromkeys(
            [*shown, *excluding, *(each for each in keys if each.type is ColumnType.STRING)]
        )
        for column in named:
            yield dialect.well_formed(column_expression(column, dialect))
        for column in dict.fromkeys(each for each in alternatives if each.type is ColumnType.STRING):
            text = column_expression(column, dialect)
            if column not in named:
                # NULL is left out of this alternative alone.
                yield f"({text} IS NULL OR {dialect.well_formed(text)})"


def _conditions(restriction: Restriction, dialect: Dialect, *, is_nested: bool) -> Iterator[str]:
    """Write the conditions of a restriction. NULL meets none of them, unless COALESCE replaces it."""
    column = restriction.column
    is_of_keys = column.lookup is not None and not dialect.joins_lookups
    if is_of_keys and isinstance(restriction, TextRestriction):
        # It names values and excludes none: all that the column can have are known.
        yield from keys_of(column, restriction.values, column_expression(column.of_table, dialect), dialect)
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
        yield f"{key} >= {literal(_value(hull.start, kind), dialect)}"
    if are_days or hull.end < universe.end:
        yield f"{key} <= {literal(_value(hull.end - 1, kind), dialect)}"


def _values(intervals: tuple[Interval, ...], kind: ColumnType) -> list[Value]:
    return [_value(i, kind) for interval in intervals for i in range(interval.start, interval.end)]


def _value(number: int, kind: ColumnType) -> Value:
    match kind:
        case ColumnType.DATE:
            return date_of(number)
        case ColumnType.TIMESTAMP:
            return timestamp_of(number)
        case ColumnType.BOOL:
            return bool(number)
        case _:
            return number
