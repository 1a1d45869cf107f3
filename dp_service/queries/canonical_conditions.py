"""The canonical form of conditions on several columns, and of patterns: nested, sorted, without repeats.

What is on one column becomes one set of its values, joined by OR as by AND. A condition is met or not by a row alone.
NULL meets no condition on its column, as in SQL, where NOT is only before those: so rows without a value are left out
of the conditions that name the column, and not of others that OR joins with them. Equal meaning of conditions on
several columns is not decided: two forms of one meaning are two questions, and each form has one meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce

from dp_service.queries.canonical_bytes import condition_bytes
from dp_service.queries.canonical_columns import (
    Condition,
    Every,
    OrdinalRestriction,
    PartCondition,
    PatternCondition,
    QueryColumn,
    QueryPart,
    Some,
    TextRestriction,
    query_column,
    query_time,
)
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.columns import Column, Nulls
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import (
    AllOf,
    AnyOf,
    Filter,
    In,
    InPart,
    IsNull,
    Like,
    NotIn,
    Value,
    column_filters,
    has_letters,
    normal_pattern,
)
from dp_service.queries.intervals import Interval, Intervals, complement, intersection, ordinal, points
from dp_service.queries.tables import Table
from dp_service.queries.time_parts import TimePart
from dp_service.queries.value_sets import (
    ALL_TEXTS,
    Texts,
    intervals_of,
    is_set,
    known_texts,
    texts_of,
    universe_of_column,
)
from dp_service.terms import ColumnType


def flattened(filters: Iterable[Filter]) -> Iterator[Filter]:
    """Yield conditions all of which must hold, none of them AllOf."""
    waiting = list(filters)[::-1]
    while waiting:
        each = waiting.pop()
        if isinstance(each, AllOf):
            waiting += reversed(each.parts)
        elif isinstance(each, AnyOf) and len(each.parts) == 1:
            waiting.append(each.parts[0])
        else:
            yield each


def conditions_of(filters: Iterable[Filter], table: Table) -> tuple[Condition, ...]:
    """Return conditions that are no sets of one column's values, all of which must hold.

    Raises:
        QuestionError: No row can meet them.
    """
    found = _joined(list(filters), table, Every)
    if found is False:
        raise QuestionError("filters", "the conditions contradict each other: no row can meet them")
    if found is True:
        return ()
    return found.parts if isinstance(found, Every) else (found,)


def can_hold(condition: Filter, table: Table) -> bool:
    """Return whether some row can meet a condition, as far as its form tells."""
    return _joined([condition], table, Every) is not False


def _condition(condition: Filter, table: Table) -> Condition | bool:
    """Return a condition; True: it holds of every row, False: of none."""
    match condition:
        case AllOf(parts):
            return _joined(list(parts), table, Every)
        case AnyOf(parts):
            return _joined(list(parts), table, Some)
        case InPart():
            return _of_part(condition, table)
        case _:
            column = table.column(condition.column)
            return _pattern(condition, column) if isinstance(condition, Like) else _set(condition, column)


def _joined(filters: list[Filter], table: Table, kind: type[Every | Some]) -> Condition | bool:
    """Return conditions joined by AND or OR, those on one column's values as one."""
    decides = kind is Some
    found: dict[bytes, Condition] = {}
    for each in _merged(filters, table, AllOf if kind is Every else AnyOf):
        part = _set_or_condition(each, table)
        if part is decides:
            return decides
        if isinstance(part, bool):
            continue
        for one in part.parts if isinstance(part, kind) else (part,):
            found[condition_bytes(one)] = one
    parts = tuple(found[name] for name in sorted(found))
    if not parts:
        return not decides
    return parts[0] if len(parts) == 1 else kind(parts)


def _merged(filters: list[Filter], table: Table, kind: type[AllOf | AnyOf]) -> Iterator[Filter]:
    """Yield conditions with those on one column's values joined into one."""
    by_column: dict[str, list[Filter]] = {}
    parts: dict[TimePart, InPart] = {}
    waiting = filters[::-1]
    while waiting:
        each = waiting.pop()
        if isinstance(each, kind):
            waiting += reversed(each.parts)
            continue
        part = _as_part(each)
        if part is not None:
            parts[part.part] = _joined_part(parts.get(part.part, part), part, kind)
            continue
        column = table.column(next(column_filters(each)).column)
        if is_set(each, column, known_texts(column)):
            by_column.setdefault(column.name, []).append(each)
        else:
            yield each
    yield from parts.values()
    for name, sets in by_column.items():
        joined: Filter = sets[0] if len(sets) == 1 else kind(tuple(sets))
        # Of timestamps only a single range is a set.
        if is_set(joined, table.column(name), known_texts(table.column(name))):
            yield joined
        else:
            yield from sets


def _as_part(condition: Filter) -> InPart | None:
    """Return a condition on one part of the time column alone as one list of numbers; None: it is another one."""
    if isinstance(condition, InPart):
        return condition
    if not isinstance(condition, AllOf | AnyOf):
        return None
    parts = [_as_part(each) for each in condition.parts]
    found = [each for each in parts if each is not None]
    if len(found) < len(parts) or len({each.part for each in found}) > 1:
        return None
    return reduce(lambda left, right: _joined_part(left, right, type(condition)), found)


def _joined_part(left: InPart, right: InPart, kind: type[AllOf | AnyOf]) -> InPart:
    """Return conditions on one part of the time column as one."""
    both = set(left.numbers) & set(right.numbers)
    either = set(left.numbers) | set(right.numbers)
    return replace(left, numbers=tuple(sorted(both if kind is AllOf else either)))


