"""The canonical form: questions with the same meaning become equal, and others never do.

All conditions on a column become one restriction: the set of values that a row may have there. Sets have one form
each (sorted texts, or intervals of integers), so order, repetition, BETWEEN or comparisons, IN or `=`, and time
ranges or filters on the time column make no difference. How NULL is treated is part of the meaning: a column
that drops NULLs has a restriction wherever the question mentions it, which leaves the null value out. Over a known
domain each group-by column is restricted to its values in it, so that neither a condition that all of them meet nor a
value outside makes a difference.

The order of dimensions stays significant although the cells are the same: an element is a tuple in that order.
A question without dimensions asks for one total: its element has no values, and every row that counts is in it.

k and omit_counts only cut or price the answer, and are no part of the meaning.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

from dp_service.bounding.order import table_salt
from dp_service.queries.canonical_bytes import _ROWS_OF_A_MEMBER
from dp_service.queries.canonical_query import (
    CanonicalQuery,
    OrdinalRestriction,
    QueryBucket,
    QueryColumn,
    QueryLookup,
    QueryQuantiles,
    QueryValue,
    Restriction,
    TextRestriction,
)
from dp_service.queries.columns import Column, Nulls
from dp_service.queries.domains import restricted_values
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import VALUES_OF, Bound, Filter, In, NotIn, Range, TimeRange, Value
from dp_service.queries.intervals import Interval, Intervals, complement, intersection, ordinal, points
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from dp_service.queries.times import TimeColumn, Timestamps
from dp_service.queries.value_columns import QuantileColumn, ValueColumn, ValueNulls
from dp_service.terms import ColumnType, MemberValue


def canonicalise(
    query: HistogramQuery,
    table: Table,
    *,
    closed_before: int | None,
    bucket: tuple[QueryBucket, Column] | None = None,
) -> CanonicalQuery:
    """Return the canonical form of a question that the policy's `table` allows.

    `closed_before` is the first value of the time column that the question must not see; None: it sees all. It
    restricts the time column like any condition, so a question that states it itself, or ends earlier, has the same
    form. `bucket` says into which buckets it divides the time column, and the column that stands for them; the time
    column is then restricted, and the buckets follow from that.

    Raises:
        QuestionError: Conditions on one column contradict each other.
    """
    bucketed = None if bucket is None else bucket[0].column.name
    columns = [table.column(name) for name in query.dimensions]
    named = list(_mentioned(query, table, columns, closed=closed_before is not None))
    # What is looked up is the value of a key, so a row whose key is left out is left out.
    keys = [column.lookup.key for column in named if column.lookup is not None]
    mentioned = {column.name: column for column in (*named, *keys)}
    dimensions = [column for column in columns if column.name != bucketed]
    domains = restricted_values(dimensions)
    restrictions = [
        _restriction(column, query, table, closed_before, domains.get(name))
        for name, column in sorted(mentioned.items())
    ]
    return CanonicalQuery(
        table=table.name,
        member=table.member,
        dimensions=tuple(
            query_column(column if bucket is None or column.name != bucketed else bucket[1])
            for column in columns
        ),
        measure=query.measure,
        clip=table.clip_of(query),
        restrictions=tuple(each for each in restrictions if each is not None),
        values=tuple(map(_query_value, summed_columns(query, table))),
        quantiles=_query_quantiles(query, table),
        bucket=None if bucket is None else bucket[0],
    )


def time_restriction(query: HistogramQuery, table: Table, closed_before: int | None) -> OrdinalRestriction:
    """Return which values of the time column a question allows; `closed_before` as for `canonicalise`.

    Raises:
        RefusedByPolicyError: The table has no time column.
        QuestionError: No value meets the conditions.
    """
    column = table.time_column()
    found = _restriction(column, query, table, closed_before, None)
    if isinstance(found, OrdinalRestriction):
        return found
    every = query_column(column)
    return OrdinalRestriction(every, (every.universe,))


def summed_columns(query: HistogramQuery, table: Table) -> tuple[ValueColumn, ...]:
    """Return the columns that a question sums, each once, by name.

    Raises:
        RefusedByPolicyError: The policy does not list the values of one.
    """
    return tuple(table.value(name) for name in sorted({each.column for each in query.aggregates}))


def _query_quantiles(query: HistogramQuery, table: Table) -> QueryQuantiles | None:
    if not query.quantiles:
        return None
    column = table.quantile(query.quantiles[0].column)
    salt = table_salt(table.name, _ROWS_OF_A_MEMBER) if column.member_value is MemberValue.ONE_ROW else b""
    return QueryQuantiles(_query_value(column), column.member_value, column.spec, salt)


def _query_value(column: ValueColumn | QuantileColumn) -> QueryValue:
    keeps_nulls = column.nulls in (Nulls.KEEP, ValueNulls.KEEP)
    has_own_count = column.nulls is ValueNulls.OWN_COUNT
    return QueryValue(column.name, column.type, column.bounds, keeps_nulls, column.null_value, has_own_count)


def _mentioned(
    query: HistogramQuery, table: Table, dimensions: Iterable[Column], *, closed: bool
) -> Iterator[Column]:
    yield from dimensions
    yield from (table.column(each.column) for each in query.filters)
    if closed or _restricts_time(query):
        yield table.time_column()
    member = table.member_column()
    if member is not None:
        yield member


def _restricts_time(query: HistogramQuery) -> bool:
    """Return whether there is a time range with at least one end."""
    return query.time_range is not None and query.time_range != TimeRange(None, None)


def query_column(column: Column) -> QueryColumn:
    """Return what a question's meaning has of a column."""
    stored = None if column.timestamps is None else column.timestamps.stored
    lookup = column.lookup
    found = None if lookup is None else QueryLookup(query_column(lookup.key), lookup.entries, lookup.hash)
    return QueryColumn(column.name, column.type, column.value_for_null, stored, found)


