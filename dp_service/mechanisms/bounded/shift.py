"""The shift: on a small known domain, counts are released relative to their total, with less noise for the same price.

Source: Lebeda 2025. A member may count in every one of the d elements, in each by at most tau (1 for distinct members).
Let n be the number of members who count in at least one of them. A member changes x_i by some c from 0 to tau, and so
2 x_i - tau n by 2 c - tau: at most tau in absolute value for every i, where 2 x_i would move by up to 2 tau.
n has noise of its own.

Release A_i = 2 x_i - tau n + N_i for every i, N_i of parameter s_A^2, and M = n + N of parameter s_M^2. Then
x_i = (A_i + tau M) / 2, up to noise. With W = d tau^2 the largest squared distance of all 2 x_i - tau n,

    rho = W / (2 s_A^2) + 1 / (2 s_M^2) ,

to which the noise of each adds 1/11 (`gaussian_price`).

n must count exactly the members that some x_i counts, and each once: the same data version, filters and **restriction
to the d elements**. A member that counts in an x_i but not in n would move A_i by 2 tau. The M that is released has
noise of its own: n itself would tell of everybody.

The error of x_i has variance (s_A^2 + tau^2 s_M^2) / 4. At a given rho it is smallest if A gets the share
sqrt(W) / (sqrt(W) + tau) of rho. Any rational share is private, and the one used here divides rho exactly. The standard
deviation is tau (sqrt(d) + 1) / 2 in place of tau sqrt(d), in units of 1 / sqrt(2 rho): 0.75 of it at d = 4, 0.66 at 10
and 0.57 at 50.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dp_service.bounding import relative_counts
from dp_service.mechanisms.bounded.bound_gauss import require_drawable_variance
from dp_service.mechanisms.bounded.contribution_bound import ContributionBound
from dp_service.mechanisms.bounded.selected_intervals import selected_gaussian_interval
from dp_service.mechanisms.bounded.sum_intervals import CountInterval, WeightedNoise, sum_interval
from dp_service.mechanisms.histogram import MAX_COUNT, Histogram
from dp_service.mechanisms.intervals import gaussian_half_width
from dp_service.mechanisms.parameters import (
    MAX_ROWS,
    Cost,
    Currency,
    require_outcome,
    require_positive_integer,
    require_rational,
)
from dp_service.mechanisms.rows import Rows
from dp_service.mechanisms.selection import Selection
from dp_service.noise.gaussian_price import rho_of_units, variance_for
from dp_service.noise.source import NoiseSource
from dp_service.terms import MechanismName

# The exact law of N_i + a N is added up where that takes no more steps than this; elsewhere both laws are taken apart.
_MOST_STEPS = 2**26
# How finely rho is divided between counts and total.
_SHARE_BITS = 20


@dataclass(frozen=True)
class Shift:
    """Release 2 x_i - tau n + N_i for all d elements of a known domain, and n + N.

    `bound` is over one period, and its Delta is d.

    Guarantee: rho-zCDP and sqrt(2 rho)-GDP with rho = units * epsilon_per^2 / 8, for member-level neighbours whose
    contributions are bounded by `bound`, where n counts exactly the members that count in some element. Cost:
    information `units`, calls 0.

    Raises:
        ValueError: A parameter is out of range or does not fit another one, or the noise cannot be drawn; the message
            names it.
    """

    name: ClassVar[MechanismName] = MechanismName.BOUND_GAUSS
    version: ClassVar[int] = 2

    currency: Currency
    units: Fraction
    bound: ContributionBound
    domain_size: int

    def __post_init__(self) -> None:
        require_rational("units", self.units)
        require_positive_integer("domain_size", self.domain_size, at_most=MAX_ROWS)
        if self.bound.periods != 1:
            raise ValueError(f"periods must be 1 for the shift, got {self.bound.periods}")
        if self.bound.typical != self.domain_size or self.bound.grid != 1:
            raise ValueError(
                f"typical must be domain_size, {self.domain_size}, without a grid, got {self.bound.typical}"
            )
        if self.bound.tau > relative_counts.LARGEST_TAU:
            raise ValueError(
                f"tau must be at most {relative_counts.LARGEST_TAU} for the shift, got {self.bound.tau}"
            )
        require_drawable_variance(self.count_variance)
        require_drawable_variance(self.total_variance)

    @property
    def factors(self) -> tuple[int, int]:
        """a and b: counts are released as b x_i - a n."""
        return self.bound.tau, 2

    @property
    def squared_distance(self) -> int:
        """W: by how much one member moves all b x_i - a n together, in square."""
        return self.bound.squared_distance

    @property
    def rho(self) -> Fraction:
        """The zCDP that the units stand for."""
        return rho_of_units(self.currency.epsilon_per, self.units)

    @property
    def count_variance(self) -> Fraction:
        """The parameter s_A^2 of the noise in each count."""
        return variance_for(self.squared_distance, self.rho * self._count_share)

    @property
    def total_variance(self) -> Fraction:
        """The parameter s_M^2 of the noise in the total."""
        return variance_for(1, self.rho * (1 - self._count_share))

    @property
    def error_variance(self) -> Fraction:
        """The variance of the error of each x_i, up to that of a discrete law being slightly below its parameter."""
        a, b = self.factors
        return (self.count_variance + a**2 * self.total_variance) / b**2

    @property
    def has_exact_law(self) -> bool:
        """Whether the law of N_i + a N is added up; it follows from the parameters alone."""
        reaches = [24 * math.sqrt(each) + 3 for each in (self.count_variance, self.total_variance)]
        return reaches[0] * reaches[1] <= _MOST_STEPS

    @cached_property
    def _count_share(self) -> Fraction:
        """About sqrt(W) / (sqrt(W) + a)."""
        root = Fraction(math.isqrt(self.squared_distance << (2 * _SHARE_BITS)), 2**_SHARE_BITS)
        return root / (root + self.factors[0])

    def worst_case_cost(self) -> Cost:
        """Return the units, rounded up to a whole number."""
        return Cost(information=math.ceil(self.units), calls=0)

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return the same: all elements are released, whatever is shown."""
        require_outcome(released == self.domain_size and not ended_in_bottom)
        return self.worst_case_cost()

    def run(self, histogram: Histogram, total: int, noise: NoiseSource) -> ShiftedCounts:
        """Return the release.

        Args:
            histogram: The counts of all d elements, absent ones as 0, in an order of the elements that does not
                depend on the counts.
            total: n, the number of distinct members that count in at least one of them.
            noise: Where all randomness comes from.

        Raises:
            ValueError: The histogram has another number of elements, or the total is no integer from 0 to 2^53.
        """
        if len(histogram) != self.domain_size:
            raise ValueError(f"histogram must have {self.domain_size} elements, got {len(histogram)}")
        if not isinstance(total, int) or not 0 <= total <= MAX_COUNT:
            raise ValueError("total must be an integer from 0 to 2^53")
        a, b = self.factors
        rows = Rows.shuffled(histogram, self.domain_size, noise)
        drawn = noise.discrete_gaussian(self.count_variance, self.domain_size, "counts")
        moved = np.empty(self.domain_size, dtype=np.int64)
        moved[rows.elements] = b * rows.counts - a * total + drawn
        noisy_total = total + int(noise.discrete_gaussian(self.total_variance, 1, "total")[0])
        return ShiftedCounts(self, moved, noisy_total)


