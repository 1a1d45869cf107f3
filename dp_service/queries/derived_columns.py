"""From what a question groups by to group-by columns: the policy's own, and functions with a known domain.

The domain of a function follows from the question, the policy and the clock, and never from the data:

- of **buckets of time** it is every bucket that holds some value of the time column which the question's own conditions
  and the closed periods allow; both ends of the range have to follow from these. A bucket without rows counts 0;
- of **a part of the time** it is every number that the part can be. Where the clocks of the policy's zone change, both
  ends of the range have to follow as well: the query carries the changes in between;
- of **CASE** it is the values that it names;
- of a **funnel** it is the numbers of its steps, of **first times** the buckets of the range, and of **later** rows how
  many buckets there are from the first to the last.

Which value a row has is a function of that row alone. So a member has at most as many values as there are, and of a
function of one column at most as many as it has values of the column. How many rows a member has in one value of a
column, where a policy only promises that, bounds nothing here: many values may have one image. Bounded contributions
bound members in these elements as in any other.

Three functions are of all rows of one member that meet the question's conditions and have the same values in the other
columns. Such a member has one deepest step there and one first time, so Delta is that of the other columns (1 of none);
and it is active in at most as many buckets from its first one on as there are. No other member's rows enter (the query
groups by the member before it counts: `render.of_members`), so that is all that a member changes. They need all rows: a
copy that keeps some elements of a member has other first times and steps than the table.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.allowed_columns import groupable
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.canonical import time_restriction
from dp_service.queries.canonical_conditions import can_hold, characters_of, conditions_of
from dp_service.queries.canonical_query import (
    CanonicalQuery,
    Condition,
    Every,
    OrdinalRestriction,
    QueryBucket,
    QueryCase,
    QueryCohorts,
    QueryColumn,
    QueryFirst,
    QueryFunnel,
    QueryLater,
    QueryPart,
    QueryTime,
    Source,
    query_column,
)
from dp_service.queries.columns import Column, Nulls
from dp_service.queries.dimensions import (
    Cases,
    Dimension,
    Extracted,
    FirstSeen,
    Funnel,
    Later,
    Truncated,
    answer_columns,
    columns_of,
    is_of_member,
)
from dp_service.queries.elements import microseconds_of, timestamp_of
from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.filters import Filter, In, Value, column_filters, type_of
from dp_service.queries.intervals import Interval, Intervals, intersection
from dp_service.queries.policy_schema import ColumnSchema
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.suggestions import listed
from dp_service.queries.tables import Table
from dp_service.queries.time_buckets import TimeBucket, buckets_between
from dp_service.queries.times import BEYOND_ALL_TIMESTAMPS, TimeColumn, TimeUnit
from dp_service.terms import BoundedBy, ColumnType

_BOTH_ENDS = (
    "expected a range of time with both ends, from conditions{example} or a time range: {because}; the first and the "
    "last time that there is (the years 1 and 9999 of days) end nothing"
)
_TIMES_WRITTEN = 3
MOST_COHORTS = 1_000
# Beside them a query has names, of a message of 16 MiB.
_MOST_REPEATED = 6_000_000
_OF_BUCKETS = "its buckets are what is counted"
_OF_CLOCKS = "the clocks of {} change"
# Days are counted as if each began in UTC: their calendar has no clocks.
UTC = "UTC"


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
    names = answer_columns(query.dimensions)
    return tuple(
        _grouped(dimension, name, query, table, closed_before)
        for dimension, name in zip(query.dimensions, names, strict=True)
    )


def _grouped(
    dimension: Dimension, name: str, query: HistogramQuery, table: Table, closed_before: int | None
) -> Grouped:
    source: Source
    match dimension:
        case str():
            return Grouped(groupable(table, dimension))
        case Truncated():
            source, values = _bucket(dimension, query, table, closed_before)
        case Extracted():
            source, values = _part(dimension, query, table, closed_before)
        case Cases():
            source, values = _case(dimension, table)
        case Funnel():
            source, values = _funnel(dimension, table)
        case FirstSeen() | Later():
            source, values = _since(dimension, query, table, closed_before)
    delta = _delta(dimension, len(values), table)
    return Grouped(_with_domain(name, values, delta), source)


def _with_domain(name: str, values: Sequence[Value], delta: int) -> Column:
    return ColumnSchema(type=type_of(values[0]), group_by=True, delta=delta).resolved(
        Column,
        name=name,
        domain=tuple(values),
        nulls=Nulls.DROP,
        null_value=None,
        publication=None,
        timestamps=None,
        lookup=None,
    )


def _delta(dimension: Dimension, values: int, table: Table) -> int:
    """Return in how many of a function's values one member can be.

    A row that no question by the column counts, such as one with NULL, without a key or with an infinite day, is in one
    more value than those that the column's Delta is of: that of ELSE.
    """
    if is_of_member(dimension):
        return values if isinstance(dimension, Later) else 1
    (name, *others) = columns_of(dimension)
    column = table.column(name)
    if others or column.delta is None:
        return values
    is_own_text = column.type is ColumnType.STRING and column.lookup is None
    if isinstance(dimension, Cases) and is_own_text and not _names_values(dimension):
        # Such a condition also holds of texts that are too long to be an element, which no Delta counts.
        return values
    has_rest = isinstance(dimension, Cases) and dimension.otherwise is not None
    return min(values, column.delta + has_rest)


def _names_values(dimension: Cases) -> bool:
    """Return whether all conditions of a CASE are lists of values."""
    leaves = (each for condition, _ in dimension.branches for each in column_filters(condition))
    return all(isinstance(each, In) for each in leaves)


def _time_of(name: str, what: str, offered: Sequence[str], wanted: str, table: Table) -> TimeColumn:
    """Return the time column that a function is of, if the policy offers the function."""
    column, time = table.time_column(), table.time
    if time is None:
        raise AssertionError("only a table with a time column has functions of time")
    if name != column.name:
        raise QuestionError(
            "dimensions", f"expected DATE_TRUNC and EXTRACT of the time column {column.name}, and of no other"
        )
    if wanted not in offered:
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            f"{name}: the policy does not offer {what} of a {wanted}; of this table it offers "
            f"{listed(list(offered)) if offered else 'none'}",
        )
    return time


def _query_time(time: TimeColumn, table: Table) -> QueryTime:
    zone = UTC if time.unit is TimeUnit.DAYS else time.zone
    return QueryTime(query_column(table.time_column()), zone, time.unit)


def _bucket(
    dimension: Truncated, query: HistogramQuery, table: Table, closed_before: int | None
) -> tuple[QueryBucket, tuple[Value, ...]]:
    time = _time_of(dimension.column, "buckets", table.buckets, dimension.length, table)
    found = QueryBucket(_query_time(time, table), dimension.length)
    allowed = _with_both_ends(query, table, closed_before, _OF_BUCKETS)
    return found, tuple(_first_days(found, allowed, time))


def _part(
    dimension: Extracted, query: HistogramQuery, table: Table, closed_before: int | None
) -> tuple[QueryPart, tuple[Value, ...]]:
    time = _time_of(dimension.column, "parts", table.parts, dimension.part, table)
    found = QueryPart(_query_time(time, table), dimension.part)
    if found.time.zone != UTC:
        _with_both_ends(query, table, closed_before, _OF_CLOCKS.format(found.time.zone))
    return found, tuple(dimension.part.values)


def _case(dimension: Cases, table: Table) -> tuple[QueryCase, tuple[Value, ...]]:
    _require_bounded(table)
    branches: list[tuple[Condition, Value]] = []
    otherwise = dimension.otherwise
    for condition, value in dimension.branches:
        parts = _parts_of(condition, table, "CASE")
        if not parts:
            # Every row meets it.
            otherwise = value
            break
        branches.append((parts[0] if len(parts) == 1 else Every(parts), value))
    if not branches:
        raise QuestionError("dimensions", "expected CASE with a first condition that not every row meets")
    # Where a row that meets none does not count, one that does not meet the others meets the last. No engine groups by
    # a literal alone, so one condition stays.
    if otherwise is None:
        _, otherwise = branches[-1]
        del branches[max(1, len(branches) - 1) :]
    return QueryCase(tuple(branches), otherwise), dimension.values


def _parts_of(condition: Filter, table: Table, of: str) -> tuple[Condition, ...]:
    """Return the conditions of a branch of CASE or a step, all of which must hold; none: every row meets it."""
    if not can_hold(condition, table):
        raise QuestionError(
            "dimensions",
            f"expected {of} without a condition that no row can meet: its value would count nothing",
        )
    return conditions_of([condition], table)


def _funnel(dimension: Funnel, table: Table) -> tuple[QueryFunnel, tuple[Value, ...]]:
    _require_all_rows(dimension, table)
    steps: list[Condition] = []
    for condition in dimension.steps:
        parts = _parts_of(condition, table, "FUNNEL_COUNT")
        if not parts:
            raise QuestionError(
                "dimensions", "expected steps that not every row meets: leave such a step out"
            )
        steps.append(parts[0] if len(parts) == 1 else Every(parts))
    return QueryFunnel(tuple(steps)), tuple(range(1, len(steps) + 1))


def _since(
    dimension: FirstSeen | Later, query: HistogramQuery, table: Table, closed_before: int | None
) -> tuple[QueryFirst | QueryLater, tuple[Value, ...]]:
    """Return first times, or how much later than them rows are, in the buckets of the question's range."""
    _require_all_rows(dimension, table)
    time = _time_of(dimension.column, "buckets", table.buckets, dimension.length, table)
    allowed = _with_both_ends(query, table, closed_before, _OF_BUCKETS)
    of = _query_time(time, table)
    begins = [
        (each.first_day, start, _first_value(each.end, time))
        for each in _between(dimension.length, allowed.intervals, time, of.zone)
        for start in [_first_value(each.start, time)]
    ]
    buckets = [(day, start) for day, start, end in begins if start < end]
    cohorts = QueryCohorts(
        of, dimension.length, tuple(day for day, _ in buckets), tuple(start for _, start in buckets)
    )
    if len(buckets) > MOST_COHORTS:
        raise QuestionError(
            "time_range",
            f"expected at most {MOST_COHORTS:,} buckets of first times, which the query names: longer ones, or a "
            "shorter range",
        )
    if isinstance(dimension, Later):
        return QueryLater(cohorts), tuple(range(len(buckets)))
    return QueryFirst(cohorts), tuple(_first_days(QueryBucket(of, dimension.length), allowed, time))


