"""Sets of a column's values: what conditions on one column let through, whatever their words and their order.

Texts are a list, or all but a list; all other values are intervals of integers (`intervals`).
"""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass
from functools import reduce

from dp_service.queries.columns import Column, Nulls
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import (
    VALUES_OF,
    AllOf,
    AnyOf,
    Bound,
    Filter,
    In,
    InPart,
    IsNull,
    Like,
    NotIn,
    Range,
    column_filters,
    has_letters,
    pattern_of,
    text_of,
)
from dp_service.queries.intervals import (
    Interval,
    Intervals,
    complement,
    intersection,
    ordinal,
    points,
    universe_of,
)
from dp_service.queries.times import Timestamps
from dp_service.terms import ColumnType


@dataclass(frozen=True)
class Texts:
    """The texts of `values`, or all others if `excluded`."""

    values: frozenset[str]
    excluded: bool

    def __and__(self, other: Texts) -> Texts:
        """Return the texts that are in both."""
        if self.excluded and other.excluded:
            return Texts(self.values | other.values, excluded=True)
        if self.excluded:
            return Texts(other.values - self.values, excluded=False)
        return Texts(
            self.values - other.values if other.excluded else self.values & other.values, excluded=False
        )

    def __or__(self, other: Texts) -> Texts:
        """Return the texts that are in one of them."""
        return (self.complement & other.complement).complement

    @property
    def complement(self) -> Texts:
        """All other texts."""
        return Texts(self.values, not self.excluded)


ALL_TEXTS = Texts(frozenset(), excluded=True)


def known_texts(column: Column) -> frozenset[str] | None:
    """Return all texts that a looked-up column can have; None: any text."""
    if column.lookup is None:
        return None
    null = column.value_for_null
    return column.lookup.values | (frozenset() if null is None else {str(null)})


def is_set(condition: Filter, column: Column, known: Collection[str] | None = None) -> bool:
    """Return whether what a condition lets through is a set that one restriction of a column can be.

    Args:
        condition: A condition.
        column: The column.
        known: All texts that the column can have; None: any. A pattern is a set of them.
    """
    parts = list(column_filters(condition))
    if any(each.column != column.name or isinstance(each, InPart) for each in parts):
        return False
    if column.type is ColumnType.TIMESTAMP:
        # Engines compare them by the ends of one range.
        return not isinstance(condition, AnyOf | AllOf) and not isinstance(condition, Like)
    return known is not None or not any(isinstance(each, Like) and _only_text(each) is None for each in parts)


def _only_text(condition: Like) -> str | None:
    """Return the only text that has a pattern, if there is one."""
    return None if condition.folds and has_letters(condition.pattern) else text_of(condition.pattern)


def universe_of_column(column: Column) -> Interval:
    """Return the integers that stand for a column's values, if it holds no texts."""
    counted = column.timestamps is not None and column.timestamps.stored is not None
    return universe_of(column.type, counted=counted)


def texts_of(condition: Filter, column: Column, known: Collection[str] | None = None) -> Texts:
    """Return the texts that conditions on one column let through."""
    match condition:
        case AllOf(parts):
            return reduce(Texts.__and__, (texts_of(each, column, known) for each in parts))
        case AnyOf(parts):
            return reduce(Texts.__or__, (texts_of(each, column, known) for each in parts))
        case In() | NotIn():
            return Texts(frozenset(map(str, condition.values)), isinstance(condition, NotIn))
        case Like():
            return _with_pattern(condition, known)
        case IsNull():
            null = Texts(frozenset([str(column.null_value)]), excluded=False)
            if column.nulls is Nulls.DROP and not condition.negated:
                return ALL_TEXTS.complement
            return null.complement if condition.negated else null
        case Range() | InPart():
            # The policy's loader allows ranges on ordered columns alone.
            raise QuestionError("filters", f"{column.name}: expected no range on a column of texts")


def _with_pattern(condition: Like, known: Collection[str] | None) -> Texts:
    if (text := _only_text(condition)) is not None:
        return Texts(frozenset([text]), condition.negated)
    pattern = pattern_of(condition.pattern, folds=condition.folds)
    found = frozenset(text for text in known or () if bool(pattern.fullmatch(text)) is not condition.negated)
    return Texts(found, excluded=False)


def intervals_of(condition: Filter, column: Column) -> Intervals:
    """Return the integers that stand for the values that conditions on one column let through."""
    universe = universe_of_column(column)
    match condition:
        case AllOf(parts):
            return reduce(intersection, (intervals_of(each, column) for each in parts))
        case AnyOf(parts):
            gaps = (complement(intervals_of(each, column), universe) for each in parts)
            return complement(reduce(intersection, gaps), universe)
        case In() | NotIn():
            listed = intersection(points(map(ordinal, condition.values)), (universe,))
            return complement(listed, universe) if isinstance(condition, NotIn) else listed
        case IsNull():
            return _of_null(condition, column, universe)
        case Range(lower=lower, upper=upper):
            start = (
                universe.start if lower is None else _first(lower, column.timestamps, after=lower.exclusive)
            )
            end = (
                universe.end if upper is None else _first(upper, column.timestamps, after=not upper.exclusive)
            )
            return clamped(start, end, universe)
        case Like() | InPart():
            raise QuestionError("filters", f"{column.name}: expected a pattern on a column of texts alone")


def _of_null(condition: IsNull, column: Column, universe: Interval) -> Intervals:
    null = () if column.null_value is None else points([ordinal(column.null_value)])
    if column.nulls is Nulls.DROP and not condition.negated:
        return ()
    return complement(null, universe) if condition.negated else null


def _first(bound: Bound, timestamps: Timestamps | None, *, after: bool) -> int:
    """Return the smallest integer that stands for a value not before a bound, or `after` it."""
    if timestamps is None:
        return ordinal(bound.value) + after
    # `resolution` lets only days and timestamps come here.
    value = bound.value
    if not isinstance(value, datetime.date):
        raise QuestionError("filters", f"expected {VALUES_OF[ColumnType.TIMESTAMP]}")
    return timestamps.first_after(value) if after else timestamps.first_from(value)


def clamped(start: int, end: int, universe: Interval) -> Intervals:
    """Return the integers of a universe from `start` to `end` - 1."""
    within = Interval(max(start, universe.start), min(end, universe.end))
    return (within,) if within.start < within.end else ()
