"""Permute-and-flip: the best known single choice that is private, k times.

Source: McKenna and Sheldon 2020, algorithm 1; Ding et al. 2021, who show that it is the noisy maximum
with exponential noise. Compared on one histogram in Durfee and Rogers 2021, "One-shot DP top-k
mechanisms".

Why it is private. Elements are visited in a random order; each is taken with probability exp((h_i -
h_max) e / tau), the largest count certainly. All counts move in one direction, so h_i - h_max moves by at
most tau, and the probability that i is the one taken changes by a factor of at most exp(e) (their theorem
1; the factor 2 in the exponent is not needed for counts that all move one way). So each round is e-DP,
and k rounds are k e-DP.

It is **not** e-BR: on two elements its log-ratios span e + ln(2 - exp(-e)), up to 2 e. So a budget kept
in bounded-range units has to count it nearly twice, and a small gain in accuracy is paid for dearly in
composition. Nor is it known to be private in one shot: every round draws anew.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import (
    Currency,
    require_drawable,
    require_positive_integer,
    require_within_domain,
)
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import NoiseSource
from dp_service.noise.weights import LogWeights
from research.lab.mechanisms.interface import Guarantee, rounded_up


@dataclass(frozen=True)
class PermuteAndFlip:
    """Release k elements of a known domain, one permute-and-flip after the other.

    Guarantee: k e-DP under unrestricted sensitivity, e = epsilon_per.

    Raises:
        ValueError: A parameter is no positive integer, or the scale cannot be drawn.
    """

    label: ClassVar[str] = "permute and flip"

    currency: Currency
    k: int
    tau: int

    def __post_init__(self) -> None:
        require_positive_integer("k", self.k)
        require_positive_integer("tau", self.tau)
        require_drawable(self.inverse_scale)

    @property
    def inverse_scale(self) -> Fraction:
        """What one step below the largest count takes off the logarithm of the probability to be taken."""
        return self.currency.epsilon_per / self.tau

    def guarantee(self) -> Guarantee:
        """Return k rounds of e-DP."""
        return Guarantee(rounded_up(self.k * self.currency.epsilon_per), 0.0, choices=None)

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return k elements.

        Raises:
            ValueError: If k exceeds the domain.
        """
        require_within_domain(self.k, len(histogram))
        left = histogram.canonical_order
        found = np.zeros(0, dtype=np.int64)
        for number in range(1, self.k + 1):
            choice = self._choose(histogram.counts_by_element[left], noise, number)
            found = np.append(found, left[choice])
            left = np.delete(left, choice)
        return Selection(found, None, ended_in_bottom=False)

    def _choose(self, descending: NDArray[np.int64], noise: NoiseSource, number: int) -> int:
        equal = LogWeights(Fraction(1), np.zeros_like(descending))
        order = noise.gumbel_order(equal, descending.size, f"order {number}")
        coins = geometric(noise.discrete_laplace(self.inverse_scale, descending.size, f"coins {number}"))
        # A geometric number reaches n with probability q^n: heads for element i with probability q^(h_max - h_i).
        heads = coins >= descending[0] - descending
        return int(order[np.argmax(heads[order])])


def geometric(laplace: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return numbers with Pr[G = n] = (1 - q) q^n, one for each discrete Laplace number of ratio q.

    G is Z - 1 for Z >= 1 and -Z for Z <= 0: Pr[Z = n + 1] + Pr[Z = -n] is (1 - q) / (1 + q) (q^(n+1) +
    q^n).
    """
    return np.where(laplace >= 1, laplace - 1, -laplace)