def _require_all_rows(dimension: Dimension, table: Table) -> None:
    """Refuse a function of all of a member's rows where rows were left out, or a promise is of other elements."""
    block = table.contributions
    bounded = None if block is None else block.bounded_by
    if bounded is BoundedBy.PREPARED:
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            f"{dimension} is not offered for the table {table.name}: it has bound: {bounded}, and such a copy has not "
            "all rows of a member; bound: in_query bounds members of the whole table",
        )
    if bounded is BoundedBy.ASSUMED and isinstance(dimension, Later):
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            f"{dimension} is not offered for the table {table.name}: it has bound: {bounded}, which promises nothing "
            "of the buckets that a member comes back in; bound: in_query bounds members in any",
        )


def _require_bounded(table: Table) -> None:
    """Refuse a CASE where it is not the query that bounds members.

    What a copy was bounded in, or what is promised, are elements of columns. A CASE may be of other columns, and rows
    that no question by a column counts, such as those with NULL, are in the value of ELSE: one element more.
    """
    block = table.contributions
    if block is not None and block.bounded_by is not BoundedBy.IN_QUERY:
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            f"CASE is not offered for the table {table.name}: it has bound: {block.bounded_by}, which bounds members "
            "in elements of columns as they are; bound: in_query bounds them in any",
        )


