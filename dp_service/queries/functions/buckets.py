"""DATE_TRUNC('month', day): the bucket of time that a row is in, of its zone's calendar, named by its first day.

Its domain is every bucket that holds some value of the time column which the question's own conditions and the closed
periods allow; both ends of the range have to follow from these. A bucket without rows counts 0.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.answer_columns import BUCKET_COLUMN
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.canonical_columns import (
    OrdinalRestriction,
    QueryColumn,
    QueryTime,
    Source,
    query_time,
)
from dp_service.queries.elements import microseconds_of, timestamp_of
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import require_valid
from dp_service.queries.functions.function import Function, Meaning, OfColumn
from dp_service.queries.intervals import Interval, Intervals, intersection
from dp_service.queries.time_buckets import TimeBucket, buckets_between
from dp_service.queries.times import BEYOND_ALL_TIMESTAMPS, TimeColumn

if TYPE_CHECKING:
    from dp_service.queries.derived_columns import Context

OF_BUCKETS = "its buckets are what is counted"


@dataclass(frozen=True)
class Truncated(OfColumn):
    """The time column, divided into buckets."""

    NAMES: ClassVar[tuple[str, ...]] = (BUCKET_COLUMN,)
    is_of_time: ClassVar[bool] = True
    is_of_range: ClassVar[bool] = True
    is_series: ClassVar[bool] = True
    has_quantiles: ClassVar[bool] = False

    length: BucketLength

    def __str__(self) -> str:
        return f"DATE_TRUNC('{self.length}', {self.column})"

    @property
    def label(self) -> str:
        """Its length."""
        return str(self.length)

    def require_beside(self, others: Sequence[Function]) -> None:
        """Refuse a second length."""
        is_one = not any(isinstance(each, Truncated) for each in others)
        require_valid(is_one, "dimensions", "expected buckets of one length to group by")

    def meaning(self, context: Context) -> Meaning:
        """Return the buckets of the question's range."""
        time = context.time(self.column, "buckets", context.table.buckets, self.length)
        column = context.table.time_column()
        source = QueryBucket(query_time(time, column), self.length)
        days = tuple(first_days(self.length, context.range_with_ends(OF_BUCKETS), time, source.time.zone))
        return Meaning(source, days, least(len(days), time.buckets[self.length] or column.of_member))


def least(values: int, of_member: int | None) -> int:
    """Return in how many values of a function of one column a member is: in no more than of the column."""
    return values if of_member is None else min(values, of_member)


@dataclass(frozen=True)
class QueryBucket(Source):
    """The bucket of time that a row is in, by its first day."""

    time: QueryTime
    length: BucketLength

    def __bytes__(self) -> bytes:
        return length_prefixed(b"bucket", bytes(self.time), self.length.encode())

    @property
    def read_from(self) -> tuple[QueryColumn, ...]:
        """The time column."""
        return (self.time.column,)

    def typical_of(self, buckets: Mapping[BucketLength, int | None]) -> int | None:
        """Return that of its length."""
        return buckets[self.length]

    def __str__(self) -> str:
        return f"the {self.length} of {self.time}"


def first_days(
    length: BucketLength, restriction: OrdinalRestriction, time: TimeColumn, zone: str
) -> Iterator[datetime.date]:
    """Yield the first day of each bucket of which a question allows some value."""
    allowed = restriction.intervals
    for each in between(length, allowed, time, zone):
        values = Interval(first_value(each.start, time), first_value(each.end, time))
        if values.start < values.end and intersection(allowed, (values,)):
            yield each.first_day


def between(length: BucketLength, allowed: Intervals, time: TimeColumn, zone: str) -> tuple[TimeBucket, ...]:
    """Return the buckets from the first value that is allowed to the last.

    Raises:
        QuestionError: They are too many, or a value is no timestamp.
    """
    unit = int(time.unit.value)
    try:
        ends = timestamp_of(allowed[0].start * unit), timestamp_of(allowed[-1].end * unit)
    except OverflowError:
        raise QuestionError("time_range", BEYOND_ALL_TIMESTAMPS) from None
    return buckets_between(length, *ends, zone)


def first_value(timestamp: datetime.datetime, time: TimeColumn) -> int:
    """Return the smallest value that stands for no time before a timestamp."""
    return -(-microseconds_of(timestamp) // int(time.unit.value))