@dataclass(frozen=True, eq=False)
class ShiftedCounts:
    """What the shift released: A_i by element, int64 of shape (d,), and the noisy total M.

    Everything here is computed from these, and costs nothing. Estimates are multiples of 1 / b and shown as such.
    """

    shift: Shift
    moved: NDArray[np.int64]
    total: int

    @classmethod
    def from_selection(cls, shift: Shift, selection: Selection, total: int) -> ShiftedCounts:
        """Return what was released from the form in which it is sent: the inverse of `selection`.

        Raises:
            ValueError: It has other elements than the domain, or no such total can be released.
        """
        counts = selection.noisy_counts
        if counts is None or sorted(selection.indices.tolist()) != list(range(shift.domain_size)):
            raise ValueError(
                f"selection must have the {shift.domain_size} elements of the domain, with counts"
            )
        if abs(total) > 2 * MAX_COUNT:
            raise ValueError("total must be one that the mechanism can release")
        moved = np.empty(shift.domain_size, dtype=np.int64)
        moved[selection.indices] = counts - shift.factors[0] * total
        return cls(shift, moved, total)

    def selection(self) -> Selection:
        """Return all elements, ranked, with the numerators A_i + a M of their estimates."""
        ranking = np.array(self.ranking(), dtype=np.int64)
        a, _ = self.shift.factors
        return Selection(ranking, self.moved[ranking] + a * self.total, ended_in_bottom=False)

    def ranking(self) -> list[int]:
        """Return the elements by descending estimate, ties by element."""
        return sorted(range(self.moved.size), key=lambda element: (-int(self.moved[element]), element))

    def total_interval(self, *, alpha: Fraction) -> CountInterval:
        """Return the interval of n, which nothing selected."""
        half_width = gaussian_half_width(self.shift.total_variance, alpha)
        lower = max(self.total - half_width, 0)
        return CountInterval(lower, max(self.total + half_width, lower))

    def intervals(self, shown: int, *, alpha: Fraction) -> list[CountInterval]:
        """Return the intervals of the first `shown` elements of the ranking, true given that they are shown.

        Where all are shown, from the exact law of N_i + a N, unless that has too many values. Where some are cut off,
        an element is shown because of its A_i, not of M: b x_i - a n lies in the interval of A_i given that it was not
        cut off and n in that of M, each at alpha / 2, and so x_i lies in their sum.

        Raises:
            ValueError: alpha is out of range.
        """
        ranking = self.ranking()
        a, b = self.shift.factors
        if shown < len(ranking):
            return self._selected_intervals(ranking[:shown], ranking[shown], alpha)
        values = [int(self.moved[element]) + a * self.total for element in ranking]
        if not self.shift.has_exact_law:
            half_width = self._half_width(alpha)
            return [_count_interval(value - half_width, value + half_width, b) for value in values]
        law = WeightedNoise((1, a), (self.shift.count_variance, self.shift.total_variance))
        return [sum_interval(law, value, b, alpha=alpha, minimum=0) for value in values]

    def _half_width(self, alpha: Fraction) -> int:
        """Return w with Pr[|N_i + a N| > w] <= alpha: each of both exceeds its part with at most alpha / 2."""
        a, _ = self.shift.factors
        of_count = gaussian_half_width(self.shift.count_variance, alpha / 2)
        return of_count + a * gaussian_half_width(self.shift.total_variance, alpha / 2)

    def _selected_intervals(self, kept: list[int], cut_off: int, alpha: Fraction) -> list[CountInterval]:
        a, b = self.shift.factors
        total = self.total_interval(alpha=alpha / 2)
        thresholds = [int(self.moved[cut_off]) + (element > cut_off) for element in kept]
        found = selected_gaussian_interval(
            self.moved[kept],
            np.array(thresholds, dtype=np.int64),
            self.shift.count_variance,
            alpha=alpha / 2,
            # x_i is not negative, so where the interval of n holds, b x_i - a n is not below this.
            minimum=-a * total.upper,
        )
        ends = zip(found.lower.tolist(), found.upper.tolist(), strict=True)
        return [_count_interval(low + a * total.lower, high + a * total.upper, b) for low, high in ends]


def _count_interval(lower: int, upper: int, denominator: int) -> CountInterval:
    """Return the whole counts h >= 0 with lower <= denominator h <= upper."""
    least = max(-(-lower // denominator), 0)
    return CountInterval(least, max(upper // denominator, least))