def require_short_cases(parameters: ReleaseParameters, query: CanonicalQuery) -> None:
    """Refuse a CASE whose query might not fit into a message: a second look repeats it for each name that is found.

    Raises:
        QuestionError: A CASE is that long.
    """
    names = None if parameters.contributions is None else parameters.contributions.names
    most = _MOST_REPEATED // (_TIMES_WRITTEN if names is None else names.most_names)
    each = sum(map(characters_of, query.dimensions))
    if each > most:
        raise QuestionError(
            "dimensions",
            f"expected CASE with at most about {most:,} characters of conditions, looked-up keys among them, got "
            f"{each:,}"
            f"{'' if names is None else ': beside a column of an unknown domain its query repeats them for each name'}",
        )


def _with_both_ends(
    query: HistogramQuery, table: Table, closed_before: int | None, because: str
) -> OrdinalRestriction:
    """Return which times a question allows.

    Raises:
        QuestionError: It has no first or no last one.
    """
    found = time_restriction(query, table, closed_before)
    allowed, universe = found.intervals, found.column.universe
    if allowed[0].start <= universe.start or allowed[-1].end >= universe.end:
        # Integers are compared with integers.
        days = f" such as {found.column.name} >= '2026-01-01' AND {found.column.name} < '2026-07-01'"
        example = "" if found.column.type is ColumnType.INT64 else days
        raise QuestionError("time_range", _BOTH_ENDS.format(example=example, because=because))
    return found


def _first_days(
    bucket: QueryBucket, restriction: OrdinalRestriction, time: TimeColumn
) -> Iterator[datetime.date]:
    """Yield the first day of each bucket of which the question allows some value."""
    allowed = restriction.intervals
    for each in _between(bucket.length, allowed, time, bucket.time.zone):
        values = Interval(_first_value(each.start, time), _first_value(each.end, time))
        if values.start < values.end and intersection(allowed, (values,)):
            yield each.first_day


def _between(length: BucketLength, allowed: Intervals, time: TimeColumn, zone: str) -> tuple[TimeBucket, ...]:
    unit = int(time.unit.value)
    try:
        ends = timestamp_of(allowed[0].start * unit), timestamp_of(allowed[-1].end * unit)
    except OverflowError:
        raise QuestionError("time_range", BEYOND_ALL_TIMESTAMPS) from None
    return buckets_between(length, *ends, zone)


def _first_value(timestamp: datetime.datetime, time: TimeColumn) -> int:
    """Return the smallest value that stands for no time before a timestamp."""
    return -(-microseconds_of(timestamp) // int(time.unit.value))
