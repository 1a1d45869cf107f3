"""The exact law of a sum of discrete Gaussian draws with whole weights, and intervals from it.

Estimates such as (3 v_1 + 5 v_2) / 8 have the noise (3 N_1 + 5 N_2) / 8. Its numerator is an integer, and its law is a
convolution of scaled discrete Gaussian laws: no normal law, and of no discrete Gaussian form either. It is added up in
float64 from positive terms alone, so tails are right relative to their size, up to 11 of its standard deviations.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_REACH_IN_SIGMAS = 12
_TRUSTED_IN_SIGMAS = 11
_MOST_CELLS = 2**22
_MOST_STEPS = 2**26
_SLACK = 1e-7


class CountInterval(NamedTuple):
    """Bounds of a count, both inclusive."""

    lower: int
    upper: int


@dataclass(frozen=True)
class WeightedNoise:
    """The law of a_1 N_1 + ... + a_n N_n, N_j independent discrete Gaussian draws of parameters `variances`.

    Raises:
        ValueError: The weights are not as many positive integers as there are variances, a variance is not positive,
            or the sum has more than 2^22 values within 12 standard deviations.
    """

    weights: tuple[int, ...]
    variances: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.variances) or not self.weights:
            raise ValueError("weights and variances must be as many, and at least one")
        if min(self.weights) < 1 or min(self.variances) <= 0:
            raise ValueError("weights and variances must be positive")
        if 2 * self._radius + 1 > _MOST_CELLS:
            raise ValueError(f"weights must give a sum of at most {_MOST_CELLS} values within 12 sigma")

    def tail(self, n: int) -> float:
        """Return Pr[S >= n]; 0 beyond the values that are added up."""
        position = n + self._radius
        if position >= self._tails.size:
            return 0.0
        return float(self._tails[max(position, 0)])

    def half_width(self, alpha: Fraction) -> int:
        """Return the smallest integer w >= 0 with Pr[|S| > w] <= alpha, in doubt a larger one.

        Raises:
            ValueError: Unless alpha lies between 10^-20 and 1.
        """
        level = _checked(alpha) / 2 * (1 - _SLACK)
        return bisect.bisect_left(range(self._radius + 1), True, key=lambda w: self.tail(w + 1) <= level)

    @property
    def is_added_up_soon(self) -> bool:
        """Whether adding up the law takes at most 2^26 steps, a fraction of a second."""
        cells, steps = 1, 0
        for weight, variance in sorted(zip(self.weights, self.variances, strict=True)):
            values = 2 * _reach(variance) + 1
            steps += cells * values
            cells += weight * (values - 1)
        return steps <= _MOST_STEPS

    @property
    def trusted(self) -> int:
        """Up to here tails are right relative to their size."""
        return int(_TRUSTED_IN_SIGMAS * self._sigma)

    @property
    def _sigma(self) -> float:
        pairs = zip(self.weights, self.variances, strict=True)
        return math.sqrt(sum(weight**2 * float(variance) for weight, variance in pairs))

    @cached_property
    def _radius(self) -> int:
        return sum(
            weight * _reach(variance) for weight, variance in zip(self.weights, self.variances, strict=True)
        )

    @cached_property
    def _tails(self) -> Floats:
        return _tails(self.weights, self.variances)


def sum_interval(
    noise: WeightedNoise, value: int, denominator: int, *, alpha: Fraction, minimum: int
) -> CountInterval:
    """Return all counts h >= minimum with |value - denominator h| <= w, where Pr[|S| > w] <= alpha.

    The released estimate is value / denominator, and value - denominator h its noise S. Covers h with probability at
    least 1 - alpha if nothing of S decided whether it is shown.

    Raises:
        ValueError: alpha is out of range.
    """
    half_width = noise.half_width(alpha)
    lower = max(-((half_width - value) // denominator), minimum)
    return CountInterval(lower, max((value + half_width) // denominator, minimum, lower))


def selected_sum_interval(
    noise: WeightedNoise, value: int, threshold: int, denominator: int, *, alpha: Fraction, minimum: int
) -> CountInterval:
    """Return the interval of a count that is shown because value = denominator h + S reached `threshold`.

    As `selected_intervals` does for one draw. Where the lower end would be more than about 11 sigma below the
    threshold, it is `minimum`.

    Raises:
        ValueError: alpha is out of range, or `value` is below the threshold.
    """
    if value < threshold:
        raise ValueError("value must not be below its threshold")
    tail = _checked(alpha) / 2 * (1 - _SLACK)
    half_width = noise.half_width(alpha)

    def ratio(h: int, n: int) -> float | None:
        if threshold - denominator * h > noise.trusted:
            return None
        return noise.tail(n - denominator * h) / noise.tail(threshold - denominator * h)

    def is_reached_often(h: int) -> bool:
        found = ratio(h, value)
        return found is not None and found > tail

    def is_rarely_exceeded(h: int) -> bool:
        found = ratio(h, value + 1)
        return found is not None and found >= 1 - tail

    candidates = range(minimum, max((value + half_width) // denominator, minimum) + 1)
    lower = minimum + bisect.bisect_left(candidates, True, key=is_reached_often)
    upper = minimum + bisect.bisect_left(candidates, True, key=is_rarely_exceeded) - 1
    # Below, nothing is known of the ratio: if the first count of which it is known fits, so may all of them.
    first_known = max(-((noise.trusted - threshold) // denominator), minimum)
    if lower <= first_known:
        lower = minimum
    return CountInterval(lower, max(upper, lower))


def _checked(alpha: Fraction) -> float:
    if not Fraction(1, 10**20) <= alpha < 1:
        raise ValueError(f"alpha must be from 10^-20 to below 1, got {alpha}")
    return float(alpha)


def _reach(variance: Fraction) -> int:
    return math.ceil(_REACH_IN_SIGMAS * math.sqrt(variance)) + 1


@lru_cache(maxsize=8)
def _tails(weights: tuple[int, ...], variances: tuple[Fraction, ...]) -> Floats:
    """Return Pr[S >= n] for n from -radius to radius, where radius is the sum of all reaches."""
    masses = np.ones(1)
    # The largest weight last: each value of a draw is one pass over what was added up before.
    for weight, variance in sorted(zip(weights, variances, strict=True)):
        masses = _with_draw(masses, weight, variance)
    return np.cumsum(masses[::-1])[::-1]


def _with_draw(masses: Floats, weight: int, variance: Fraction) -> Floats:
    values = np.arange(-_reach(variance), _reach(variance) + 1)
    law = np.exp(-(values.astype(np.float64) ** 2) / (2 * float(variance)))
    law /= law.sum()
    total = np.zeros(masses.size + weight * (values.size - 1))
    for place, mass in enumerate(law):
        total[weight * place : weight * place + masses.size] += mass * masses
    return total


def common_weights(sizes: Sequence[Fraction]) -> tuple[int, ...]:
    """Return the smallest positive integers in the proportions of positive rationals."""
    scale = math.lcm(*(size.denominator for size in sizes))
    whole = [int(size * scale) for size in sizes]
    return tuple(size // math.gcd(*whole) for size in whole)
