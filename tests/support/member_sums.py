"""Counts and centred sums of one group from the rows of its members: what every engine's answer is compared with.

Over **members' totals** a member counts once: n rises by 1 and B by b = 2 s - (L + U), |b| <= U - L. Over **rows** it
counts with all its rows if they are at most tau: n rises by their number c and B by the sum of 2 x - (l + u), at most
(u - l) c. A member with more rows counts as tau rows of their mean: n rises by tau, and B by 2 S - (l + u) tau, where S
is the sum of its x times tau / c, rounded and within l tau and u tau. All of it is in steps of which u - l has at least
a thousand (`Clamp.finer`). No row is preferred to another one, and no order
of a member's rows is needed, which engines do not have.

n and B are formed from the same rows. A member counts in n exactly if at least one of its rows counts, and b is formed
for each member, never from a SUM and a COUNT over different ones: a member whose rows are all NULL would move B by
L + U and n not at all.

With several columns there is one n for all that share it. A row counts if it is usable in each of these. A column that
may be NULL where others are not has a count of its own: its n_j and B_j are formed from the rows that count and are
usable in it too. Both rules look at the member's own rows alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dp_service.values.bounds import Clamp, ValueBounds
from dp_service.values.quantum import Value
from tests.support.values import centred, is_usable, row_steps

Row = Sequence[Value]
"""One value for each column."""


@dataclass(frozen=True)
class SummedColumn:
    """A column and how it is summed.

    Attributes:
        bounds: How it is rounded and clamped.
        stands_for_missing: The steps that count where a value is not usable; None: the row does not count.
        has_own_count: Whether it has an n of its own; otherwise rows that it cannot use do not count at all.
        parts: Into how many a step is divided where rows are summed; None: as many as `Clamp.parts` says.
    """

    bounds: ValueBounds
    stands_for_missing: int | None = None
    has_own_count: bool = False
    parts: int | None = None

    def steps(self, value: Value) -> int | None:
        """Return the clamped steps of a row, None if it does not count in this column."""
        found = row_steps(self.bounds, value)
        if found is None and self.stands_for_missing is not None:
            return self.bounds.rows(self.stands_for_missing)
        return found


@dataclass(frozen=True)
class ColumnSum:
    """B of one column, and its own n if it has one."""

    centred: int
    count: int | None


@dataclass(frozen=True)
class GroupSums:
    """n of a group, and the sums of each column."""

    count: int
    columns: tuple[ColumnSum, ...]


def group_sums(
    members: Iterable[Sequence[Row]], columns: Sequence[SummedColumn], *, rows_of_member: int | None = None
) -> GroupSums:
    """Return n and every B of one group.

    Args:
        members: The rows of each member that counts in the group once contributions are bounded.
        columns: How each column is summed.
        rows_of_member: tau, as how many rows a member counts at most. None: sums are over members' totals.
    """
    count, found = 0, [[0, 0] for _ in columns]
    for rows in members:
        counting = [row for row in rows if _counts(row, columns)]
        count += _weight(len(counting), rows_of_member)
        for place, column in enumerate(columns):
            steps = [column.steps(row[place]) for row in counting]
            usable = [step for step in steps if step is not None]
            found[place][0] += _centred(usable, column, rows_of_member)
            found[place][1] += _weight(len(usable), rows_of_member)
    sums = zip(found, columns, strict=True)
    return GroupSums(
        count,
        tuple(ColumnSum(centred, own if column.has_own_count else None) for (centred, own), column in sums),
    )


def _counts(row: Row, columns: Sequence[SummedColumn]) -> bool:
    pairs = zip(row, columns, strict=True)
    return all(
        column.has_own_count or column.stands_for_missing is not None or is_usable(value)
        for value, column in pairs
    )


def _weight(rows: int, rows_of_member: int | None) -> int:
    """Return by how much a member with so many counting rows raises n."""
    return min(rows, rows_of_member or 1)


def _centred(steps: Sequence[int], column: SummedColumn, rows_of_member: int | None) -> int:
    bounds = column.bounds
    if rows_of_member is None:
        if not steps:
            return 0
        return centred(bounds.totals, bounds.totals(sum(steps)))
    clamp = bounds.rows
    parts = column.parts or clamp.parts
    finer = Clamp(clamp.low * parts, clamp.high * parts)
    added = sum(steps) * parts
    counted = min(len(steps), rows_of_member)
    return 2 * _weighted(added, len(steps), counted, finer) - finer.centre * counted


def _weighted(total: int, rows: int, counted: int, clamp: Clamp) -> int:
    """Return the sum of so many rows of the mean of all of them, rounded in doubles as engines do it."""
    if rows == counted:
        return total
    found = math.floor(float(total) * counted / rows + 0.5)
    return min(max(found, clamp.low * counted), clamp.high * counted)
