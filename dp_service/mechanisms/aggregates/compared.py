"""Intervals of differences and quotients of numbers of one release, each true given that it is shown.

Twice a number is B + c N in its steps, c = low + high; twice n itself is 2 N. So all numbers of a row share N and its
noise Z_n, and have noise of their own beside it: twice a sum of w_i times numbers is sum of w_i B_i + C N, its noise is
S + C Z_n with C = sum of w_i c_i, and S = sum of w_i Z_i does not depend on Z_n. Where C is 0, as between two numbers
of members, nothing of what is shown depends on its noise. Else Z_n is taken given Z_n >= a, as for SUM (`intervals`).

THE LAW OF S. Let V be the sum of w_i^2 v_i, of which j has the largest part. S has the density of a normal law at each
of its values but for a factor of 1 +- e: by Poisson's formula, adding up over the other Z_i changes it by less than
e = sum over whole vectors k of exp(-2 pi^2 k' D k), where D is the covariance of those given S, and no eigenvalue of
that is below the smallest v_i times w_j^2 v_j / V (Micciancio and Regev 2007, lemma 3.3 is this for one). From 1 on e
is below 10^-7, and Pr[S >= x] is that of the normal law from x - w_j / 2 on. Else noise is so small that its steps
matter, and Pr[S >= x] <= exp(-x^2 / 2V), for discrete Gaussian noise is sub-Gaussian (arXiv:2004.00010, corollary 17).

QUOTIENTS. a = r b means that A - r X = S + k Z_n, for A and X twice the released numbers, S of Z_a - r Z_b, and
k = c_a - r c_b. It is shown where X >= x0, which follows from public numbers: then b's interval is above 0. With
W = Z_b + c_b Z_n, the noise of X, every r is tested as in Fieller 1954, as too large by Pr[S + k Z_n <= A - r X], plus
Pr[W >= X], the chance that what is divided by is not above 0: both together are no less than the chance that A' >= r X'
or X' <= 0 for A' and X' without noise, which falls with r, so whatever lies beyond a rejected r is rejected too.
That is given Z_n >= a, and not that X >= x0. The chance of that is at least p for every b from its lower end at alpha /
100 on, given X >= x0 (Pr[W >= y + d] / Pr[W >= y] falls with y, and rises with a, for both laws are log-concave). So
tests at p times alpha hold given that the quotient is shown. Far above x0, p is 1; just above it intervals are wide:
no quotient whose divisor may be next to 0 has a short one. As b is at least a step, |r| has an end in any case.

A difference covers with probability 1 - alpha by itself, and so does a quotient.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.aggregates.intervals import (
    SLACK,
    AverageInterval,
    Confined,
    ShownRows,
    SumInterval,
    confined,
)
from dp_service.mechanisms.aggregates.noise_pairs import (
    Bins,
    bins_of,
    first_rare,
    least_rarely_reached,
    normal_tails,
    pair_upper_tail,
)
from dp_service.mechanisms.aggregates.released import ReleasedColumn, ReleasedMoments

Floats = NDArray[np.float64]
Noise: TypeAlias = tuple[tuple[float, float], ...]
"""Weights and variances of independent draws."""

_CONFINING = Fraction(1, 100)
# Quotients are tested at multiples of about a 64th of their standard deviation, rounded outwards.
_STEPS = 64
_CERTAIN_SIGMAS = 12
_NEVER = Bins(np.zeros(1), np.zeros(1), np.ones(1))


@dataclass(frozen=True)
class Weighted:
    """A number of each row: a weight times a column, or times the count of the elements.

    Attributes:
        column: The place of the column; None: it is the count.
        weight: What one of its steps is worth.
    """

    column: int | None
    weight: Fraction


@dataclass(frozen=True, eq=False)
class _Twice:
    """Twice a number of one row: what was released of it, its weight on N, and the noise that it has beside N's."""

    released: Fraction
    of_count: Fraction
    noise: tuple[tuple[Fraction, Fraction], ...]


