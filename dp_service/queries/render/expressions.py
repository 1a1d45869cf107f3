"""What is grouped by as it is written: columns, and functions of one row, each of which is registered here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

from dp_service.queries.canonical_columns import OrdinalRestriction, QueryColumn, QueryPart, Source
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.elements import date_of
from dp_service.queries.filters import Value
from dp_service.queries.functions.bins import QueryBins
from dp_service.queries.functions.buckets import QueryBucket
from dp_service.queries.functions.parts_of_texts import QueryPartOfText
from dp_service.queries.functions.whole_bins import QueryWholeBins
from dp_service.queries.render.columns import column_expression
from dp_service.queries.render.conditions import (
    restriction_conditions,
    time_key,
    value_of_number,
    written_condition,
)
from dp_service.queries.render.dialects import Dialect, literal
from dp_service.queries.render.sums import row_steps
from dp_service.queries.render.time_expressions import local_times
from dp_service.terms import ColumnType, Scalar


def grouping_keys(query: CanonicalQuery, dialect: Dialect, *, is_nested: bool = False) -> list[str]:
    """Write what is grouped by."""
    place = Place(query, dialect, is_nested)
    return [grouping_key(each, place) for each in query.dimensions]


@dataclass(frozen=True)
class Place:
    """Where a dimension is written.

    Attributes:
        query: The question.
        dialect: The engine's SQL.
        is_nested: Whether it stands in a query inside another one.
        is_total: Whether rows beyond the question's range meet it as well; they must not make it an error.
    """

    query: CanonicalQuery
    dialect: Dialect
    is_nested: bool
    is_total: bool = False

    @property
    def integer(self) -> str:
        """The word for integers of 64 bits."""
        return "BIGINT" if self.is_nested else self.dialect.integer


def grouping_key(column: QueryColumn, place: Place) -> str:
    """Write one dimension."""
    if column.source is None or column.lookup is not None:
        return column_expression(column, place.dialect)
    return row_function(column.source, place)


def has_value(column: QueryColumn, scalar: Scalar, place: Place) -> str:
    """Write that one dimension has a value of an element."""
    if isinstance(column.source, QueryBucket):
        return _is_in_bucket(column.source, int(scalar), place)
    key = grouping_key(column, replace(place, is_total=True))
    return f"{key} = {literal(value_of(scalar, column.type), place.dialect)}"


def value_of(scalar: Scalar, kind: ColumnType) -> Value:
    """Return a value of an element in the form that it has in questions."""
    return scalar if isinstance(scalar, str) else value_of_number(scalar, kind)


@singledispatch
def row_function(source: Source, place: Place) -> str:
    """Write a function of one row."""
    raise AssertionError(f"no writer is registered for {type(source).__name__}")


@singledispatch
def member_key(source: Source, dialect: Dialect) -> str:
    """Write a function of a member's rows, of what was measured of them."""
    raise AssertionError(f"no writer is registered for {type(source).__name__}")


@dataclass(frozen=True)
class MemberFunction:
    """What a function of a member's rows takes of them in a subquery (`of_members`).

    Attributes:
        measured: The columns that it takes.
        counting: Which members count.
        grouped: What the rows are grouped by beside the member.
        nested: What writes the rows that it is taken of instead of the table's, if any does, given what stands behind
            FROM, what is selected of them, and by what members are grouped.
        window: What writes the columns that a query around has instead of these, if any does, given by what
            members are grouped.
    """

    measured: tuple[str, ...]
    counting: str
    grouped: tuple[str, ...] = ()
    nested: tuple[Callable[[str, list[str], list[str]], str], ...] = ()
    window: tuple[Callable[[str], tuple[str, ...]], ...] = ()


@row_function.register
def _bucket(source: QueryBucket, place: Place) -> str:
    times = local_times(place.query, source.time)
    key = time_key(times, place.dialect, is_nested=place.is_nested, is_total=place.is_total)
    return place.dialect.time(key, times, source.length)


def _is_in_bucket(bucket: QueryBucket, first_day: int, place: Place) -> str:
    """Write the range of a bucket's times: a function could fail on times that another condition leaves out."""
    time = bucket.time
    within = local_times(place.query, time).values_in(date_of(first_day), bucket.length)
    restrictions = (OrdinalRestriction(time.column, (each,)) for each in within)
    ranges = [
        " AND ".join(restriction_conditions(each, place.dialect, is_nested=place.is_nested))
        for each in restrictions
    ]
    return ranges[0] if len(ranges) == 1 else f"({' OR '.join(f'({each})' for each in ranges)})"


@row_function.register
def _part(source: QueryPart, place: Place) -> str:
    times = local_times(place.query, source.time)
    key = time_key(times, place.dialect, is_nested=place.is_nested, is_total=place.is_total)
    return place.dialect.time(key, times, source.part)


@row_function.register
def _part_of_text(source: QueryPartOfText, place: Place) -> str:
    return place.dialect.part_of_text(column_expression(source.column, place.dialect), source.function)


@row_function.register
def _whole_bin(source: QueryWholeBins, place: Place) -> str:
    """Write a CASE that is never NULL; a condition that a row's NULL does not meet is none that it meets."""
    branches = [
        f"WHEN {written_condition(condition, place.dialect, is_nested=place.is_nested)} THEN {_label(label, place)}"
        for condition, label in source.branches
    ]
    return f"CASE {' '.join(branches)} ELSE {_label(source.otherwise, place)} END"


@row_function.register
def _bin(source: QueryBins, place: Place) -> str:
    """Write the label of a bin: no number makes it an error, and a row without one is left out by a condition."""
    steps = row_steps(source.value, place.dialect, place.integer)
    return _binned(steps, source.edges, source.labels, place)


def _binned(number: str, edges: Sequence[int], labels: Sequence[int], place: Place) -> str:
    branches = [
        f"WHEN {number} < {edge} THEN {_label(label, place)}"
        for edge, label in zip(edges, labels, strict=False)
    ]
    return f"CASE {' '.join(branches)} ELSE {_label(labels[-1], place)} END"


def _label(value: int, place: Place) -> str:
    """Write a label as a whole number of 64 bits."""
    return f"CAST({literal(value, place.dialect)} AS {place.integer})"
