"""Intervals of a sum of draws as a part of a longer one, with the noise that both have.

Twice what is divided is A, and X is twice what it is divided by, which has the draws of A and others. So A - r X has
the draws of A with weights 1 - r, and the others with -r. r is tested as in `compared`, also given that X >= x0, where
nothing selects either.

THE LAW of the draws. m independent discrete Gaussian draws of parameter v >= 4 add up to a number that
has the mass of one of parameter m v at each value but for a factor of 1 +- m 10^-16: each that is added has
a harmonic mean of at least v / 2 with those before, and then so says Poisson's formula (Micciancio and Regev 2007,
lemma 3.3; arXiv:2004.00010 has draws of integer parameters). Below 4 their sum is taken as sub-Gaussian, as a draw that
is so small is in `compared`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dp_service.mechanisms.aggregates.compared import Noise, RatioTest, upper_tails
from dp_service.mechanisms.aggregates.intervals import SLACK, Confined
from dp_service.mechanisms.aggregates.noise_pairs import first_rare

_EXACT = 4
_CONFINING = Fraction(1, 100)
_SMALL = 0.25


@dataclass(frozen=True)
class Draws:
    """Equal draws: their weights in twice what is divided and in X, and how many of them there are."""

    above: int
    below: int
    variance: float
    number: int


def least_divisor(draws: tuple[Draws, ...], alpha: Fraction) -> int:
    """Return x0, the smallest X that is divided by: then its interval is above 0."""
    return _least(_below(draws), float(alpha / 2 * (1 - _CONFINING)) / 2 * (1 - SLACK))


def part_interval(
    divided: int, divisor: int, draws: tuple[Draws, ...], *, alpha: Fraction
) -> tuple[Fraction, Fraction]:
    """Return the interval of a quotient, in steps, given that it is shown.

    Args:
        divided: Twice what is divided.
        divisor: X, twice what it is divided by: at least x0.
        draws: Their noise.
        alpha: With which chance the interval may miss.
    """
    within = Confined(None, None, float(alpha) / 2 * (1 - SLACK))
    return _PartTest(float(divided), divisor, within, least_divisor(draws, alpha), alpha, draws).interval()


@dataclass(frozen=True, eq=False)
class _PartTest(RatioTest):
    """Of a number and one that it is a part of, neither of which is selected."""

    draws: tuple[Draws, ...]

    @property
    def variance(self) -> float:
        return 0.0

    @property
    def divisor_of_count(self) -> int:
        return 0

    @property
    def divisor_variance(self) -> float:
        return sum(each.below**2 * each.variance * each.number for each in self.draws)

    def noise(self, r: float) -> Noise:
        return tuple(_added((each.above - r * each.below, each.variance, each.number) for each in self.draws))

    def of_count(self, r: float) -> float:
        return 0.0

    def divisor_noise(self, y: int, at_least: int | None, *, sign: int = 1) -> float:
        # The law is symmetric.
        return tail(_below(self.draws), y)


def _below(draws: tuple[Draws, ...]) -> tuple[tuple[int, float, int], ...]:
    """Return the noise of what is divided by: equal draws as one."""
    found: dict[tuple[int, float], int] = {}
    for each in draws:
        found[each.below, each.variance] = found.get((each.below, each.variance), 0) + each.number
    return tuple((weight, variance, number) for (weight, variance), number in found.items() if weight)


def _added(draws: Iterable[tuple[float, float, int]]) -> Iterator[tuple[float, float]]:
    """Yield weights and variances that as many draws of each weight and variance come to."""
    for weight, variance, number in draws:
        if not weight or not number:
            continue
        if number == 1 or variance >= _EXACT:
            yield weight, variance * number
        else:
            # In steps so large beside its variance that only the bound is taken.
            yield weight * math.sqrt(variance * number / _SMALL), _SMALL


def tail(draws: tuple[tuple[int, float, int], ...], y: int) -> float:
    """Return at least Pr[W >= y]."""
    return float(upper_tails(tuple(_added(draws)), np.asarray(float(y))))


@lru_cache(maxsize=256)
def _least(draws: tuple[tuple[int, float, int], ...], level: float) -> int:
    """Return the smallest y with Pr[W >= y] <= level."""
    variance = sum(weight**2 * each * number for weight, each, number in draws)
    return first_rare(lambda y: tail(draws, y), level, near=0, step=math.ceil(math.sqrt(variance)))
