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

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from dp_service.bounding.order import table_salt
from dp_service.queries.asked_numbers import DistinctValues, Measure
from dp_service.queries.canonical_bytes import _ROWS_OF_A_MEMBER
from dp_service.queries.canonical_columns import (
    Condition,
    Every,
    OrdinalRestriction,
    QueryColumn,
    Restriction,
    TextRestriction,
    query_column,
)
from dp_service.queries.canonical_conditions import conditions_of, flattened, possible_values
from dp_service.queries.canonical_query import (
    CanonicalQuery,
    QueryDistinct,
    QueryQuantiles,
)
from dp_service.queries.columns import Column, Nulls
from dp_service.queries.coordinates import added_up, query_value
from dp_service.queries.domains import restricted_values
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import Filter, TimeRange, Value, column_filters
from dp_service.queries.intervals import (
    YEARS_OF_TIMESTAMPS,
    Interval,
    Intervals,
    complement,
    intersection,
    ordinal,
    points,
)
from dp_service.queries.row_shares import row_shares
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from dp_service.queries.times import TimeColumn
from dp_service.queries.value_sets import (
    ALL_TEXTS,
    Texts,
    clamped,
    intervals_of,
    is_set,
    known_texts,
    texts_of,
    universe_of_column,
)
from dp_service.terms import ColumnType


def canonicalise(
    query: HistogramQuery,
    table: Table,
    *,
    closed_before: int | None,
    grouped: Sequence[tuple[Column, QueryColumn]] | None = None,
) -> CanonicalQuery:
    """Return the canonical form of a question that the policy's `table` allows.

    `closed_before` is the first value of the time column that the question must not see; None: it sees all. It
    restricts the time column like any condition, so a question that states it itself, or ends earlier, has the same
    form. `grouped` is what it groups by, each as a column and as its meaning, functions of a row among them; None: only
    columns as they are.

    Raises:
        QuestionError: Conditions on one column contradict each other.
    """
    columns = [table.column(name) for name in query.grouped_columns]
    domains = restricted_values(columns)
    own, others = _divided(query.row_filters, table, domains)
    conditions, held = _apart(conditions_of(others, table))
    # Of a condition on keys, the column is that of the keys, which the policy need not list.
    of_others = {column.name: column for column in _columns_of(others, table)}
    named = [
        *_mentioned(query, table, [*columns, *map(table.column, own)], closed=closed_before is not None),
        *(of_others[name] for name in held),
    ]
    # What is looked up is the value of a key, so a row whose key is left out is left out.
    keys = [column.lookup.key for column in named if column.lookup is not None]
    # Last: where values of a column are counted, NULL is none of them, whatever else the column is for.
    mentioned = {column.name: column for column in (*named, *keys, *_distinct(query, table))}
    restrictions = [
        _restriction(
            column,
            own.get(name, ()),
            _seen_of(
                column,
                query,
                table,
                closed_before,
                from_the_beginning=any(each.sees_all_before for each in query.functions),
            ),
            _possible(column, domains.get(name), conditions),
            held.get(name, ()),
        )
        for name, column in sorted(mentioned.items())
    ]
    allowed = tuple(each for each in restrictions if each is not None)
    by = [(each, query_column(each)) for each in columns] if grouped is None else grouped
    shares = row_shares(query, by, allowed, table)
    dimensions = tuple(meaning for _, meaning in by)
    return CanonicalQuery(
        table=table.name,
        member=table.member,
        dimensions=dimensions,
        measure=_counted(query, table, {each.name for each in dimensions}),
        clip=table.tau(Measure.EVENTS, shares) if table.clips(query) else None,
        restrictions=allowed,
        values=added_up(query, table, shares).coordinates,
        quantiles=_query_quantiles(query, table),
        conditions=conditions,
    )


def _distinct(query: HistogramQuery, table: Table) -> Iterator[Column]:
    """Yield the column whose distinct values a question counts, if it does: rows without a value are left out."""
    if isinstance(query.measure, DistinctValues):
        column = table.column(query.measure.column)
        yield column.model_copy(update={"nulls": Nulls.DROP})


