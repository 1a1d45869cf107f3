"""Sets of integers as sorted, disjoint, half-open intervals that do not touch: one set has one form.

Days and truth values are counted as integers too, so that `x IN (1, 2)`, `x BETWEEN 1 AND 2` and `x > 0 AND x < 3`
become the same intervals.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from dp_service.queries.elements import days_of, microseconds_of
from dp_service.queries.filters import INT64_MAXIMUM, INT64_MINIMUM, Value
from dp_service.terms import ColumnType


@dataclass(frozen=True, order=True)
class Interval:
    """The integers from `start` to `end` - 1; never empty."""

    start: int
    end: int


Intervals = tuple[Interval, ...]

MOST_LISTED = 8
"""How many integers a condition lists at most for one interval, and for a gap between two.

So a condition is no longer than a few times the one that was asked, however wide its intervals are.
"""

# Engines hold timestamps in units from nanoseconds to seconds. Those between these two fit all of them, so a query may
# name both ends; rows with others are left out, as rows with days that no calendar has.
FIRST_TIMESTAMP = datetime.datetime(1700, 1, 1, tzinfo=datetime.UTC)
END_OF_TIMESTAMPS = datetime.datetime(2262, 1, 1, tzinfo=datetime.UTC)
YEARS_OF_TIMESTAMPS = "the years 1700 to 2261"


def ordinal(value: Value) -> int:
    """Return the integer that stands for a value.

    It is the number of days since 1970-01-01 for a day, of microseconds for a timestamp, and 0 or 1 for a truth value.
    """
    if isinstance(value, datetime.datetime):
        return microseconds_of(value)
    if isinstance(value, datetime.date):
        return days_of(value)
    return int(value)


UNIVERSES = {
    ColumnType.INT64: Interval(INT64_MINIMUM, INT64_MAXIMUM + 1),
    ColumnType.BOOL: Interval(0, 2),
    ColumnType.DATE: Interval(ordinal(datetime.date.min), ordinal(datetime.date.max) + 1),
    ColumnType.TIMESTAMP: Interval(ordinal(FIRST_TIMESTAMP), ordinal(END_OF_TIMESTAMPS)),
}


def universe_of(kind: ColumnType, *, counted: bool) -> Interval:
    """Return the integers that stand for the values of a column; `counted`: it holds timestamps as 64-bit integers."""
    return UNIVERSES[ColumnType.INT64 if counted else kind]


def points(values: Iterable[int]) -> Intervals:
    """Return the set of the given integers."""
    found: list[Interval] = []
    for value in sorted(set(values)):
        if found and found[-1].end == value:
            found[-1] = Interval(found[-1].start, value + 1)
        else:
            found.append(Interval(value, value + 1))
    return tuple(found)


def intersection(left: Intervals, right: Intervals) -> Intervals:
    """Return the integers that are in both sets."""
    found: list[Interval] = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, end = max(left[i].start, right[j].start), min(left[i].end, right[j].end)
        if start < end:
            found.append(Interval(start, end))
        if left[i].end < right[j].end:
            i += 1
        else:
            j += 1
    return tuple(found)


def complement(intervals: Intervals, universe: Interval) -> Intervals:
    """Return the integers of the universe that are not in the set; the set lies within the universe."""
    starts = [universe.start, *(interval.end for interval in intervals)]
    ends = [*(interval.start for interval in intervals), universe.end]
    return tuple(Interval(start, end) for start, end in zip(starts, ends, strict=True) if start < end)


def is_short(intervals: Intervals) -> bool:
    """Return whether a list of the set is no longer than its two ends and a list of the gaps between them.

    It is never one of intervals that are wide: gaps between them may be wider still.
    """
    return size(intervals) <= min(size(gaps(intervals)) + 2, MOST_LISTED * len(intervals))


def divided(intervals: Intervals) -> tuple[Intervals, ...]:
    """Return the parts of a set, which is not empty, between gaps that are too wide to be listed."""
    parts: list[list[Interval]] = [[intervals[0]]]
    for before, each in pairwise(intervals):
        if each.start - before.end > MOST_LISTED:
            parts.append([])
        parts[-1].append(each)
    return tuple(map(tuple, parts))


def gaps(intervals: Intervals) -> Intervals:
    """Return the integers missing between the ends of a set, which is not empty."""
    return complement(intervals, Interval(intervals[0].start, intervals[-1].end))


def parts_written(intervals: Intervals) -> tuple[Intervals, ...]:
    """Return the parts that a condition writes each for itself: what is between wide gaps, all short parts as one."""
    if is_short(intervals):
        return (intervals,)
    parts = divided(intervals)
    listed = tuple(each for part in parts if is_short(part) for each in part)
    wide = tuple(part for part in parts if not is_short(part))
    return (listed, *wide) if listed else wide


def written(intervals: Intervals, universe: Interval) -> Interval | None:
    """Return the span of the numbers in the condition that `render` writes for the set; None if there are none.

    For a short part they are its members, otherwise its ends, except those of the universe, and the ends of its gaps.
    """
    numbers: set[int] = set()
    for part in parts_written(intervals):
        ends = {part[0].start, part[-1].end - 1}
        if not is_short(part):
            ends |= {end for gap in gaps(part) for end in (gap.start, gap.end - 1)}
            ends -= {universe.start, universe.end - 1}
        numbers |= ends
    return Interval(min(numbers), max(numbers) + 1) if numbers else None


def size(intervals: Intervals) -> int:
    """Return how many integers the set has."""
    return sum(interval.end - interval.start for interval in intervals)
