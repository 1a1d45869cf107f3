"""BoundMoments: counts, sums and averages of bounded contributions, several of them in one release.

Sources: Korolova et al. 2009 and Wilson et al. 2020 (bounding, a threshold, and sums that are centred), Swanberg et al.
2023 (Gaussian noise), Bun and Steinke 2016 (approximate zCDP).

Released of each group, n the number of its members (or of their rows):

    N = n + Z, Z discrete Gaussian of parameter sigma_n^2,
    B = sum of (2 x - (low + high)) + Z', Z' discrete Gaussian of parameter sigma_b^2,

where x is a member's total, or the value of a row, between low and high. From these come COUNT = N, SUM =
(B + (low + high) N) / 2 and AVG = (low + high) / 2 + B / (2 N). A B that is not centred is the sum of 2 x, x a member's
total or 0: SUM = B / 2.

Why it is private. Precondition: members were bounded before anything was counted (`ContributionBound`), and n and B are
formed from the same rows. With W = high - low, a member that changes n of a group by
c changes B by at most W c, because each of the c terms is within +-W. Let D be the squared l2 distance of the n of all
groups. Then that of all B is at most W^2 D, and with shares theta + theta_b = 1 and

    sigma_n^2 = D / (2 theta rho) + 1/11, sigma_b^2 = W^2 D / (2 theta_b rho) + 1/11

the n cost theta rho and the B theta_b rho: together rho-zCDP, and sqrt(2 rho)-GDP (`gaussian_price`). Several columns
have a B and a share each. A column of other rows than n, such as those with a value, has its own n_j, one more
coordinate with a share; D is then that of its own rows of a member. A B that is not centred has W = 2 max(|low|,
|high|) and the D of members. All parameters are exact rationals, so rho is never exceeded.

Where members are weighted (`dp_service.bounding.weights`), n has its weight V, a number of hundredths, and a column of
other rows than n a weight of its own. n is on the grid, with V c in place of c. A B of few steps, as of numbers of rows
or members, is on the grid too, with V b of each b. Any other B stays in its steps, with V b / 100 rounded towards 0,
which is within W V c / 100. So D is that of the grid on which a B is. A weight of its own may be by fewer elements than
that of n (`typical`): its V brings the squares of its cells to at most that D, which is the one of its noise.

Over an unknown domain a group is released if it reaches m and N > T, with T from sigma_n alone (`threshold`). The B of
a hidden group is never shown. So whatever only one member brings is hidden with probability at least 1 - delta, and
given that, the two laws are rho-zCDP and sqrt(2 rho)-GDP apart: delta-approximately both.

Why centred. An average needs B and n_j alike, which separate what a member adds by being there from what it adds by its
value. With theta = |low + high| / (W + |low + high|) its sum has exactly the error of one that is not centred
(`Clamp.count_share`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.aggregates.released import ReleasedColumn, ReleasedMoments
from dp_service.mechanisms.bounded.bound_gauss import BoundGauss
from dp_service.mechanisms.bounded.contribution_bound import ContributionBound, Counted
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import Cost, Currency, require_outcome, require_rational
from dp_service.mechanisms.rows import Rows
from dp_service.noise.discrete_gaussian import MAX_VARIANCE
from dp_service.noise.gaussian_price import rho_of_units, variance_for
from dp_service.noise.source import NoiseSource
from dp_service.terms import MechanismName
from dp_service.values.bounds import Clamp

Integers = NDArray[np.int64]


# Noise is within 2^62 and counts are not negative, so no noisy count is as low.
_BELOW_ALL = np.iinfo(np.int64).min


@dataclass(frozen=True)
class SumShare:
    """A column's part of a release.

    Attributes:
        clamp: The ends of a member's total, or of a row where rows are counted, in steps of the quantum.
        share: theta_j, the column's share of the price for its B.
        count_share: The share for a count of its own; None: it shares n with the group.
        grid: What one in its B is in steps of the clamp: 1, or that of the counts.
        rows: How many rows of a member its B and its own count are of; None: as many as n.
        typical: In how many elements a member counts in full in both; None: in as many as in n.
    """

    clamp: Clamp
    share: Fraction
    count_share: Fraction | None = None
    grid: int = 1
    rows: int | None = None
    typical: int | None = None

    def shares(self) -> tuple[Fraction, ...]:
        """Return all shares."""
        return (self.share,) if self.count_share is None else (self.share, self.count_share)


@dataclass(frozen=True, eq=False)
class ColumnSums:
    """The centred sums of one column by group, int64 of shape (groups,), and its own counts if it has any."""

    centred: Integers
    counts: Integers | None = None


@dataclass(frozen=True)
class BoundMoments:
    """Release N and every B of all groups of a known domain, or of those above a threshold.

    `share` is theta, the share of N; with the shares of all columns it adds up to 1. All are public. `bound` says
    what a member can change: over MEMBERS sums are over members' totals, over EVENTS they are over rows, at most tau of
    a member and group. `min_count` is m, None over a known domain.

    Guarantee: with rho = units * epsilon_per^2 / 8, rho-zCDP and sqrt(2 rho)-GDP over a known domain, and
    delta-approximately so over an unknown one, for member-level neighbours whose contributions are bounded by `bound`,
    if each B is formed within its clamp from the rows that its count counts. Cost: information `units`, calls 0 or 1,
    whatever is shown.

    >>> half = Fraction(1, 2)
    >>> asked = BoundMoments(
    ...     Currency(Fraction("0.15"), Fraction("1e-10")), Fraction(5), ContributionBound(1), None, half,
    ...     (SumShare(Clamp(0, 3000), half),),
    ... )
    >>> round(float(asked.count_variance), 2), round(math.sqrt(asked.sum_variance(0)))
    (71.2, 25298)

    Raises:
        ValueError: A parameter is out of range, shares do not add up to 1, or noise cannot be drawn; the message names
            it.
    """

    name: ClassVar[MechanismName] = MechanismName.BOUND_MOMENTS
    version: ClassVar[int] = 2

    currency: Currency
    units: Fraction
    bound: ContributionBound
    min_count: int | None
    share: Fraction
    columns: tuple[SumShare, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError("columns must be at least one")
        shares = [self.share, *chain.from_iterable(column.shares() for column in self.columns)]
        for share in shares:
            require_rational("share", share)
        if sum(shares) != 1:
            raise ValueError(f"shares must add up to 1, got {sum(shares)}")
        _require_drawable("units, epsilon_per, typical, tau, periods and share", self.counts.variance)
        for place in range(len(self.columns)):
            _require_drawable("low, high, share and units", self.sum_variance(place))
            _require_drawable("count_share and units", self.own_count_variance(place) or Fraction(0))

    @cached_property
    def counts(self) -> BoundGauss:
        """The part of the release that is N: a look at the counts with theta of the units."""
        require_rational("units", self.units)
        return BoundGauss(self.currency, self.units * self.share, self.bound, self.min_count)

    @property
    def rho(self) -> Fraction:
        """The zCDP that the units stand for: e^2 / 8 each."""
        return rho_of_units(self.currency.epsilon_per, self.units)

    @property
    def count_variance(self) -> Fraction:
        """The parameter sigma_n^2."""
        return self.counts.variance

    def sum_variance(self, column: int) -> Fraction:
        """Return the parameter sigma_b^2 of a column."""
        summed = self.columns[column]
        distance = replace(self._bound_of(summed), grid=summed.grid).squared_distance
        return variance_for(summed.clamp.width**2 * distance, self.rho * summed.share)

    def _bound_of(self, summed: SumShare) -> ContributionBound:
        """Return what a member can change in a column's own count, on the grid of the counts."""
        bound = replace(self.bound, typical=summed.typical or self.bound.typical)
        if summed.rows is None:
            return bound
        counted = Counted.EVENTS if summed.rows > 1 else self.bound.counted
        return replace(bound, tau=summed.rows, counted=counted)

    def own_count_variance(self, column: int) -> Fraction | None:
        """Return the parameter of the noise in a column's own count, None if it has none."""
        summed = self.columns[column]
        if summed.count_share is None:
            return None
        return variance_for(self._bound_of(summed).squared_distance, self.rho * summed.count_share)

    @property
    def threshold(self) -> int | None:
        """T: groups whose N exceeds it are shown. None over a known domain."""
        return self.counts.threshold

    def worst_case_cost(self) -> Cost:
        """Return the units, rounded up to a whole number, and one call if the domain is unknown."""
        return Cost(information=math.ceil(self.units), calls=0 if self.min_count is None else 1)

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return the same, whatever was released; the threshold is public, so no list ends in it."""
        require_outcome(released >= 0 and not ended_in_bottom)
        return self.worst_case_cost()

    def run(self, histogram: Histogram, sums: tuple[ColumnSums, ...], noise: NoiseSource) -> ReleasedMoments:
        """Return the groups that are shown with N and every B, by descending N, ties by the group.

        Time depends on how many groups come in, and not on their counts and sums.

        Args:
            histogram: n of every group, in an order of the groups that does not depend on it.
            sums: The sums of each column, by group in the same order.
            noise: Where all randomness comes from.

        Raises:
            ValueError: There are not as many sums as columns or groups, or own counts where there are none.
        """
        self._require_fitting(histogram, sums)
        rows = Rows.shuffled(histogram, len(histogram), noise)
        noisy = rows.counts + noise.discrete_gaussian(self.count_variance, len(rows), "counts")
        drawn = [self._noisy_sums(place, of_column, rows, noise) for place, of_column in enumerate(sums)]
        is_shown = self._is_shown(rows.counts, noisy)
        # All rows are sorted, those that are shown first, so that time knows no more than what is released.
        order = rows.descending(noisy * is_shown + _BELOW_ALL * ~is_shown)[: np.count_nonzero(is_shown)]
        return self.released(
            rows.elements[order],
            noisy[order],
            [(centred[order], None if own is None else own[order]) for centred, own in drawn],
        )

    def released(
        self, groups: Integers, counts: Integers, sums: Sequence[tuple[Integers, Integers | None]]
    ) -> ReleasedMoments:
        """Return a release from its numbers, as `run` drew them: it draws nothing and needs no data.

        Args:
            groups: The groups that are shown, shape (j,).
            counts: N of each.
            sums: B of each column, and its own N if it has one.
        """
        return ReleasedMoments(
            groups,
            counts,
            tuple(
                self._released_column(place, centred, counts if own is None else own)
                for place, (centred, own) in enumerate(sums)
            ),
            self.count_variance,
            self.threshold,
            0 if self.min_count is None else self.min_count * self.bound.grid,
            self.bound.grid,
        )

    def _noisy_sums(
        self, place: int, sums: ColumnSums, rows: Rows, noise: NoiseSource
    ) -> tuple[Integers, Integers | None]:
        """Return B and the own N of every row of a column."""
        centred = sums.centred[rows.elements] + noise.discrete_gaussian(
            self.sum_variance(place), len(rows), f"column {place} sums"
        )
        variance = self.own_count_variance(place)
        if sums.counts is None or variance is None:
            return centred, None
        own = noise.discrete_gaussian(variance, len(rows), f"column {place} counts")
        return centred, sums.counts[rows.elements] + own

    def _released_column(self, place: int, centred: Integers, counts: Integers) -> ReleasedColumn:
        own = self.own_count_variance(place)
        return ReleasedColumn(
            self.columns[place].clamp,
            self.bound.grid,
            self.columns[place].grid,
            centred,
            counts,
            self.sum_variance(place),
            self.count_variance if own is None else own,
            has_own_count=own is not None,
        )

    def _is_shown(self, counts: Integers, noisy: Integers) -> NDArray[np.bool_]:
        threshold = self.threshold
        if self.min_count is None or threshold is None:
            return np.ones(counts.size, dtype=np.bool_)
        return (noisy > threshold) & (counts >= self.min_count * self.bound.grid)

    def _require_fitting(self, histogram: Histogram, sums: tuple[ColumnSums, ...]) -> None:
        if len(sums) != len(self.columns):
            raise ValueError(f"sums must be of {len(self.columns)} columns, got {len(sums)}")
        for column, of_column in zip(self.columns, sums, strict=True):
            if (of_column.counts is None) != (column.count_share is None):
                raise ValueError("a column must have counts exactly if it has a count_share")
            arrays = (
                of_column.centred,
                histogram.counts_by_element if of_column.counts is None else of_column.counts,
            )
            if any(array.shape != histogram.counts_by_element.shape for array in arrays):
                raise ValueError(f"sums must have one entry for each of {len(histogram)} groups")


def _require_drawable(names: str, variance: Fraction) -> None:
    if variance > MAX_VARIANCE:
        raise ValueError(
            f"{names} must give a noise variance of at most {MAX_VARIANCE}, got {float(variance):g}"
        )