def _counted(query: HistogramQuery, table: Table, grouped: Collection[str]) -> Measure | QueryDistinct:
    """Return what is counted.

    Raises:
        RefusedByPolicyError: The policy does not let these values be counted.
        QuestionError: The question groups by them, and each element has one.
    """
    if not isinstance(query.measure, DistinctValues):
        return query.measure
    if query.measure.column in grouped:
        raise QuestionError("measure", "expected distinct values of a column other than those to group by")
    most = table.tau(query.measure, 1)
    return next(QueryDistinct(query_column(column), most) for column in _distinct(query, table))


def _possible(
    column: Column, domain: tuple[Value, ...] | None, conditions: tuple[Condition, ...]
) -> tuple[Value, ...] | None:
    """Return the values of a column's domain that some row may have which meets conditions on several columns.

    Of a looked-up column, the conditions are on its keys.
    """
    if domain is None or not conditions:
        return domain
    every = Every(conditions)
    if column.lookup is None:
        return possible_values(every, column.name, domain)
    entries = column.lookup.entries
    keys = {*possible_values(every, column.lookup.key.name, tuple(key for key, _ in entries))}
    # A key without a text has the null value, if there is one.
    left = {column.value_for_null, *(text for key, text in entries if key in keys)}
    return tuple(each for each in domain if each in left)


def _apart(
    conditions: Iterable[Condition],
) -> tuple[tuple[Condition, ...], Mapping[str, list[Restriction]]]:
    """Return conditions without those that came to be sets of one column's values, and these by column."""
    others: list[Condition] = []
    sets: dict[str, list[Restriction]] = {}
    for each in conditions:
        if isinstance(each, TextRestriction | OrdinalRestriction):
            sets.setdefault(each.column.name, []).append(each)
        else:
            others.append(each)
    return tuple(others), sets


def _columns_of(filters: Iterable[Filter], table: Table) -> Iterator[Column]:
    """Yield the columns of conditions, and the keys of those that are looked up."""
    for each in filters:
        for leaf in column_filters(each):
            column = table.column(leaf.column)
            yield column if column.lookup is None else column.lookup.key


def _divided(
    filters: Iterable[Filter], table: Table, domains: Mapping[str, Collection[Value]]
) -> tuple[Mapping[str, list[Filter]], list[Filter]]:
    """Return the conditions that are on one column's values alone, by column, and the others."""
    own: dict[str, list[Filter]] = {}
    others: list[Filter] = []
    for each in flattened(filters):
        column = table.column(next(column_filters(each)).column)
        known = domains.get(column.name) or known_texts(column)
        if is_set(each, column, None if known is None else list(map(str, known))):
            own.setdefault(column.name, []).append(each)
        else:
            others.append(each)
    return own, others


def time_restriction(query: HistogramQuery, table: Table, closed_before: int | None) -> OrdinalRestriction:
    """Return which values of the time column a question allows; `closed_before` as for `canonicalise`.

    Raises:
        RefusedByPolicyError: The table has no time column.
        QuestionError: No value meets the conditions.
    """
    column = table.time_column()
    own, others = _divided(query.filters, table, {})
    _, held = _apart(conditions_of(others, table))
    seen = _seen_of(column, query, table, closed_before)
    found = _restriction(column, own.get(column.name, ()), seen, None, held.get(column.name, ()))
    if isinstance(found, OrdinalRestriction):
        return found
    every = query_column(column)
    return OrdinalRestriction(every, (every.universe,))


def _query_quantiles(query: HistogramQuery, table: Table) -> QueryQuantiles | None:
    if not query.quantiles:
        return None
    column = table.quantile(query.quantiles[0].column)
    salt = table_salt(table.name, _ROWS_OF_A_MEMBER) if query.ranks_rows else b""
    of = query.quantiles[0].of
    return QueryQuantiles(query_value(column), of, column.cells_of(of), salt)


def _mentioned(
    query: HistogramQuery, table: Table, named: Iterable[Column], *, closed: bool
) -> Iterator[Column]:
    yield from named
    if closed or _restricts_time(query) or any(each.is_of_time for each in query.functions):
        yield table.time_column()
    member = table.member_column()
    if member is not None:
        yield member


def _restricts_time(query: HistogramQuery) -> bool:
    """Return whether there is a time range with at least one end."""
    return query.time_range is not None and query.time_range != TimeRange(None, None)


