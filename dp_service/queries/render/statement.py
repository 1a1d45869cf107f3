"""The statement for all engines: GROUP BY with a count, in a total order, with an explicit limit.

If events are clipped, it groups the result of an inner query: how many events each member has in each element. The
inner query leaves out rows without a member.

A bounded statement has one more query in between, which ranks each member's elements by a salted hash: only the first
Delta_0 of a member count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dp_service.queries.canonical import (
    CanonicalQuery,
    OrdinalRestriction,
    QueryColumn,
    Restriction,
    TextRestriction,
)
from dp_service.queries.elements import date_of, timestamp_of
from dp_service.queries.intervals import UNIVERSES, Interval, Intervals, gaps, is_short
from dp_service.queries.policy_schema import COUNT_COLUMN, MEMBER_COUNT_COLUMN
from dp_service.queries.read_columns import MISSING_MEMBER
from dp_service.queries.render.dialects import Dialect, identifier, literal
from dp_service.queries.resolution import Resolution
from dp_service.queries.structured import MAXIMUM_TEXT_LENGTH, Measure, Value
from dp_service.terms import ColumnType


def statement(resolution: Resolution, dialect: Dialect) -> str:
    """Write the query. It repeats expressions and uses no aliases: engines differ in what an alias may shadow."""
    query = resolution.query
    if query.clip is not None:
        keys = _names(query, dialect)
        source = f"({_counts_of_members(resolution, dialect)}) AS {identifier('gris_members', dialect)}"
        count = dialect.total(_clipped(query.clip, dialect))
        return dialect.nested_prefix + dialect.prefix + _ranking(resolution, keys, count, source, dialect)
    keys = [_expression(dimension, dialect) for dimension in query.dimensions]
    source = f"{identifier(query.table, dialect)} WHERE {_condition(resolution, dialect)}"
    return dialect.prefix + _ranking(resolution, keys, _count(query, dialect), source, dialect)


def _ranking(resolution: Resolution, keys: list[str], count: str, source: str, dialect: Dialect) -> str:
    """Write the groups of a source in their total order, the count last."""
    names = _names(resolution.query, dialect)
    order = ", ".join([f"{count} DESC", *(f"{key} ASC" for key in keys)])
    clauses = [
        f"SELECT {', '.join(_selected(keys, names))}, {count} AS {identifier(COUNT_COLUMN, dialect)}",
        f"FROM {source}",
        f"GROUP BY {', '.join(keys)}",
        f"ORDER BY {order}",
        f"LIMIT {resolution.row_limit}",
    ]
    return " ".join(clauses)


def _counts_of_members(resolution: Resolution, dialect: Dialect) -> str:
    """Write how many events each member has in each element."""
    query = resolution.query
    keys = [_expression(dimension, dialect) for dimension in query.dimensions]
    selected = _selected(keys, _names(query, dialect))
    clauses = [
        f"SELECT {', '.join(selected)}, COUNT(*) AS {identifier(MEMBER_COUNT_COLUMN, dialect)}",
        f"FROM {identifier(query.table, dialect)}",
        f"WHERE {_condition(resolution, dialect)}",
        f"GROUP BY {', '.join(keys)}, {identifier(query.member, dialect)}",
    ]
    return " ".join(clauses)


def _names(query: CanonicalQuery, dialect: Dialect) -> list[str]:
    return [identifier(dimension.name, dialect) for dimension in query.dimensions]


def _clipped(tau: int, dialect: Dialect) -> str:
    """Write the smaller of a member's count and tau: LEAST would return a float on Pinot."""
    count = identifier(MEMBER_COUNT_COLUMN, dialect)
    return f"CASE WHEN {count} > {tau} THEN {tau} ELSE {count} END"


def _selected(keys: list[str], names: list[str]) -> list[str]:
    return [key if key == name else f"{key} AS {name}" for key, name in zip(keys, names, strict=True)]


def _count(query: CanonicalQuery, dialect: Dialect) -> str:
    match query.measure:
        case Measure.DISTINCT_MEMBERS:
            return f"COUNT(DISTINCT {identifier(query.member, dialect)})"
        case Measure.EVENTS:
            return "COUNT(*)"


def _condition(resolution: Resolution, dialect: Dialect) -> str:
    conditions = [
        *_member_conditions(resolution.query, dialect),
        *(
            each
            for restriction in resolution.query.restrictions
            for each in _conditions(restriction, dialect, is_nested=resolution.query.clip is not None)
        ),
        *_text_conditions(resolution, dialect),
    ]
    return " AND ".join(conditions)


def _expression(column: QueryColumn, dialect: Dialect) -> str:
    """Write a column, with its null value instead of NULL if NULLs are kept."""
    name = identifier(column.name, dialect)
    if column.null_value is None or not dialect.stores_nulls:
        return name
    return f"COALESCE({name}, {literal(column.null_value, dialect)})"


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


def _text_conditions(resolution: Resolution, dialect: Dialect) -> Iterator[str]:
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
            yield f"length({_expression(column, dialect)}) <= {MAXIMUM_TEXT_LENGTH}"
    if dialect.well_formed is not None:
        # A text that is not UTF-8 equals no listed text, but meets conditions that only exclude some, also on members.
        excluding = [column for column, excluded in lists.items() if excluded]
        for column in dict.fromkeys([*shown, *excluding]):
            yield dialect.well_formed(_expression(column, dialect))