def _twice(release: ReleasedMoments, number: Weighted, row: int) -> _Twice:
    if number.column is None:
        return _Twice(2 * number.weight * int(release.counts[row]), 2 * number.weight, ())
    column, weight = release.columns[number.column], number.weight
    released, centre = weight * column.doubled_sum(row), weight * column.clamp.centre
    own = (weight, column.sum_variance)
    if column.has_own_count:
        return _Twice(released, Fraction(0), (own, (centre, column.count_variance)) if centre else (own,))
    return _Twice(released, centre, (own,))


def upper_tails(noise: Noise, x: Floats) -> Floats:
    """Return at least Pr[S >= x], S the sum of draws with their weights."""
    parts = [weight**2 * variance for weight, variance in noise]
    total, largest = sum(parts), max(parts, default=0.0)
    if not total:
        return np.asarray(x <= 0, dtype=np.float64)
    if min(variance for _, variance in noise) * largest / total >= 1:
        step = abs(noise[parts.index(largest)][0])
        return normal_tails((x - step / 2) / math.sqrt(total))
    return np.exp(-(np.maximum(x, 0) ** 2) / (2 * total))


def total_intervals(
    release: ReleasedMoments, numbers: Sequence[Weighted], shown: ShownRows, *, alpha: Fraction
) -> list[SumInterval]:
    """Return the interval of a sum of numbers, of whole weights, for every row that is shown.

    Raises:
        ValueError: alpha is out of range.
    """
    level = alpha / shown.simultaneous
    rows = zip(shown.rows, shown.thresholds, strict=True)
    return [_total_interval(release, numbers, row, t, level) for row, t in rows]


def doubled_total(release: ReleasedMoments, numbers: Sequence[Weighted], row: int) -> Fraction:
    """Return twice the sum of numbers of one row."""
    return sum((_twice(release, each, row).released for each in numbers), Fraction(0))


