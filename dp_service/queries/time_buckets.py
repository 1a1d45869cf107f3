"""Buckets of time: the known domain of DATE_TRUNC over a question's range, and in how many of them a member may count.

A bucket is a day, a week that begins on Monday, a month, a quarter or a year of a zone's calendar, and is named by its
first day. A time falls into the bucket of the day that the zone's clocks show, so a day may have 23 or 25 hours, and a
day that a zone skipped is no bucket. Which buckets there are follows from the question's range alone, never from the
data: a bucket without rows counts 0.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.errors import QuestionError
from dp_service.queries.times import BEYOND_ALL_TIMESTAMPS, start_of_day

MAX_BUCKETS = 10_000
"""How many buckets a question has at most."""


@dataclass(frozen=True)
class TimeBucket:
    """A bucket with the times in it, of the question's range: from `start` to before `end`, in UTC."""

    first_day: datetime.date
    start: datetime.datetime
    end: datetime.datetime


def buckets_between(
    length: BucketLength, start: datetime.datetime, end: datetime.datetime, zone: str
) -> tuple[TimeBucket, ...]:
    """Return the buckets that hold some time from `start` to before `end`, in order.

    The first and the last may be in part outside of the range; their times end with it.

    Args:
        length: How long a bucket is.
        start: Where the range begins, in UTC.
        end: The first time after the range, in UTC.
        zone: The IANA name of the zone whose calendar it is.

    Raises:
        QuestionError: The range holds no bucket or more than 10,000, or goes beyond the years 1 to 9999.
    """
    if start >= end:
        raise QuestionError("time_range", "it must not be empty where it is divided into buckets")
    found: list[TimeBucket] = []
    try:
        for bucket in _buckets_from(length, start, end, zone):
            found.append(bucket)
            if len(found) > MAX_BUCKETS:
                raise QuestionError("time_range", f"it must have at most {MAX_BUCKETS} buckets")
    except OverflowError:
        raise QuestionError("time_range", BEYOND_ALL_TIMESTAMPS) from None
    return tuple(found)


def bucket_of(length: BucketLength, timestamp: datetime.datetime, zone: str) -> datetime.date:
    """Return the first day of the bucket that a time falls into: what an engine's own function has to agree with."""
    return length.first_day(timestamp.astimezone(ZoneInfo(zone)).date())


def _buckets_from(
    length: BucketLength, start: datetime.datetime, end: datetime.datetime, zone: str
) -> Iterator[TimeBucket]:
    first = bucket_of(length, start, zone)
    begins = start
    while begins < end:
        following = length.day_after(first)
        ends = min(start_of_day(following, zone), end)
        # A day that the zone's calendar skipped begins when the next one does.
        if begins < ends:
            yield TimeBucket(first, begins, ends)
        first, begins = following, ends
