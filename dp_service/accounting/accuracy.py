"""What a question can be expected to find, before it is asked and without looking at data.

Everything is a function of parameters and of hypothetical counts. Nothing here bounds privacy loss; floats are right to
at least nine digits.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dp_service.accounting.checks import MAX_EPSILON_PER, require_epsilon, require_probability, require_units
from dp_service.noise.distribution import laplace_difference_tail

# Below this exponent the exponential underflows.
_SMALLEST_EXPONENT = -700
# No count is so large.
_FARTHEST = 2**53


@dataclass(frozen=True)
class GumbelThreshold:
    """The noisy threshold of UnkGumb at a threshold index, `index` (k_bar), from k to d_bar.

    An element that is h above the count at rank index + 1, and alone with bottom, is met before it with probability
    1 / (1 + exp(-(h - height) epsilon_per / tau)), the logistic law of the difference of two Gumbel draws.
    """

    epsilon_per: Fraction
    delta: Fraction
    tau: int
    index: int

    def __post_init__(self) -> None:
        require_epsilon("epsilon_per", self.epsilon_per, at_most=MAX_EPSILON_PER)
        require_probability("delta", self.delta)
        require_units("tau", self.tau, at_least=1)
        require_units("index", self.index, at_least=1)

    @property
    def height(self) -> float:
        """How far bottom lies above the count at rank index + 1: tau (1 + ln(index / delta) / epsilon_per)."""
        return self.tau * (1 + _log(self.index / Fraction(self.delta)) / float(self.epsilon_per))

    def chance(self, above: int) -> float:
        """Return the probability that an element beats bottom whose count is `above` that at rank index + 1."""
        if above <= 0:
            # Candidates are strictly above.
            return 0.0
        return _logistic((above - self.height) * float(self.epsilon_per) / self.tau)

    def needed(self, probability: Fraction) -> int:
        """Return how far a count must lie above that at rank index + 1 to beat bottom with this probability."""
        return _smallest_above(self.chance, probability)


@dataclass(frozen=True)
class Found:
    """How many of k elements a top-k finds on average, and with which probability it finds all of them."""

    elements: float
    all_of_them: float


def found_of_equals(threshold: GumbelThreshold, k: int, above: int) -> Found:
    """Return what UnkGumb finds of k elements that all lie `above` the count at rank index + 1, and nothing else does.

    In a race of exponential times, with rate 1 for bottom and w = exp((above - height) epsilon_per / tau) for each
    element, an element comes before bottom with probability w / (1 + w). All k do with the product of i w / (i w + 1)
    over i from 1 to k: each time the next of the i that are left comes before bottom.

    Args:
        threshold: The threshold.
        k: How many elements are asked for; from 1 on.
        above: How far they lie above; 0 or less finds none.
    """
    chance = threshold.chance(above)
    if not 0 < chance < 1:
        return Found(k * chance, chance)
    odds = chance / (1 - chance)
    log_all = sum(-math.log1p(1 / (i * odds)) for i in range(1, k + 1))
    return Found(k * chance, math.exp(log_all))


def mean_laplace_error(scale: float) -> float:
    """Return E|Z| of discrete Laplace noise, Pr[Z = z] proportional to exp(-|z| / scale): 1 / sinh(1 / scale)."""
    return 1 / math.sinh(1 / scale)


def mean_gaussian_error(sigma: float) -> float:
    """Return E|Z| of normal noise, which discrete Gaussian noise of a sigma above 1 has to four digits."""
    return sigma * math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class LaplaceThreshold:
    """The noisy threshold of UnkLap: `shift` (C) above the count at rank d_bar + 1, and noise in both.

    `inverse_scale` is epsilon_per / (2 tau Delta).
    """

    inverse_scale: Fraction
    shift: int

    def chance(self, above: int) -> float:
        """Return Pr[Z1 - Z2 > shift - above]: a count so far above that at rank d_bar + 1 beats the threshold."""
        return float(laplace_difference_tail(self.inverse_scale, self.shift - above + 1).mid)

    def needed(self, probability: Fraction) -> int:
        """Return how far a count must lie above that at rank d_bar + 1 to be shown with this probability."""
        return _laplace_needed(self, probability)


# Tails of differences are added up exactly, which takes milliseconds; answers by one policy have few thresholds.
@lru_cache(maxsize=1024)
def _laplace_needed(threshold: LaplaceThreshold, probability: Fraction) -> int:
    return _smallest_above(threshold.chance, probability)


def _smallest_above(chance: Callable[[int], float], probability: Fraction) -> int:
    """Return the smallest number from 0 on whose chance, which grows, is at least `probability`."""
    require_probability("probability", probability)
    high = 1
    while high < _FARTHEST and chance(high) < probability:
        high *= 2
    return bisect.bisect_left(range(high), True, key=lambda above: chance(above) >= probability)


def _log(number: Fraction) -> float:
    """Return the logarithm of a number that may be too large for a float."""
    return math.log(number.numerator) - math.log(number.denominator)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > _SMALLEST_EXPONENT else 0.0