def _total_interval(
    release: ReleasedMoments, numbers: Sequence[Weighted], row: int, to_reach: int | None, alpha: Fraction
) -> SumInterval:
    parts = [_twice(release, each, row) for each in numbers]
    doubled = int(sum(part.released for part in parts))
    of_count = float(sum(part.of_count for part in parts))
    noise = tuple((float(weight), float(variance)) for part in parts for weight, variance in part.noise)
    # Without a part in what was selected, the noise is what it is.
    within = confined(
        release.count_variance,
        int(release.counts[row]),
        to_reach if of_count else None,
        alpha,
        release.minimum,
    )
    ends = (within.least, within.largest) if of_count > 0 else (within.largest, within.least)
    variance = float(release.count_variance)
    most = _least_reached(noise, variance, of_count, ends[1], within.level) - 1
    # The law of S is symmetric.
    least = 1 - _least_reached(noise, variance, -of_count, ends[0], within.level)
    return SumInterval(-((most - doubled) // 2), (doubled - least) // 2)


def _law(variance: float, of_count: float, at_least: int | None) -> Bins:
    return bins_of(variance, at_least) if of_count else _NEVER


def _chance(noise: Noise, law: Bins, of_count: float, x: float) -> float:
    """Return at least Pr[S + k Z_n >= x]."""
    worse = law.high if of_count > 0 else law.low
    return float(law.mass @ upper_tails(noise, x - of_count * worse))


@lru_cache(maxsize=1024)
def _least_reached(noise: Noise, variance: float, of_count: float, at_least: int | None, level: float) -> int:
    """Return the smallest n with Pr[S + k Z_n >= n] <= level, given Z_n >= at_least."""
    law = _law(variance, of_count, at_least)
    near = 0 if at_least is None else round(of_count * max(at_least, 0))
    total = sum(weight**2 * each for weight, each in noise) + of_count**2 * variance
    return first_rare(
        lambda n: _chance(noise, law, of_count, n), level, near=near, step=math.ceil(math.sqrt(total))
    )


def least_divisor(release: ReleasedMoments, column: int, to_reach: int | None, *, alpha: Fraction) -> int:
    """Return x0: the smallest number whose half, as a SUM of a column, is divided by.

    Its interval is then above 0, wherever N is.

    Args:
        release: What was released.
        column: The place of the column.
        to_reach: The t that N had to reach; None: it had no part in what is shown.
        alpha: That of the interval.
    """
    below = release.columns[column]
    at_least = None
    if to_reach is not None and not below.has_own_count and below.clamp.centre > 0:
        at_least = to_reach - release.minimum
    level = float(alpha / 2 * (1 - _CONFINING)) / 2 * (1 - SLACK)
    return least_rarely_reached(
        float(below.sum_variance), float(below.count_variance), below.clamp.centre, at_least, level
    )


def quotient(release: ReleasedMoments, above: int | None, below: int, row: int) -> Fraction:
    """Return the quotient of two numbers of a row, in steps; only where the divisor reaches `least_divisor`."""
    divided = _twice(release, Weighted(above, Fraction(1)), row).released
    if _never_negative(release, above):
        divided = max(divided, Fraction(0))
    return divided / release.columns[below].doubled_sum(row)


def quotient_intervals(
    release: ReleasedMoments, above: int | None, below: int, shown: ShownRows, *, alpha: Fraction
) -> list[AverageInterval | None]:
    """Return the interval of a quotient, in steps, for every row that is shown; None where it has no value.

    Args:
        release: What was released.
        above: The place of the column that is divided; None: the count is.
        below: That of the column that it is divided by; neither has a count of its own.
        shown: The rows.
        alpha: With which chance an interval may miss.

    Raises:
        ValueError: alpha is out of range.
    """
    level = alpha / shown.simultaneous
    rows = zip(shown.rows, shown.thresholds, strict=True)
    return [_quotient_interval(release, above, below, row, t, alpha=level) for row, t in rows]


def _quotient_interval(
    release: ReleasedMoments,
    above: int | None,
    below: int,
    row: int,
    to_reach: int | None,
    *,
    alpha: Fraction,
) -> AverageInterval | None:
    column, least = release.columns[below], least_divisor(release, below, to_reach, alpha=alpha)
    if column.doubled_sum(row) < least:
        return None
    within = confined(release.count_variance, int(release.counts[row]), to_reach, alpha, release.minimum)
    divided = _twice(release, Weighted(above, Fraction(1)), row)
    test = _QuotientTest(
        float(divided.released),
        column.doubled_sum(row),
        within,
        least,
        alpha,
        divided,
        column,
        release.count_variance,
    )
    ends, value = test.interval(), quotient(release, above, below, row)
    if _never_negative(release, above):
        ends = (max(ends[0], Fraction(0)), max(ends[1], Fraction(0)))
    # A wider interval covers as often, and people read one that leaves out the value beside it as a mistake.
    return AverageInterval(min(ends[0], value), max(ends[1], value))


def _never_negative(release: ReleasedMoments, above: int | None) -> bool:
    return above is None or release.columns[above].clamp.low >= 0


@dataclass(frozen=True, eq=False)
class RatioTest(ABC):
    """Which r are not rejected as a / b, given twice what was released of both.

    Attributes:
        divided: Twice what is divided.
        divisor: Twice what it is divided by: X.
        within: Which Z_n are possible.
        least: x0.
        alpha: With which chance the interval may miss.
    """

    divided: float
    divisor: int
    within: Confined
    least: int
    alpha: Fraction

    @property
    @abstractmethod
    def variance(self) -> float:
        """That of Z_n."""

    @property
    @abstractmethod
    def divisor_of_count(self) -> int:
        """The weight of Z_n in W, the noise of X."""

    @property
    @abstractmethod
    def divisor_variance(self) -> float:
        """That of W."""

    @abstractmethod
    def noise(self, r: float) -> Noise:
        """Return the draws in A - r X other than Z_n."""

    @abstractmethod
    def of_count(self, r: float) -> float:
        """Return the weight of Z_n in A - r X."""

    @abstractmethod
    def divisor_noise(self, y: int, at_least: int | None, *, sign: int = 1) -> float:
        """Return at least Pr[sign W >= y]."""

    @cached_property
    def _ends(self) -> tuple[int | None, ...]:
        return tuple({self.within.least, self.within.largest})

    @cached_property
    def _not_above_0(self) -> float:
        return max(self.divisor_noise(self.divisor, each) for each in self._ends)

    def _chance_shown(self, confining: float) -> float:
        """Return p: the least chance that the divisor reaches x0, for every divisor that is not excluded."""
        beyond = self.divisor - self.least
        ends = (self.within.least, self.within.largest)
        lightest, heaviest = ends if self.divisor_of_count > 0 else ends[::-1]

        def reached(y: int, at_least: int | None) -> float:
            return max(1 - self.divisor_noise(1 - y, at_least, sign=-1), 1e-300)

        def as_large(y: int) -> float:
            return min(self.divisor_noise(y + beyond, heaviest) / reached(y, heaviest), 1.0)

        # The divisor is at least one step.
        y = self.least - 2
        if as_large(y) <= confining:
            step = math.ceil(math.sqrt(self.divisor_variance))
            # Further up floats lose the quotient of two tails.
            lowest = -beyond - _CERTAIN_SIGMAS * step
            y = first_rare(as_large, confining, near=-beyond, step=step, within=(lowest, y))
        return min(reached(y, lightest), 1.0)

    def interval(self) -> tuple[Fraction, Fraction]:
        """Return the ends of the quotients that are not rejected, rounded outwards."""
        confining = float(self.alpha * _CONFINING)
        level = (self.within.level - confining / 2) * self._chance_shown(confining)
        ratio = self.divided / self.divisor
        deviation = self._deviation(ratio)
        if not deviation:
            # A number as a share of itself: what noise adds to one it adds to the other.
            return Fraction(ratio), Fraction(ratio)
        step = deviation / self.divisor / _STEPS
        grid = Fraction(2) ** math.floor(math.log2(step))
        most = math.ceil(self._most() / grid)
        near = round(ratio / float(grid))

        def rejected(j: int, *, upper: bool) -> float:
            if abs(j) > most:
                return float((j > 0) is not upper)
            return self._chance_beyond(j * float(grid), upper=upper)

        step, within = 2 * _STEPS, (-most - 1, most + 1)
        high = first_rare(lambda j: rejected(j, upper=True), level, near=near, step=step, within=within)
        low = -first_rare(lambda j: rejected(-j, upper=False), level, near=-near, step=step, within=within)
        lower, upper = sorted(grid * min(max(end, -most), most) for end in (low, high))
        return lower, upper

    def _deviation(self, r: float) -> float:
        own = sum(weight**2 * variance for weight, variance in self.noise(r))
        return math.sqrt(own + self.of_count(r) ** 2 * self.variance)

    def _most(self) -> float:
        """Return what no quotient is beyond: the most that can be divided, divided by one step."""
        selected = max(self.within.least or 0, self.within.largest or 0, 0)
        reach = _CERTAIN_SIGMAS * self._deviation(0.0) + abs(self.of_count(0.0)) * selected
        return (abs(self.divided) + reach) / 2

    def _chance_beyond(self, r: float, *, upper: bool) -> float:
        """Return at least the chance of what is as far below a quotient r, or above it if not `upper`."""
        sign = -1 if upper else 1
        k = sign * self.of_count(r)
        x = sign * (self.divided - r * self.divisor)
        laws = (_law(self.variance, k, each) for each in self._ends)
        return max(_chance(self.noise(r), law, k, x) for law in laws) + self._not_above_0


@dataclass(frozen=True, eq=False)
class _QuotientTest(RatioTest):
    """Of two numbers of one row.

    Attributes:
        above: Twice what is divided.
        below: The column that it is divided by.
        count_variance: That of Z_n.
    """

    above: _Twice
    below: ReleasedColumn
    count_variance: Fraction

    @property
    def variance(self) -> float:
        return float(self.count_variance)

    @property
    def divisor_of_count(self) -> int:
        return self.below.clamp.centre

    @property
    def divisor_variance(self) -> float:
        return float(self.below.sum_variance) + self.divisor_of_count**2 * self.variance

    def noise(self, r: float) -> Noise:
        own = ((float(weight), float(variance)) for weight, variance in self.above.noise)
        return (*own, (r, float(self.below.sum_variance))) if r else tuple(own)

    def of_count(self, r: float) -> float:
        return float(self.above.of_count) - r * self.divisor_of_count

    def divisor_noise(self, y: int, at_least: int | None, *, sign: int = 1) -> float:
        laws = float(self.below.sum_variance), self.variance
        return pair_upper_tail(*laws, sign * self.divisor_of_count, at_least, y)
