"""Which part of a member's rows a question's element has, by what the policy says of columns and of time.

A member's rows are taken to be in as many values of a column as it typically has, and as many rows in each. So a number
means the same in a list by a column as where a condition picks the column's value, and in a series as alone. All of it
is public: where members have other rows, numbers are less accurate, and as private.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.canonical_columns import OrdinalRestriction, QueryColumn, Restriction
from dp_service.queries.columns import Column
from dp_service.queries.elements import timestamp_of
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from dp_service.queries.time_buckets import bucket_of
from dp_service.queries.times import TimeColumn


def row_shares(
    query: HistogramQuery,
    grouped: Sequence[tuple[Column, QueryColumn]],
    restrictions: Sequence[Restriction],
    table: Table,
) -> Fraction:
    """Return into how many parts a member's rows are divided, one of which an element of a question has.

    Args:
        query: The question.
        grouped: What the question groups by, each as a column and as its meaning.
        restrictions: Its conditions.
        table: Its table.
    """
    typical = {each.name: each.of_member_within for each in table.columns}
    names = {column.name for column, _ in grouped}
    read = {each.name for _, meaning in grouped if meaning.source for each in meaning.source.read_from}
    parts = _parts_with_values(query, table) * prod(_values_of_member(*each, table) for each in grouped)
    for each in restrictions:
        of_member = typical.get(each.column.name)
        if each.column.name in names | read:
            continue
        if table.time is not None and each.column.name == table.time.name:
            parts *= max(_parts_of_time(each, table.time), default=Fraction(1))
        elif of_member is not None and each.size:
            parts *= Fraction(of_member, min(of_member, each.size))
    return parts


def _parts_with_values(query: HistogramQuery, table: Table) -> Fraction:
    """Return into how many parts a member's rows are divided, one of which has values with quantiles."""
    stated = [table.quantile(each.column).rows for each in query.quantiles]
    if table.measures.rows is None or not stated:
        return Fraction(1)
    return Fraction(table.measures.rows, max(each or table.measures.rows for each in stated))


def _values_of_member(column: Column, meaning: QueryColumn, table: Table) -> int:
    """Return in how many values of what is grouped by a member typically is; 1: the policy does not say."""
    buckets = {} if table.time is None else table.time.buckets
    # A bucket has the same rows of a member, however many buckets are asked for.
    of_all = None if meaning.source is None else meaning.source.typical_of(buckets)
    return of_all or column.of_member_within or 1


def _parts_of_time(restriction: Restriction, time: TimeColumn) -> Iterator[Fraction]:
    """Yield into how many parts a range of time divides rows, by each length of buckets."""
    if not isinstance(restriction, OrdinalRestriction) or not all(time.ends_in(restriction.hull)):
        return
    hull, unit = restriction.hull, int(time.unit.value)
    ends = timestamp_of(hull.start * unit), timestamp_of((hull.end - 1) * unit)
    for length, of_member in time.buckets.items():
        if of_member is not None:
            first, last = (bucket_of(length, each, time.zone) for each in ends)
            yield Fraction(of_member, _buckets(length, first, last, most=of_member))


def _buckets(length: BucketLength, first: datetime.date, last: datetime.date, *, most: int) -> int:
    """Return how many buckets there are from one to another, but at most so many."""
    found = 1
    while found < most and first < last:
        first, found = length.day_after(first), found + 1
    return found