def _of_part(condition: InPart, table: Table) -> Condition | bool:
    """Return that a part of a time is one of some numbers, of times whose calendar every engine knows.

    What stands for NULL is a time to an engine that stores no NULL, and is none here.
    """
    time = table.time
    if time is None:
        raise AssertionError("only a table with a time column has parts of time")
    if not condition.numbers:
        return False
    column = table.time_column()
    within: Intervals = (time.calendar,)
    if column.nulls is Nulls.DROP and column.null_value is not None:
        null = points([ordinal(column.null_value)])
        within = intersection(within, complement(null, universe_of_column(column)))
    return PartCondition(QueryPart(query_time(time, column), condition.part), condition.numbers, within)


def within_times(query: CanonicalQuery, times: Interval) -> CanonicalQuery:
    """Return a question whose conditions on parts of time are of times in an interval, as all that it sees are."""

    def cut(condition: Condition) -> Condition:
        return _within(condition, times)

    def in_function(column: QueryColumn) -> QueryColumn:
        source = column.source
        return column if source is None else replace(column, source=source.with_conditions(cut))

    values = (
        each if each.condition is None else replace(each, condition=cut(each.condition))
        for each in query.values
    )
    return replace(
        query,
        dimensions=tuple(map(in_function, query.dimensions)),
        values=tuple(values),
        conditions=tuple(map(cut, query.conditions)),
    )


def _within(condition: Condition, times: Interval) -> Condition:
    match condition:
        case Every(every=parts):
            return Every(tuple(_within(each, times) for each in parts))
        case Some(some=parts):
            return Some(tuple(_within(each, times) for each in parts))
        case PartCondition():
            return replace(condition, within=intersection(condition.within, (times,)))
        case _:
            return condition


def _set_or_condition(condition: Filter, table: Table) -> Condition | bool:
    column = table.column(next(column_filters(condition)).column)
    return (
        _set(condition, column)
        if is_set(condition, column, known_texts(column))
        else _condition(condition, table)
    )


def _set(condition: Filter, column: Column) -> Condition | bool:
    """Return that a row has one of a set of values, and a value."""
    if column.lookup is not None:
        return _set_of_keys(texts_of(condition, column, known_texts(column)), column)
    if column.type is ColumnType.STRING:
        return _of_texts(texts_of(condition, column), column)
    universe = universe_of_column(column)
    allowed = intervals_of(condition, column)
    if column.nulls is Nulls.DROP and column.null_value is not None:
        allowed = intersection(allowed, complement(points([ordinal(column.null_value)]), universe))
    if not allowed:
        return False
    # Days are always bounded: engines can hold days that no answer can carry.
    if column.nulls is Nulls.KEEP and allowed == (universe,) and column.type is not ColumnType.DATE:
        return True
    return OrdinalRestriction(query_column(column), allowed)


def _of_texts(texts: Texts, column: Column) -> Condition | bool:
    if column.nulls is Nulls.DROP:
        texts &= Texts(frozenset([str(column.null_value)]), excluded=True)
    if texts in (ALL_TEXTS, ALL_TEXTS.complement):
        return texts.excluded
    return TextRestriction(query_column(column), tuple(sorted(texts.values)), texts.excluded)


def _set_of_keys(texts: Texts, column: Column) -> Condition | bool:
    """Return the condition on the column of keys: a key without a text counts as the null value, if there is one."""
    lookup = column.lookup
    if lookup is None:
        raise AssertionError("only a looked-up column has keys")
    wanted: list[Value] = []
    unwanted: list[Value] = []
    for key, text in lookup.entries:
        (unwanted if (text in texts.values) is texts.excluded else wanted).append(key)
    null = column.value_for_null
    if null is None or (str(null) in texts.values) is texts.excluded:
        return _set(In(lookup.key.name, tuple(wanted)), lookup.key) if wanted else False
    if not unwanted:
        # Every key, and where NULL is kept among them, it as well.
        every = AnyOf((IsNull(lookup.key.name), IsNull(lookup.key.name, negated=True)))
        return _set(every, lookup.key)
    return _set(NotIn(lookup.key.name, tuple(unwanted)), lookup.key)


def _pattern(condition: Like, column: Column) -> Condition | bool:
    """Return that a text has a pattern; where NULL is left out, its row is."""
    any_text = _of_texts(ALL_TEXTS, column)
    folds = condition.folds and has_letters(condition.pattern)
    pattern = normal_pattern(condition.pattern, folds=folds)
    if pattern == "%":
        return False if condition.negated else any_text
    found = PatternCondition(query_column(column), pattern, folds, condition.negated)
    if isinstance(any_text, bool):
        return found
    return Every(tuple(sorted((any_text, found), key=condition_bytes)))


def possible_values(condition: Condition, column: str, values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return those of a column's values that a row may have which meets a condition, whatever else it has.

    Args:
        condition: The condition.
        column: The name of a column of the table. Nothing is known of the others, so any condition on them may hold.
        values: The values.
    """
    match condition:
        case Every(every=parts):
            return reduce(lambda left, each: possible_values(each, column, left), parts, values)
        case Some(some=parts):
            found = {value for each in parts for value in possible_values(each, column, values)}
            return tuple(each for each in values if each in found)
        case _:
            return condition.among(values) if condition.column.name == column else values
