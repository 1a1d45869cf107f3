"""What `BoundMoments` released, and what follows from it at no further cost: COUNT, SUM and AVG, all exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.values.bounds import Clamp

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReleasedColumn:
    """B and N of one column for the groups that are shown, in steps of the quantum.

    Attributes:
        clamp: The ends of what is summed.
        grid: What one in the counts is: N is in steps of 1 / grid.
        centred_grid: The same of B, by which the grid can be divided.
        centred: B, int64 of shape (j,).
        counts: N, int64 of shape (j,): that of the groups, or the column's own.
        sum_variance: The parameter of the noise in B.
        count_variance: The parameter of the noise in N.
        has_own_count: Whether N is the column's own, which had no part in what is shown.
    """

    clamp: Clamp
    grid: int
    centred_grid: int
    centred: Integers
    counts: Integers
    sum_variance: Fraction
    count_variance: Fraction
    has_own_count: bool

    @property
    def scale(self) -> int:
        """How many steps of N one of B is."""
        return self.grid // self.centred_grid

    def doubled_sum(self, row: int) -> int:
        """Return B + (low + high) N of one row on the grid: twice the SUM."""
        return self.scale * int(self.centred[row]) + self.clamp.centre * int(self.counts[row])

    def sum_of(self, row: int) -> Fraction:
        """Return SUM = (B + (low + high) N) / 2 of one row; a multiple of 1/2 on the grid."""
        return Fraction(self.doubled_sum(row), 2 * self.grid)

    def average_of(self, row: int) -> Fraction | None:
        """Return AVG = SUM / COUNT of one row, brought between low and high; None where N is not positive.

        A quotient with noise below it is not unbiased, so nothing is lost by leaving out what no average can be. It is
        for people's eyes only where `intervals` gives an interval for it, which holds it.
        """
        count = int(self.counts[row])
        if count <= 0:
            return None
        return min(
            max(self.sum_of(row) * self.grid / count, Fraction(self.clamp.low)), Fraction(self.clamp.high)
        )


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """The groups that are shown: positions in the histogram, by descending N, ties by the group.

    Attributes:
        groups: The positions, int64 of shape (j,).
        counts: N of each, int64 of shape (j,).
        columns: N and B of each column.
        count_variance: The parameter of the noise in `counts`.
        threshold: A group is shown exactly if its N exceeds this; None over a known domain.
        minimum: The smallest n that a shown group can have: m, or 0 over a known domain.
        grid: All counts, the threshold and the minimum are in steps of 1 / grid.
    """

    groups: Integers
    counts: Integers
    columns: tuple[ReleasedColumn, ...]
    count_variance: Fraction
    threshold: int | None
    minimum: int
    grid: int

    def rows_by_sum(self, column: int) -> list[int]:
        """Return the rows by descending SUM of a column, ties by the group."""
        return self.rows_by(self.columns[column].sum_of)

    def rows_by_average(self, column: int) -> list[int]:
        """Return the rows by descending AVG of a column, ties by the group; those without an average come last."""
        return self.rows_by(self.columns[column].average_of)

    def rows_by(self, value: Callable[[int], Fraction | None]) -> list[int]:
        """Return the rows by descending values, ties by the group; those without one come last."""

        def place(row: int) -> tuple[bool, Fraction, int]:
            found = value(row)
            return found is None, -(found or Fraction(0)), int(self.groups[row])

        return sorted(range(self.groups.size), key=place)
