"""Small member-level data sets with values, their neighbours, and the counts and sums of each group.

A member has, in each group, its rows of one column. Members are bounded already: of those that could be, none is in
more groups than Delta allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement, product

import numpy as np

from dp_service.mechanisms.aggregates import ColumnSums
from dp_service.values.quantum import Value
from tests.support.member_sums import GroupSums, Row, SummedColumn, group_sums

Member = tuple[tuple[Value, ...], ...]
"""The rows of each group."""

DataSet = tuple[Member, ...]

Summing = Callable[[Sequence[Sequence[Row]]], GroupSums]
"""How the rows of each member in a group become its counts and sums."""


def members(values: Sequence[Value], groups: int, *, most_rows: int, typical: int) -> list[Member]:
    """Return every member with these values that is in at most Delta groups."""
    of_group = [rows for size in range(most_rows + 1) for rows in combinations_with_replacement(values, size)]
    return [member for member in product(of_group, repeat=groups) if sum(map(bool, member)) <= typical]


def neighbours(possible: Sequence[Member], most_members: int) -> Iterator[tuple[DataSet, DataSet]]:
    """Yield every data set of fewer members, without and with one member more."""
    for count in range(most_members):
        for chosen in combinations_with_replacement(possible, count):
            for more in possible:
                yield chosen, (*chosen, more)


def sums_of(data: DataSet, groups: int, summing: Summing) -> tuple[GroupSums, ...]:
    """Return the counts and sums of each group of a data set."""
    return tuple(
        summing([[(value,) for value in member[group]] for member in data]) for group in range(groups)
    )


def reference(column: SummedColumn, rows_of_member: int | None = None) -> Summing:
    """Return the package's own way."""
    return derived([column], lambda value: (value,), rows_of_member)


def derived(
    columns: Sequence[SummedColumn], of_row: Callable[[Value], Row], rows_of_member: int | None = None
) -> Summing:
    """Return the package's own way for what follows from the value of each row alone."""
    return lambda members: group_sums(
        [[of_row(row[0]) for row in rows] for rows in members], columns, rows_of_member=rows_of_member
    )


def column_sums(centred: list[int], counts: list[int] | None = None) -> ColumnSums:
    """Return the centred sums of a column by group, and its own counts if it has any."""
    own = None if counts is None else np.array(counts, dtype=np.int64)
    return ColumnSums(np.array(centred, dtype=np.int64), own)
