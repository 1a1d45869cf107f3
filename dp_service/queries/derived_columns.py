"""From what a question groups by to group-by columns: the policy's own, and functions with a known domain.

The domain of a function follows from the question, the policy and the clock, and never from the data:

- of **buckets of time** it is every bucket that holds some value of the time column which the question's own conditions
  and the closed periods allow; both ends of the range have to follow from these. A bucket without rows counts 0;
- of **a part of the time** it is every number that the part can be. Where the clocks of the policy's zone change, both
  ends of the range have to follow as well: the query carries the changes in between;
- of **CASE** it is the values that it names;
- of **bins** it is their labels. Numbers are rounded to the policy's quantum, as where they are summed, and those
  beyond the edges are in the first bin or in the last;
- of **a part of a text** it is what the column's listed values become; it is unknown where these are;
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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from dp_service.queries.allowed_columns import groupable, time_of
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.canonical import time_restriction
from dp_service.queries.canonical_columns import (
    UTC,
    Condition,
    Every,
    OrdinalRestriction,
    QueryBins,
    QueryBucket,
    QueryCase,
    QueryCohorts,
    QueryColumn,
    QueryFirst,
    QueryFunnel,
    QueryLater,
    QueryPart,
    QueryPartOfText,
    Source,
    query_column,
    query_time,
)
from dp_service.queries.canonical_conditions import can_hold, conditions_of, within_times
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.columns import Column, Nulls
from dp_service.queries.coordinates import query_value
from dp_service.queries.dimensions import (
    Binned,
    Cases,
    Dimension,
    Extracted,
    FirstSeen,
    Funnel,
    Later,
    PartOfText,
    Truncated,
    answer_columns,
    columns_of,
    is_of_member,
)
from dp_service.queries.elements import microseconds_of, timestamp_of
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import Filter, In, InPart, Value, column_filters, type_of
from dp_service.queries.intervals import Interval, Intervals, intersection
from dp_service.queries.policy_schema import ColumnSchema
from dp_service.queries.promised_bounds import require_all_rows, require_bounded
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from dp_service.queries.time_buckets import TimeBucket, buckets_between
from dp_service.queries.times import BEYOND_ALL_TIMESTAMPS, TimeColumn, TimeUnit
from dp_service.terms import ColumnType
from dp_service.values.bounds import Clamp

_BOTH_ENDS = (
    "expected a range of time with both ends, from conditions{example} or a time range: {because}; the first and the "
    "last time that there is (the years 1 and 9999 of days) end nothing"
)
MOST_COHORTS = 1_000
# Below them doubles hold every half of a step.
_MOST_STEPS = 2**52
# Four such domains fit into a query, so the column is restricted to its own, as the part's is.
_MOST_TEXTS = 10_000
_OF_BUCKETS = "its buckets are what is counted"
_OF_CLOCKS = "the clocks of {} change"


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
    found = tuple(
        _grouped(dimension, name, query, table, closed_before)
        for dimension, name in zip(query.dimensions, names, strict=True)
    )
    sources = [each.source for each in found if each.source is not None]
    if any(each in sources[:place] for place, each in enumerate(sources)):
        raise QuestionError(
            "dimensions", "expected each function to group by once: two of them are one, written in two ways"
        )
    return found


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
        case Binned():
            source, values = _bins(dimension, table)
        case PartOfText():
            return _part_of_text(dimension, name, table)
        case Funnel():
            source, values = _funnel(dimension, table)
        case FirstSeen() | Later():
            source, values = _since(dimension, query, table, closed_before)
    delta = _delta(dimension, len(values), table)
    return Grouped(_column(name, type_of(values[0]), tuple(values), delta), source)


def _column(name: str, kind: ColumnType, values: tuple[Value, ...] | None, delta: int | None) -> Column:
    return ColumnSchema(type=kind, group_by=True, delta=delta).resolved(
        Column,
        name=name,
        domain=values,
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
    if isinstance(dimension, Binned):
        return values
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


def _bucket(
    dimension: Truncated, query: HistogramQuery, table: Table, closed_before: int | None
) -> tuple[QueryBucket, tuple[Value, ...]]:
    time = time_of(dimension.column, "buckets", table.buckets, dimension.length, table)
    found = QueryBucket(query_time(time, table.time_column()), dimension.length)
    allowed = _with_both_ends(query, table, closed_before, _OF_BUCKETS)
    return found, tuple(_first_days(found, allowed, time))


def _part(
    dimension: Extracted, query: HistogramQuery, table: Table, closed_before: int | None
) -> tuple[QueryPart, tuple[Value, ...]]:
    time = time_of(dimension.column, "parts", table.parts, dimension.part, table)
    found = QueryPart(query_time(time, table.time_column()), dimension.part)
    if found.time.zone != UTC:
        _with_both_ends(query, table, closed_before, _OF_CLOCKS.format(found.time.zone))
    return found, tuple(dimension.part.values)


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
    if any(isinstance(each, FirstSeen | Later) for each in query.dimensions):
        raise QuestionError(
            "filters",
            "expected no condition on a part of time beside first times, which are of rows before the range as well",
        )
    if time.unit is TimeUnit.DAYS or time.zone == UTC:
        allowed = time_restriction(query, table, closed_before)
    else:
        allowed = _with_both_ends(query, table, closed_before, _OF_CLOCKS.format(time.zone))
    times = allowed.hull
    if not intersection((times,), (time.calendar,)):
        raise QuestionError("time_range", BEYOND_ALL_TIMESTAMPS)
    return within_times(canonical, times)


def _case(dimension: Cases, table: Table) -> tuple[QueryCase, tuple[Value, ...]]:
    require_bounded(table)
    branches: list[tuple[Condition, Value]] = []
    otherwise = dimension.otherwise
    for condition, value in dimension.branches:
        parts = _parts_of(condition, table, "CASE, or grouped by,")
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


def _bins(dimension: Binned, table: Table) -> tuple[QueryBins, tuple[Value, ...]]:
    require_bounded(table)
    column = table.numbers_of(dimension.column)
    value, size = query_value(column), column.bounds.quantum.size
    # A number is below an edge exactly if its steps are below the edge's, rounded up.
    edges = tuple(ceil(each / size) for each in dimension.edges)
    if max(map(abs, edges)) > _MOST_STEPS:
        raise QuestionError("dimensions", f"{column.name}: expected edges of bins of at most 2^52 steps")
    rows = replace(value.bounds, rows=Clamp(edges[0] - 1, edges[-1]))
    read = replace(value, bounds=rows, has_own_count=False)
    return QueryBins(read, edges, dimension.labels), dimension.labels


def _part_of_text(dimension: PartOfText, name: str, table: Table) -> Grouped:
    """Return a part of a text. A member has at most as many as values of the column, none of which is too long."""
    require_bounded(table)
    column = groupable(table, dimension.column)
    if column.type is not ColumnType.STRING or column.lookup is not None:
        raise QuestionError("dimensions", f"{column.name}: expected a part of a column of texts of the table")
    if len(column.domain or ()) > _MOST_TEXTS:
        raise QuestionError(
            "dimensions",
            f"{column.name}: expected a part of a column of at most {_MOST_TEXTS:,} listed texts",
        )
    function = dimension.function
    texts = None if column.domain is None else {function.of(str(each)) for each in column.domain}
    values = None if texts is None else tuple(sorted(texts))
    found = _column(name, ColumnType.STRING, values, column.delta)
    return Grouped(found, QueryPartOfText(query_column(column), function))


def _parts_of(condition: Filter, table: Table, of: str) -> tuple[Condition, ...]:
    """Return the conditions of a branch of CASE or a step, all of which must hold; none: every row meets it."""
    if not can_hold(condition, table):
        raise QuestionError(
            "dimensions",
            f"expected {of} without a condition that no row can meet: its value would count nothing",
        )
    return conditions_of([condition], table)


def _funnel(dimension: Funnel, table: Table) -> tuple[QueryFunnel, tuple[Value, ...]]:
    require_all_rows(dimension, table)
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
    require_all_rows(dimension, table)
    time = time_of(dimension.column, "buckets", table.buckets, dimension.length, table)
    allowed = _with_both_ends(query, table, closed_before, _OF_BUCKETS)
    of = query_time(time, table.time_column())
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
