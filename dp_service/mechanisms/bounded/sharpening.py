"""Sharpening: the counts of several looks at the same names, combined by what they cost.

Each further look is a known-domain `BoundGauss` with units of its own: the same data version, names, salt, bound and
tau, and noise of its own. So prices add up, and no call is paid, as nothing is thresholded. The combination weighs each
look by its units, nearly the inverse of the variance of its noise: it has nearly the variance that one look with all
the units would have. It is post-processing. Only second looks are combined: the counts of the first look
decided which names there are.

Its noise is no discrete Gaussian. `sum_intervals` has its exact law, which holds for a plan made in advance. An
analyst who sharpens because of what was shown chooses which intervals are shown last: then intervals are true at
alpha / j for at most j looks, or the last look's own are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.bounded.bound_gauss import BoundGauss
from dp_service.mechanisms.bounded.sum_intervals import (
    CountInterval,
    WeightedNoise,
    common_weights,
    selected_sum_interval,
    sum_interval,
)


@dataclass(frozen=True)
class CombinedLaw:
    """How counts of several looks are combined: their weights, and the variance parameters of their noise."""

    weights: tuple[int, ...]
    variances: tuple[Fraction, ...]

    @classmethod
    def of(cls, looks: Sequence[BoundGauss]) -> CombinedLaw:
        """Return the law in which each look weighs as many parts as it has units."""
        return cls(common_weights([look.units for look in looks]), tuple(look.variance for look in looks))

    @property
    def denominator(self) -> int:
        """What divides the weighted sum of counts."""
        return sum(self.weights)

    @property
    def variance(self) -> Fraction:
        """The variance parameter of the combined noise."""
        weighted = zip(self.weights, self.variances, strict=True)
        return sum((weight**2 * variance for weight, variance in weighted), Fraction(0)) / self.denominator**2

    def noise(self) -> WeightedNoise:
        """Return the combined noise; ValueError if it has too many values."""
        return WeightedNoise(self.weights, self.variances)


@dataclass(frozen=True)
class Sharpened:
    """Estimates `values[i] / denominator` of the counts of names, by name, and the law of the noise in the values."""

    values: tuple[int, ...]
    denominator: int
    noise: WeightedNoise

    def ranking(self) -> list[int]:
        """Return the names by descending estimate, ties by name."""
        return sorted(range(len(self.values)), key=lambda name: (-self.values[name], name))

    def intervals(self, shown: int, *, alpha: Fraction) -> list[CountInterval]:
        """Return the intervals of the first `shown` names of the ranking, true given that they are shown.

        Raises:
            ValueError: alpha is out of range.
        """
        ranking = self.ranking()
        if shown >= len(ranking):
            return [
                sum_interval(self.noise, self.values[name], self.denominator, alpha=alpha, minimum=0)
                for name in ranking
            ]
        cut_off = ranking[shown]
        return [
            selected_sum_interval(
                self.noise,
                self.values[name],
                # Of equal estimates the earlier name is shown.
                self.values[cut_off] + (name > cut_off),
                self.denominator,
                alpha=alpha,
                minimum=0,
            )
            for name in ranking[:shown]
        ]


def sharpened(looks: Sequence[BoundGauss], noisy_counts: Sequence[NDArray[np.int64]]) -> Sharpened:
    """Combine the counts of looks at the same names.

    Args:
        looks: What each look was; all have the same currency and bound, and a known domain.
        noisy_counts: The counts of each look, in the order of the names.

    Raises:
        ValueError: There is no look, they do not go together, or not as many counts as looks or names.
    """
    if not looks or len(looks) != len(noisy_counts):
        raise ValueError("looks and noisy_counts must be as many, and at least one")
    if len({(look.currency, look.bound) for look in looks}) > 1:
        raise ValueError("looks must have the same currency and bound: others are another release")
    if any(look.min_count is not None for look in looks):
        raise ValueError("looks must be over a known domain: what a threshold selected is not combined")
    if len({counts.shape for counts in noisy_counts}) > 1:
        raise ValueError("noisy_counts must have one count for each name")
    law = CombinedLaw.of(looks)
    # Python's integers: a count of 2^53 times a weight may not fit an array's.
    counts = zip(*(each.tolist() for each in noisy_counts), strict=True)
    values = tuple(
        sum(weight * count for weight, count in zip(law.weights, of_name, strict=True)) for of_name in counts
    )
    return Sharpened(values, law.denominator, law.noise())
