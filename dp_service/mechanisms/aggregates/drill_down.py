"""Totals beside the rows of a drill-down, and "other": what the rows that are shown leave out.

A release is over pairs (a, b), such as country and product, and totals are over all b of each a. Totals are a release
of their own, with a part of the units: one more Gaussian coordinate for each a. What is added up is contributions, and
all of a member's may be in one total. So it moves a total by at most Delta tau (P Delta tau over P periods), and
all totals together by no more than that: D = (Delta tau P)^2 in squared l2 distance. A SUM moves by W for each
contribution, as it does in a row. In effect totals are `BoundMoments` over rows, Delta tau P of them in one group,
whose groups are known: those that the rows name. Where nothing is summed, rows and totals are `BoundGauss`.

*All rows are added up*, also those that are hidden or would be for their small count. A total of the rows above some
count would not be bounded: one member more can bring a whole row over it.

*Members, or contributions.* A member that has several b counts several times in a total: these are contributions. Only
where the policy says that a member has one value of b does a total count members; then it moves no more than the
rows do.

*Which totals are shown.* Over a known domain all. Over an unknown one those whose a some shown row has: that follows
from what was released. A total is never added up from shown rows, which were selected.

*Other* is the total less what is shown of it: post-processing. It may be negative, as all noisy counts may.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.aggregates.bound_moments import MAX_SUM, BoundMoments, ColumnSums
from dp_service.mechanisms.bounded.bound_gauss import BoundGauss
from dp_service.mechanisms.bounded.contribution_bound import ContributionBound, Counted
from dp_service.mechanisms.histogram import MAX_COUNT, Histogram
from dp_service.mechanisms.parameters import Cost
from dp_service.noise.source import NoiseSource

Integers = NDArray[np.int64]
Released = BoundMoments | BoundGauss


def total_bound(bound: ContributionBound, *, has_one_value: bool) -> ContributionBound:
    """Return what a member can change of the totals by a, given what it can change of rows (a, b).

    `has_one_value`: the policy says that a member has one value of b, so that totals count members.

    >>> total_bound(ContributionBound(8, 2, 1, Counted.EVENTS), has_one_value=False).squared_distance
    256
    >>> total_bound(ContributionBound(8), has_one_value=True).squared_distance
    8
    """
    if has_one_value:
        return bound
    return ContributionBound(1, bound.typical * bound.tau * bound.periods, 1, Counted.EVENTS)


@dataclass(frozen=True, eq=False)
class NoisyTotals:
    """The noisy numbers of all totals, each int64 of shape (totals,).

    Attributes:
        counts: N of each.
        sums: B of each column, and its own N if it has any.
    """

    counts: Integers
    sums: tuple[tuple[Integers, Integers | None], ...] = ()


@dataclass(frozen=True)
class DrillDown:
    """Rows by (a, b) and totals by a, each with its part of the units.

    Guarantee: that of the rows and that of the totals together: delta-approximate zCDP with the sum of their rho, as
    the totals are drawn with noise of their own. Cost: the units of both, and one call if the rows have an unknown
    domain.

    Raises:
        ValueError: The totals have a threshold, another currency, or a bound that is not that of the rows' totals.
    """

    version: ClassVar[int] = 2

    rows: Released
    totals: Released
    has_one_value: bool = False

    def __post_init__(self) -> None:
        if type(self.totals) is not type(self.rows):
            raise ValueError("totals must be of what the rows are of")
        if self.totals.min_count is not None:
            raise ValueError("totals must be over the groups that the rows name, without a threshold")
        if self.totals.currency != self.rows.currency:
            raise ValueError("totals must have the currency of the rows")
        if self.totals.bound != total_bound(self.rows.bound, has_one_value=self.has_one_value):
            raise ValueError("totals must have the bound that `total_bound` gives")
        if _clamps(self.totals) != _clamps(self.rows):
            raise ValueError("totals must be of the columns of the rows, with their clamps")

    @property
    def rho(self) -> Fraction:
        """The zCDP of both."""
        return self.rows.rho + self.totals.rho

    @property
    def total_variance(self) -> Fraction:
        """The parameter of the noise in a total's count."""
        return self.totals.variance if isinstance(self.totals, BoundGauss) else self.totals.count_variance

    @property
    def sum_variances(self) -> tuple[Fraction, ...]:
        """The parameters of the noise in the totals' centred sums, one for each column that is summed."""
        if isinstance(self.totals, BoundGauss):
            return ()
        return tuple(self.totals.sum_variance(place) for place in range(len(self.totals.columns)))

    def worst_case_cost(self) -> Cost:
        """Return the units of both, rounded up together, and the call of the rows."""
        units = self.rows.units + self.totals.units
        return Cost(information=math.ceil(units), calls=self.rows.worst_case_cost().calls)

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return the same, whatever was released."""
        self.rows.cost(released, ended_in_bottom)
        return self.worst_case_cost()

    def draw_totals(
        self,
        histogram: Histogram,
        sums: tuple[ColumnSums, ...],
        of_rows: Sequence[int],
        totals: int,
        noise: NoiseSource,
    ) -> NoisyTotals:
        """Return all totals with their noise. Which of them may be shown is another matter: see `named_totals`.

        Time depends on how many rows and totals there are, and not on their counts and sums.

        Args:
            histogram: n of every row that the engine answered with, or of the whole known domain.
            sums: The sums of each column, by row.
            of_rows: For each row the place of its total.
            totals: How many totals there are.
            noise: Where all randomness comes from: not that of the rows, whose labels it has.
        """
        counts = Histogram.from_element_order(
            _added(histogram.counts_by_element, of_rows, totals, within=MAX_COUNT)
        )
        if isinstance(self.totals, BoundGauss):
            selection = self.totals.run(counts, noise)
            if selection.noisy_counts is None:
                raise AssertionError("bounded counts are released")
            return NoisyTotals(_placed(selection.noisy_counts, selection.indices))
        added = tuple(
            ColumnSums.from_group_order(
                _added(column.centred, of_rows, totals, within=MAX_SUM),
                None if column.counts is None else _added(column.counts, of_rows, totals, within=MAX_COUNT),
            )
            for column in sums
        )
        drawn = self.totals.run(counts, added, noise)
        return NoisyTotals(
            _placed(drawn.counts, drawn.groups),
            tuple(
                (
                    _placed(column.centred, drawn.groups),
                    _placed(column.counts, drawn.groups) if column.has_own_count else None,
                )
                for column in drawn.columns
            ),
        )


def _clamps(released: Released) -> list[object]:
    return [] if isinstance(released, BoundGauss) else [column.clamp for column in released.columns]


def _added(numbers: Integers, of_rows: Sequence[int], totals: int, *, within: int) -> list[int]:
    """Return what the rows of each total add up to, at most `within`.

    No data reach that: it only keeps what is added from overflowing. One member moves a number that is cut off by no
    more than one that is not.
    """
    found = [0] * totals
    for place, number in zip(of_rows, numbers.tolist(), strict=True):
        found[place] += number
    return [min(max(each, -within), within) for each in found]


def _placed(numbers: Integers, places: Integers) -> Integers:
    """Return numbers in the order of their places."""
    found = np.empty_like(numbers)
    found[places] = numbers
    return found


def named_totals(shown: Sequence[int]) -> list[int]:
    """Return which totals are shown over an unknown domain, given the a of every shown row: each once, ascending."""
    return sorted(set(shown))


def other(total: int, shown: Sequence[int]) -> int:
    """Return what is left of a total when the rows that are shown of it are taken away, all in the same steps.

    >>> other(100, [60, 27])
    13
    """
    return total - sum(shown)