def _conditions(restriction: Restriction, dialect: Dialect, *, is_nested: bool) -> Iterator[str]:
    """Write the conditions of a restriction. NULL meets none of them, unless COALESCE replaces it."""
    column = restriction.column
    key = _expression(column, dialect)
    match restriction:
        case TextRestriction():
            yield _membership(key, restriction.values, dialect, excluded=restriction.excluded)
        case OrdinalRestriction() if column.type is ColumnType.TIMESTAMP and column.stored is None:
            yield from _timestamp_conditions(
                dialect.timestamp_key(key) if is_nested else key, restriction.intervals, dialect
            )
        case OrdinalRestriction():
            yield from _ordinal_conditions(key, restriction, dialect)


def _membership(
    key: str, values: list[Value] | tuple[Value, ...], dialect: Dialect, *, excluded: bool
) -> str:
    if len(values) == 1:
        return f"{key} {'<>' if excluded else '='} {literal(values[0], dialect)}"
    listed = ", ".join(literal(value, dialect) for value in values)
    return f"{key} {'NOT IN' if excluded else 'IN'} ({listed})"


def _ordinal_conditions(key: str, restriction: OrdinalRestriction, dialect: Dialect) -> Iterator[str]:
    """Write a set of integers as a list if that is no longer than its two ends and a list of the gaps between."""
    intervals, column = restriction.intervals, restriction.column
    kind = ColumnType.INT64 if column.stored is not None else column.type
    if is_short(intervals):
        yield _membership(key, _values(intervals, kind), dialect, excluded=False)
        return
    yield from _bounds(key, Interval(intervals[0].start, intervals[-1].end), kind, dialect)
    missing = gaps(intervals)
    if missing:
        yield _membership(key, _values(missing, kind), dialect, excluded=True)


def _timestamp_conditions(key: str, intervals: Intervals, dialect: Dialect) -> Iterator[str]:
    """Write a set of timestamps by its ends, the upper one exclusive: finer timestamps before it belong to the set.

    Between the ends only the timestamp that stands for NULL can be missing: conditions on timestamps are ranges.
    """
    yield f"{key} >= {literal(timestamp_of(intervals[0].start), dialect)}"
    yield f"{key} < {literal(timestamp_of(intervals[-1].end), dialect)}"
    missing = gaps(intervals)
    if missing:
        yield _membership(key, _values(missing, ColumnType.TIMESTAMP), dialect, excluded=True)


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


class CannotBoundError(ValueError):
    """The engine cannot bound members in the query."""


@dataclass(frozen=True)
class InQueryBound:
    """How a query bounds members before it counts.

    Attributes:
        delta_0: How many elements of a member count: the first ones by the salted hash of `dp_service.bounding.order`.
        tau: How many events of a member count in an element; 1 where distinct members are counted.
        salt: The public salt.
        min_count: The least count of an element that is answered; None over a known domain.
    """

    delta_0: int
    tau: int
    salt: bytes
    min_count: int | None


def bounded_statement(resolution: Resolution, bound: InQueryBound, dialect: Dialect) -> str:
    """Write the query for the counts of bounded contributions, all of them, in the order of `statement`.

    The question's own filters act before bounding, and a member is bounded within the elements that they leave.

    Raises:
        CannotBoundError: The engine cannot compute the hash.
    """
    query = resolution.query
    names = _names(query, dialect)
    rank = identifier("gris_rank", dialect)
    distinct = query.measure is Measure.DISTINCT_MEMBERS
    count = "COUNT(*)" if distinct else dialect.total(_clipped(bound.tau, dialect))
    having = [] if bound.min_count is None else [f"HAVING {count} >= {bound.min_count}"]
    clauses = [
        f"SELECT {', '.join(names)}, {count} AS {identifier(COUNT_COLUMN, dialect)}",
        f"FROM ({_ranked(resolution, bound, dialect)}) AS {identifier('gris_ranked', dialect)}",
        f"WHERE {rank} <= {bound.delta_0}",
        f"GROUP BY {', '.join(names)}",
        *having,
        f"ORDER BY {', '.join([f'{count} DESC', *(f'{name} ASC' for name in names)])}",
    ]
    return dialect.prefix + " ".join(clauses)


def _ranked(resolution: Resolution, bound: InQueryBound, dialect: Dialect) -> str:
    """Write how many events each member has in each element, and the element's rank among the member's."""
    if dialect.order_hash is None:
        raise CannotBoundError("the engine cannot compute the hash that orders a member's elements")
    names = _names(resolution.query, dialect)
    member = identifier("gris_member", dialect)
    texts = [f"CAST({name} AS {dialect.text_type})" for name in (member, *names)]
    order = ", ".join([dialect.order_hash(bound.salt, texts), *texts[1:]])
    clauses = [
        f"SELECT {', '.join(names)}, {identifier(MEMBER_COUNT_COLUMN, dialect)},",
        f"ROW_NUMBER() OVER (PARTITION BY {member} ORDER BY {order}) AS {identifier('gris_rank', dialect)}",
        f"FROM ({_contributions(resolution, dialect)}) AS {identifier('gris_members', dialect)}",
    ]
    return " ".join(clauses)


def _contributions(resolution: Resolution, dialect: Dialect) -> str:
    """Write how many events each member has in each element, with the member."""
    query = resolution.query
    member = identifier(query.member, dialect)
    keys = [_expression(dimension, dialect) for dimension in query.dimensions]
    selected = _selected(keys, _names(query, dialect))
    clauses = [
        f"SELECT {', '.join(selected)}, {member} AS {identifier('gris_member', dialect)},",
        f"COUNT(*) AS {identifier(MEMBER_COUNT_COLUMN, dialect)}",
        f"FROM {identifier(query.table, dialect)} WHERE {_condition(resolution, dialect)}",
        f"GROUP BY {', '.join(keys)}, {member}",
    ]
    return " ".join(clauses)
