"""From a question by buckets of time to a group-by column with a known domain.

The domain is every bucket that holds some value of the time column which the question's own conditions and the closed
periods allow: both ends of the range have to follow from these. So it depends on the question, the policy and the
clock, and never on the data; a bucket without rows counts 0. Which bucket a row is in is a function of its time alone,
so a member is in at most as many buckets as there are, or as it has different times.

Bounded contributions bound members in buckets as in any other elements: a bucket is an element, named by its first day.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from dp_service.queries.answer_columns import BUCKET_COLUMN
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.canonical import time_restriction
from dp_service.queries.canonical_query import OrdinalRestriction, QueryBucket, query_column
from dp_service.queries.columns import Column, Nulls
from dp_service.queries.elements import microseconds_of, timestamp_of
from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.intervals import Interval, Intervals, intersection
from dp_service.queries.policy_schema import ColumnSchema
from dp_service.queries.structured import HistogramQuery, Measure
from dp_service.queries.tables import Table
from dp_service.queries.time_buckets import TimeBucket, buckets_between, buckets_of_member
from dp_service.queries.times import BEYOND_ALL_TIMESTAMPS, TimeColumn, TimeUnit
from dp_service.terms import ColumnType

_BOTH_ENDS = (
    "expected a range of time with both ends, from conditions{example} or a time range: its buckets are what is "
    "counted; the first and the last time that there is (the years 1 and 9999 of days) end nothing"
)
# Days are counted as if each began in UTC: their calendar has no clocks.
_CALENDAR = "UTC"


def bucket_of_question(query: HistogramQuery, table: Table) -> QueryBucket | None:
    """Return into which buckets a question divides the time column; None: into none.

    Raises:
        RefusedByPolicyError: The policy offers no such buckets.
        QuestionError: The time column is not among the columns that the question groups by.
    """
    if query.bucket is None:
        return None
    column, time, length = table.time_column(), _time_of(table), query.bucket.length
    if length not in table.buckets:
        offered = ", ".join(table.buckets) or "none"
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            f"{time.name}: the policy does not offer buckets of a {length}; of this table it offers {offered}",
        )
    if time.name not in query.dimensions:
        if query.in_sql:
            raise QuestionError("sql", f"expected DATE_TRUNC of the time column {time.name}, and of no other")
        raise QuestionError("bucket", f"expected the time column {time.name} among the columns to group by")
    _require_bounded_events(query, table)
    zone = _CALENDAR if time.unit is TimeUnit.DAYS else time.zone
    return QueryBucket(query_column(column), length, zone, time.unit)


def _require_bounded_events(query: HistogramQuery, table: Table) -> None:
    """Refuse rows whose number a promise bounds in one element of a column, and not in a bucket of many."""
    if query.measure is Measure.EVENTS and table.clip(query.measure) is None and len(query.dimensions) == 1:
        raise RefusedByPolicyError(
            Rule.MEASURE,
            f"COUNT(*) by buckets of time alone is not offered for the table {table.name}: the policy assumes how many "
            "rows a member has in one element of a column (tau_is: assumed), which bounds no bucket. It is offered "
            "where the policy clips (tau_is: clipped)",
        )


def bucket_column(
    bucket: QueryBucket, query: HistogramQuery, table: Table, closed_before: int | None
) -> Column:
    """Return the buckets of a question as a column with a known domain, to which the policy gives a Delta.

    Raises:
        QuestionError: The question's range has no two ends, no bucket, or too many.
    """
    restriction = time_restriction(query, table, closed_before)
    days = tuple(_first_days(bucket, restriction, _time_of(table)))
    delta = buckets_of_member(table.time_column().delta, len(days))
    return ColumnSchema(type=ColumnType.DATE, group_by=True, delta=delta).resolved(
        Column,
        name=BUCKET_COLUMN,
        domain=days,
        nulls=Nulls.DROP,
        publication=None,
        timestamps=None,
    )


def _time_of(table: Table) -> TimeColumn:
    if table.time is None:
        raise AssertionError("only a table with a time column has buckets")
    return table.time


def _first_days(
    bucket: QueryBucket, restriction: OrdinalRestriction, time: TimeColumn
) -> Iterator[datetime.date]:
    """Yield the first day of each bucket of which the question allows some value."""
    allowed, universe = restriction.intervals, restriction.column.universe
    if allowed[0].start <= universe.start or allowed[-1].end >= universe.end:
        # Integers are compared with integers.
        days = f" such as {time.name} >= '2026-01-01' AND {time.name} < '2026-07-01'"
        example = "" if time.type == "int64" else days
        raise QuestionError("time_range", _BOTH_ENDS.format(example=example))
    for each in _between(bucket.length, allowed, time, bucket.zone):
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
