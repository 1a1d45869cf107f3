"""From what a question groups by to group-by columns: the policy's own, and functions (`functions`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dp_service.queries.allowed_columns import groupable, time_of
from dp_service.queries.canonical import time_restriction
from dp_service.queries.canonical_columns import (
    UTC,
    Condition,
    Every,
    OrdinalRestriction,
    QueryColumn,
    QueryValue,
    Source,
    query_column,
)
from dp_service.queries.canonical_conditions import can_hold, conditions_of, within_times
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.columns import Column, Nulls
from dp_service.queries.coordinates import query_value
from dp_service.queries.dimensions import Dimension, answer_columns
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import Filter, InPart, column_filters, type_of
from dp_service.queries.functions.parts import OF_CLOCKS
from dp_service.queries.intervals import intersection
from dp_service.queries.policy_schema import ColumnSchema
from dp_service.queries.promised_bounds import require_all_rows, require_bounded
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from dp_service.queries.times import BEYOND_ALL_TIMESTAMPS, TimeColumn, TimeUnit
from dp_service.terms import ColumnType

_BOTH_ENDS = (
    "expected a range of time with both ends, from conditions{example} or a time range: {because}; the first and the "
    "last time that there is (the years 1 and 9999 of days) end nothing"
)


@dataclass(frozen=True)
class Grouped:
    """A column that a question groups by: the policy's own, whose `source` is None, or a function."""

    column: Column
    source: Source | None = None

    @property
    def in_query(self) -> QueryColumn:
        """The column as a question's meaning has it."""
        found = query_column(self.column)
        return found if self.source is None else QueryColumn(found.name, found.type, None, source=self.source)


def grouped_columns(query: HistogramQuery, table: Table, closed_before: int | None) -> tuple[Grouped, ...]:
    """Return what a question groups by.

    Args:
        query: The question.
        table: Its table.
        closed_before: The first value of the time column that the question must not see; None: it sees all.

    Raises:
        RefusedByPolicyError: The policy does not offer it.
        QuestionError: Its range of time does not have the ends that it needs, or too many buckets.
    """
    context = Context(query, table, closed_before)
    names = zip(query.dimensions, answer_columns(query.dimensions), strict=True)
    found = tuple(_grouped(dimension, name, context) for dimension, name in names)
    sources = [each.source for each in found if each.source is not None]
    if any(each in sources[:place] for place, each in enumerate(sources)):
        raise QuestionError(
            "dimensions", "expected each function to group by once: two of them are one, written in two ways"
        )
    return found


def _grouped(dimension: Dimension, name: str, context: Context) -> Grouped:
    if isinstance(dimension, str):
        return Grouped(context.groupable(dimension))
    if dimension.is_of_member:
        require_all_rows(dimension, context.table)
    elif not dimension.is_of_time:
        require_bounded(context.table)
    meaning = dimension.meaning(context)
    kind = type_of(meaning.values[0]) if meaning.values else ColumnType.STRING
    column = ColumnSchema(type=kind, group_by=True, delta=meaning.delta).resolved(
        Column,
        name=name,
        domain=meaning.values,
        nulls=Nulls.DROP,
        null_value=None,
        publication=None,
        timestamps=None,
        lookup=None,
    )
    return Grouped(column, meaning.source)


@dataclass(frozen=True)
class Context:
    """The question and the table that a function is asked of; `closed_before` as for `grouped_columns`."""

    query: HistogramQuery
    table: Table
    closed_before: int | None

    def groupable(self, column: str) -> Column:
        """Return a column that questions may group by (`allowed_columns.groupable`)."""
        return groupable(self.table, column)

    def time(self, column: str, what: str, offered: Sequence[str], wanted: str) -> TimeColumn:
        """Return the time column, if the policy offers a function of it (`allowed_columns.time_of`)."""
        return time_of(column, what, offered, wanted, self.table)

    def range_with_ends(self, because: str) -> OrdinalRestriction:
        """Return which times the question allows.

        Raises:
            QuestionError: It has no first or no last one.
        """
        found = time_restriction(self.query, self.table, self.closed_before)
        if self.table.time is None or not all(self.table.time.ends_in(found.hull)):
            # Integers are compared with integers.
            days = f" such as {found.column.name} >= '2026-01-01' AND {found.column.name} < '2026-07-01'"
            example = "" if found.column.type is ColumnType.INT64 else days
            raise QuestionError("time_range", _BOTH_ENDS.format(example=example, because=because))
        return found

    def condition(self, condition: Filter, of: str) -> Condition | None:
        """Return a condition that `of` a function is made; None: every row meets it.

        Raises:
            QuestionError: No row can meet it.
        """
        if not can_hold(condition, self.table):
            raise QuestionError(
                "dimensions",
                f"expected {of} without a condition that no row can meet: its value would count nothing",
            )
        parts = conditions_of([condition], self.table)
        return Every(parts) if len(parts) > 1 else next(iter(parts), None)

    def value(self, column: str) -> QueryValue:
        """Return a column of numbers."""
        return query_value(self.table.numbers_of(column))


def with_times(
    canonical: CanonicalQuery, query: HistogramQuery, table: Table, closed_before: int | None
) -> CanonicalQuery:
    """Return a question whose conditions on parts of time carry the changes of clocks in its range alone.

    Raises:
        QuestionError: The clocks of the zone change, and its range does not have both ends.
    """
    found = [each for one in query.every_filter for each in column_filters(one) if isinstance(each, InPart)]
    time = table.time
    if not found or time is None:
        return canonical
    if any(each.sees_all_before for each in query.functions):
        raise QuestionError(
            "filters",
            "expected no condition on a part of time beside first times, which are of rows before the range as well",
        )
    if time.unit is TimeUnit.DAYS or time.zone == UTC:
        allowed = time_restriction(query, table, closed_before)
    else:
        allowed = Context(query, table, closed_before).range_with_ends(OF_CLOCKS.format(time.zone))
    times = allowed.hull
    if not intersection((times,), (time.calendar,)):
        raise QuestionError("time_range", BEYOND_ALL_TIMESTAMPS)
    return within_times(canonical, times)
