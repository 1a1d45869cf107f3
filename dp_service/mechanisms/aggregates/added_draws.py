"""How far a weighted sum of independent discrete Gaussian draws may lie from 0: the noise of a linear combination.

Let V be the sum of w_i^2 v_i over all draws, of which j has the largest part. The sum has the density of a normal law
at each of its values but for a factor of 1 +- e: by Poisson's formula, adding up over the other draws changes it by
less than e = sum over whole vectors k of exp(-2 pi^2 k' D k), where D is the covariance of those given the sum, and no
eigenvalue of that is below the smallest v_i times w_j^2 v_j / V (Micciancio and Regev 2007, lemma 3.3 is this for one).
From 1 on e is below 10^-7, and Pr[S >= x] is that of the normal law from x - |w_j| / 2 on. Else noise is so small that
its steps matter, and Pr[S >= x] <= exp(-x^2 / 2V), for discrete Gaussian noise is sub-Gaussian (arXiv:2004.00010,
corollary 17).

m equal draws of parameter v >= 4 add up to a number that has the mass of one of parameter m v at each value but for a
factor of 1 +- m 10^-16: each that is added has a harmonic mean of at least v / 2 with those before, and then so says
Poisson's formula. Below 4 their sum is taken as sub-Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dp_service.mechanisms.aggregates.intervals import SLACK
from dp_service.mechanisms.aggregates.noise_pairs import first_rare

_MERGED_FROM = 4


@dataclass(frozen=True)
class Draws:
    """Equal independent draws.

    Attributes:
        weight: The weight of each.
        variance: The variance parameter of each.
        number: How many there are.
    """

    weight: Fraction
    variance: Fraction
    number: int = 1


def half_width(draws: Sequence[Draws], alpha: Fraction) -> Fraction:
    """Return an h, a multiple of the grid on which the sum lies, with Pr[|S| > h] <= alpha.

    Raises:
        ValueError: alpha is not strictly between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha}")
    some = [each for each in draws if each.weight and each.number]
    if not some:
        return Fraction(0)
    scale = math.lcm(*(each.weight.denominator for each in some))
    step = Fraction(math.gcd(*(int(each.weight * scale) for each in some)), scale)
    law = _Law.of([Draws(each.weight / step, each.variance, each.number) for each in some])
    level = float(alpha) / 2 * (1 - SLACK)
    return (first_rare(law.tail, level, near=0, step=math.ceil(law.deviation)) - 1) * step


@dataclass(frozen=True)
class _Law:
    """The law of a sum: its standard deviation, and the step of its largest draw; None: only a bound is known."""

    deviation: float
    step: float | None

    @classmethod
    def of(cls, draws: Sequence[Draws]) -> _Law:
        parts = [float(each.weight**2 * each.variance * each.number) for each in draws]
        total, largest = sum(parts), max(parts)
        least = min(float(each.variance * each.number) for each in draws)
        merges = all(each.number == 1 or each.variance >= _MERGED_FROM for each in draws)
        step = abs(float(draws[parts.index(largest)].weight))
        return cls(math.sqrt(total), step if merges and least * largest / total >= 1 else None)

    def tail(self, n: int) -> float:
        """Return at least Pr[S >= n]."""
        if self.step is None:
            return math.exp(-((max(n, 0) / self.deviation) ** 2) / 2)
        return math.erfc((n - self.step / 2) / (math.sqrt(2) * self.deviation)) / 2
