"""The exact law of what a look releases, element by element, and divergences between such laws.

Given the counts, elements are independent: the law of a release is a product of one law for each element, whose
values are "hidden" and every noisy count that is shown. `test_real_code` shows that this is the law of the code.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.bounded import BoundGauss
from tests.support.zcdp import delta_of_zcdp

Floats = NDArray[np.float64]
Names = tuple[int, ...]

EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0)
"""Up to where rho alone would have no delta worth speaking of, and delta alone counts."""

ORDERS = (1.01, 1.5, 2.0, 4.0, 8.0)
ROUNDING_ERROR = 1e-9
NEGLIGIBLE = 1e-12
"""What is left out of a hockey-stick divergence at most; it is added to what is found, which stays an upper bound."""

LARGEST_SHIFT = 8
"""What counts for a divergence of order a lies about a steps away, so noise is enumerated that much further."""


@cache
def masses(variance: Fraction) -> Floats:
    """Return Pr[N = n] for n from -radius to radius."""
    radius = reach(variance)
    values = np.arange(-radius, radius + 1, dtype=np.float64)
    weights: Floats = np.exp(-(values**2) / (2 * float(variance)))
    return weights / float(weights.sum())


def reach(variance: Fraction) -> int:
    """Return the radius within which noise is enumerated; what lies beyond is below 10^-17."""
    return math.ceil(9 * math.sqrt(variance)) + LARGEST_SHIFT


@dataclass(frozen=True)
class Grid:
    """The noisy counts that are written down: `size` of them, from `lowest` on."""

    lowest: int
    size: int

    @classmethod
    def of(cls, variance: Fraction, least: int, largest: int) -> Grid:
        """Return a grid for counts from `least` to `largest`."""
        radius = reach(variance)
        return cls(least - radius, largest - least + 2 * radius + 1)

    def law(self, variance: Fraction, count: int) -> Floats:
        """Return Pr[count + N = v] for every v of the grid."""
        found = np.zeros(self.size)
        radius = reach(variance)
        start = count - radius - self.lowest
        first, last = max(start, 0), min(start + 2 * radius + 1, self.size)
        found[first:last] = masses(variance)[first - start : last - start]
        return found


def marginal(look: BoundGauss, count: int, grid: Grid) -> Floats:
    """Return the law of one element: at 0 that it is hidden, then every noisy count of the grid."""
    law = grid.law(look.variance, count)
    if look.min_count is None:
        return np.concatenate(([0.0], law))
    assert look.threshold is not None
    if count < look.min_count:
        return np.concatenate(([1.0], np.zeros(grid.size)))
    hidden = max(0, min(look.threshold + 1 - grid.lowest, grid.size))
    return np.concatenate(([law[:hidden].sum()], np.zeros(hidden), law[hidden:]))


def joint(marginals: Sequence[Floats]) -> Floats:
    """Return the law of independent values together, as one long array."""
    return reduce(lambda left, right: np.multiply.outer(left, right).ravel(), marginals, np.ones(1))


def hockey_stick(first: Floats, second: Floats, epsilon: float) -> float:
    """Return the delta that goes with epsilon in one direction."""
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def worst_excess(first: Floats, second: Floats, rho: Fraction, delta: Fraction) -> float:
    """Return by how much a promise is broken at the worst epsilon and direction; <= 0 if it holds."""
    # Most outcomes of several counts together are all but impossible.
    kept = first + second > NEGLIGIBLE / max(first.size, 1)
    first, second = first[kept], second[kept]
    return NEGLIGIBLE + max(
        hockey_stick(*pair, epsilon) - promised(rho, delta, epsilon)
        for epsilon in EPSILONS
        for pair in ((first, second), (second, first))
    )


@cache
def promised(rho: Fraction, delta: Fraction, epsilon: float) -> float:
    """Return delta + (1 - delta) delta', what delta-approximate rho-zCDP and sqrt(2 rho)-GDP both keep at epsilon."""
    converted = Fraction(
        min(delta_of_zcdp(rho, Fraction(epsilon)).value, gaussian_delta(math.sqrt(2 * rho), epsilon))
    )
    return float(delta + (1 - delta) * converted)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of mu-GDP at epsilon (Dong, Roth and Su 2022, corollary 2.13)."""
    return _upper_tail(epsilon / mu - mu / 2) - math.exp(epsilon) * _upper_tail(epsilon / mu + mu / 2)


def _upper_tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def log_mgf(first: Floats, second: Floats, order: float) -> float:
    """Return ln of the sum of P^a Q^(1-a): the Renyi divergence of order a times a - 1."""
    shown = (first > 0) & (second > 0)
    if np.any(first[~shown] > 1e-12):
        return math.inf
    terms = order * np.log(first[shown]) + (1 - order) * np.log(second[shown])
    largest = float(terms.max())
    return largest + math.log(float(np.exp(terms - largest).sum()))


def worst_rho(first: Sequence[Floats], second: Sequence[Floats]) -> float:
    """Return the largest Renyi divergence over its order, of independent values, in both directions."""
    return max(
        sum(log_mgf(p, q, order) for p, q in zip(*pair, strict=True)) / (order - 1) / order
        for order in ORDERS
        for pair in ((first, second), (second, first))
    )


def names_law(marginals: Sequence[Floats], most_names: int) -> Mapping[Names, float]:
    """Return the law of the first names by noisy count, ties by element; index i of a marginal is a noisy count."""
    count = len(marginals)
    places = np.indices([marginal.size for marginal in marginals]).reshape(count, -1)
    probability = joint(marginals)
    kept = probability > 0
    places, probability = places[:, kept], probability[kept]
    # Higher values first, and of equal ones the earlier element; what is hidden comes last.
    elements = np.arange(count)[:, None]
    order = np.argsort(-(places * count + (count - 1 - elements)), axis=0, kind="stable")[:most_names]
    shown = np.take_along_axis(places, order, axis=0) > 0
    named = np.where(shown, order, -1).T
    found, position = np.unique(named, axis=0, return_inverse=True)
    sums = np.bincount(position.reshape(-1), probability)
    law: dict[Names, float] = defaultdict(float)
    for names, mass in zip(found.tolist(), sums.tolist(), strict=True):
        law[tuple(name for name in names if name >= 0)] += mass
    return dict(law)