def _restriction(
    column: Column,
    query: HistogramQuery,
    table: Table,
    closed_before: int | None,
    domain: Iterable[Value] | None,
) -> Restriction | None:
    """Return the one restriction on a column; None if it allows every value and every NULL.

    `domain` are the values that the column is restricted to anyway; None: all.
    """
    filters = [each for each in query.filters if each.column == column.name]
    if column.type is ColumnType.STRING:
        return _text_restriction(column, filters, _all_texts(column) if domain is None else domain)
    universe = query_column(column).universe
    allowed: Intervals = (universe,) if domain is None else points(map(ordinal, domain))
    for each in filters:
        allowed = intersection(allowed, _intervals(each, universe, column.timestamps))
    if table.time is not None and table.time.name == column.name:
        if query.time_range is not None:
            allowed = intersection(allowed, _time_interval(query.time_range, table.time, universe))
        allowed = _closed(allowed, closed_before, universe)
    if column.nulls is Nulls.DROP and column.null_value is not None:
        allowed = intersection(allowed, complement(points([ordinal(column.null_value)]), universe))
    if not allowed:
        raise _contradiction(column)
    # Days are always bounded: see render.
    if column.nulls is Nulls.KEEP and allowed == (universe,) and column.type is not ColumnType.DATE:
        return None
    return OrdinalRestriction(query_column(column), allowed)


def _all_texts(column: Column) -> Iterable[Value] | None:
    """Return all texts that a column can have, if it is looked up; None: any text."""
    if column.lookup is None:
        return None
    null = column.value_for_null
    return column.lookup.values | (frozenset() if null is None else {null})


def _text_restriction(
    column: Column, filters: Iterable[Filter], domain: Iterable[Value] | None
) -> TextRestriction | None:
    allowed = None if domain is None else set(map(str, domain))
    excluded: set[str] = {str(column.null_value)} if column.nulls is Nulls.DROP else set()
    for each in filters:
        match each:
            case In():
                values = set(map(str, each.values))
                allowed = values if allowed is None else allowed & values
            case NotIn():
                excluded |= set(map(str, each.values))
            case Range():
                # The policy's loader allows ranges on ordered columns alone.
                raise QuestionError("filters", f"{column.name}: expected no range on a column of texts")
    if allowed is None:
        return (
            TextRestriction(query_column(column), tuple(sorted(excluded)), excluded=True)
            if excluded
            else None
        )
    if not allowed - excluded:
        raise _contradiction(column)
    return TextRestriction(query_column(column), tuple(sorted(allowed - excluded)), excluded=False)


def _contradiction(column: Column) -> QuestionError:
    return QuestionError(
        "filters",
        f"{column.name}: the conditions on this column (including a time range) contradict each other or its domain: "
        "no row can meet them",
    )


def _intervals(condition: Filter, universe: Interval, timestamps: Timestamps | None) -> Intervals:
    match condition:
        case In():
            return points(map(ordinal, condition.values))
        case NotIn():
            return complement(points(map(ordinal, condition.values)), universe)
        case Range():
            lower, upper = condition.lower, condition.upper
            start = universe.start if lower is None else _first(lower, timestamps, after=lower.exclusive)
            end = universe.end if upper is None else _first(upper, timestamps, after=not upper.exclusive)
            return _clamped(start, end, universe)


def _first(bound: Bound, timestamps: Timestamps | None, *, after: bool) -> int:
    """Return the smallest integer that stands for a value not before a bound, or `after` it."""
    if timestamps is None:
        return ordinal(bound.value) + after
    # `resolution` lets only days and timestamps come here.
    value = bound.value
    if not isinstance(value, datetime.date):
        raise QuestionError("filters", f"expected {VALUES_OF[ColumnType.TIMESTAMP]}")
    return timestamps.first_after(value) if after else timestamps.first_from(value)


def _time_interval(time_range: TimeRange, time: TimeColumn, universe: Interval) -> Intervals:
    """Return the values of the time column whose times lie in a half-open range."""
    start = universe.start if time_range.start is None else time.first_value_from(time_range.start)
    end = universe.end if time_range.end is None else time.first_value_from(time_range.end)
    return _clamped(start, end, universe)


def _closed(allowed: Intervals, closed_before: int | None, universe: Interval) -> Intervals:
    """Leave out what lies in no closed period."""
    if closed_before is None or not allowed:
        return allowed
    closed = intersection(allowed, _clamped(universe.start, closed_before, universe))
    if not closed:
        raise QuestionError(
            "time_range", "expected a range that begins in a closed period: later data cannot be queried yet"
        )
    return closed


def _clamped(start: int, end: int, universe: Interval) -> Intervals:
    clamped = Interval(max(start, universe.start), min(end, universe.end))
    return (clamped,) if clamped.start < clamped.end else ()