def _restriction(
    column: Column,
    conditions: Iterable[Filter],
    seen: Callable[[Intervals], Intervals],
    domain: Iterable[Value] | None,
    held: Iterable[Restriction],
) -> Restriction | None:
    """Return the one restriction on a column; None if it allows every value and every NULL.

    `conditions` are those on the column alone, and `seen` leaves out what the question does not see of the time column.
    `domain` are the values that the column is restricted to anyway; None: all. `held` are further restrictions.
    """
    if column.type is ColumnType.STRING:
        domain = known_texts(column) if domain is None else domain
        return _text_restriction(column, conditions, domain, held)
    universe = universe_of_column(column)
    allowed: Intervals = (universe,) if domain is None else points(map(ordinal, domain))
    for each in conditions:
        allowed = intersection(allowed, intervals_of(each, column))
    for one in held:
        if isinstance(one, OrdinalRestriction):
            allowed = intersection(allowed, one.intervals)
    allowed = seen(allowed)
    if column.nulls is Nulls.DROP and column.null_value is not None:
        allowed = intersection(allowed, complement(points([ordinal(column.null_value)]), universe))
    if not allowed:
        raise _contradiction(column)
    # Days are always bounded: see render.
    if column.nulls is Nulls.KEEP and allowed == (universe,) and column.type is not ColumnType.DATE:
        return None
    return OrdinalRestriction(query_column(column), allowed)


def _seen_of(
    column: Column,
    query: HistogramQuery,
    table: Table,
    closed_before: int | None,
    *,
    from_the_beginning: bool = False,
) -> Callable[[Intervals], Intervals]:
    """Return what leaves out the times that a question does not see: it changes nothing of another column."""

    def seen(allowed: Intervals) -> Intervals:
        if table.time is None or table.time.name != column.name:
            return allowed
        universe = universe_of_column(column)
        if query.time_range is not None:
            allowed = intersection(allowed, _time_interval(query.time_range, table.time, universe))
        if any(each.needs_calendar for each in query.functions):
            allowed = intersection(allowed, (table.time.calendar,))
        allowed = _closed(allowed, closed_before, universe)
        if from_the_beginning and allowed:
            # First times are of all rows: where a range begins says which of them count.
            allowed = (Interval(universe.start, allowed[0].end), *allowed[1:])
        return allowed

    return seen


def _text_restriction(
    column: Column, conditions: Iterable[Filter], domain: Iterable[Value] | None, held: Iterable[Restriction]
) -> TextRestriction | None:
    known = None if domain is None else frozenset(map(str, domain))
    allowed = ALL_TEXTS if known is None else Texts(known, excluded=False)
    if column.nulls is Nulls.DROP:
        allowed &= Texts(frozenset([str(column.null_value)]), excluded=True)
    for each in conditions:
        allowed &= texts_of(each, column, known)
    for one in held:
        if isinstance(one, TextRestriction):
            allowed &= Texts(frozenset(one.values), one.excluded)
    if allowed == ALL_TEXTS:
        return None
    if allowed == ALL_TEXTS.complement:
        raise _contradiction(column)
    return TextRestriction(query_column(column), tuple(sorted(allowed.values)), allowed.excluded)


def _contradiction(column: Column) -> QuestionError:
    is_of_times = column.timestamps is not None and column.timestamps.stored is None
    far = f"; a time outside {YEARS_OF_TIMESTAMPS} meets none" if is_of_times else ""
    return QuestionError(
        "filters",
        f"{column.name}: the conditions on this column (including a time range) contradict each other or its domain: "
        f"no row can meet them{far}",
    )


def _time_interval(time_range: TimeRange, time: TimeColumn, universe: Interval) -> Intervals:
    """Return the values of the time column whose times lie in a half-open range."""
    start = universe.start if time_range.start is None else time.first_value_from(time_range.start)
    end = universe.end if time_range.end is None else time.first_value_from(time_range.end)
    return clamped(start, end, universe)


def _closed(allowed: Intervals, closed_before: int | None, universe: Interval) -> Intervals:
    """Leave out what lies in no closed period."""
    if closed_before is None or not allowed:
        return allowed
    closed = intersection(allowed, clamped(universe.start, closed_before, universe))
    if not closed:
        raise QuestionError(
            "time_range", "expected a range that begins in a closed period: later data cannot be queried yet"
        )
    return closed
