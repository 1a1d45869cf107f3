"""The exact law of a sum of discrete Gaussian draws with whole weights, and intervals from it.

Estimates such as (3 v_1 + 5 v_2) / 8 have the noise (3 N_1 + 5 N_2) / 8. Its numerator is an integer, and its law is a
convolution of scaled discrete Gaussian laws: no normal law, and of no discrete Gaussian form either. It is added up in
float64 from positive terms alone, so tails are right relative to their size, up to 11 of its standard deviations.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_REACH_IN_SIGMAS = 12
_MOST_CELLS = 2**22
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
