"""Variances of the groups that are shown, from two averages of one release: of x, and of the squares of its distance.

With c = 2 x - (low + high) and h its square in steps of 2^j, off from c^2 / 2^j by at most d
(`dp_service.values.squares`), the variance of the n numbers that are counted is

    Var(x) = (E[c^2] - E[c]^2) / 4, within +- 2^j d / 4 of (2^j E[h] - E[c]^2) / 4,

and lies between 0 and W^2 / 4. It is divided by n, and not by n - 1.

Its interval is the box of the intervals of both averages, each at half the alpha, so that both hold together: the
least of one with the largest of the other, and the other way round. It is wider than it would have to be, and needs
nothing of how their noise goes together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from dp_service.mechanisms.aggregates.intervals import (
    AverageInterval,
    ShownRows,
    average_intervals,
    least_certain_count,
)
from dp_service.mechanisms.aggregates.released import ReleasedMoments
from dp_service.values.bounds import Clamp
from dp_service.values.squares import OFF

# Square roots are rounded outwards to a part of 2^32 of a step.
_ROOTS = 2**32


class SpreadInterval(NamedTuple):
    """A variance in squared steps, or a standard deviation in steps, and the inclusive ends of its interval."""

    value: Fraction
    lower: Fraction
    upper: Fraction

    @property
    def root(self) -> SpreadInterval:
        """The standard deviation of a variance."""
        return SpreadInterval(_root(self.value), _root(self.lower), _root(self.upper, up=True))


@dataclass(frozen=True)
class SpreadColumns:
    """A column and its squares, of one release.

    Attributes:
        place: The place of the column.
        squares_place: The place of its squares.
        clamp: The ends of the column.
        size: What one step of its squares is worth: so many squared halves of a step of the column.
    """

    place: int
    squares_place: int
    clamp: Clamp
    size: Fraction

    def value(self, release: ReleasedMoments, row: int) -> Fraction | None:
        """Return the variance of one row in squared steps, within 0 and W^2 / 4; None where N is not positive."""
        mean, square = (release.columns[each].average_of(row) for each in (self.place, self.squares_place))
        return None if mean is None or square is None else self._variance(square, self._centred(mean) ** 2)

    def shown_value(self, release: ReleasedMoments, row: int, *, alpha: Fraction) -> Fraction | None:
        """Return the same; None also where `intervals` of all that was released would show none."""
        certain = all(
            int(release.columns[place].counts[row]) >= least_certain_count(release, place, alpha=alpha / 2)
            for place in (self.place, self.squares_place)
        )
        return self.value(release, row) if certain else None

    def intervals(
        self, release: ReleasedMoments, shown: ShownRows, *, alpha: Fraction
    ) -> list[SpreadInterval | None]:
        """Return the variance of each row that is shown with its interval, at alpha / 2.

        None where one of the averages would not be shown at half of alpha.

        Raises:
            ValueError: alpha is out of range.
        """
        means, squares = (
            average_intervals(release, place, shown, alpha=alpha / 2)
            for place in (self.place, self.squares_place)
        )
        return [
            self._spread(release, row, *ends) for row, *ends in zip(shown.rows, means, squares, strict=True)
        ]

    def _spread(
        self,
        release: ReleasedMoments,
        row: int,
        mean: AverageInterval | None,
        square: AverageInterval | None,
    ) -> SpreadInterval | None:
        value = self.value(release, row)
        if mean is None or square is None or value is None:
            return None
        ends = [self._centred(end) for end in mean]
        least = Fraction(0) if ends[0] <= 0 <= ends[1] else min(end**2 for end in ends)
        lower = self._variance(square.lower - OFF, max(end**2 for end in ends))
        upper = self._variance(square.upper + OFF, least)
        return SpreadInterval(value, min(lower, value), max(upper, value))

    def _centred(self, mean: Fraction) -> Fraction:
        return 2 * mean - self.clamp.centre

    def _variance(self, square: Fraction, centred: Fraction) -> Fraction:
        largest = Fraction(self.clamp.width**2, 4)
        return min(max((square * self.size - centred) / 4, Fraction(0)), largest)


def _root(number: Fraction, *, up: bool = False) -> Fraction:
    """Return a square root, rounded down or up."""
    scaled = number * _ROOTS**2
    found = math.isqrt(math.ceil(scaled) if up else math.floor(scaled))
    return Fraction(found + (up and found**2 < scaled), _ROOTS)
