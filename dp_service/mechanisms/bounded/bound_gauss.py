"""BoundGauss: noisy counts of bounded contributions, of an unknown domain above a threshold, or of a known one.

Sources: Korolova et al. 2009 and Wilson et al. 2020 (bounding and a threshold), Swanberg et al. 2023 (Gaussian
noise), Bun and Steinke 2016 (approximate zCDP). docs/proofs/bounded-contributions.md has the proof at length.

Why it is private. Precondition: contributions were bounded before they were counted (`ContributionBound`). Let h and
h' be the histograms of neighbours, h' that of the data with the additional member.

Known domain: v_i = h_i + N_i for every element. The counts differ by at most D in squared l2 distance, and integer
shifts of a discrete Gaussian law with parameter sigma^2 have a Renyi divergence of order a of at most
a D / (2 sigma^2) (Canonne, Kamath and Steinke 2020). With sigma^2 = D / (2 rho) that is rho-zCDP, and with 1/11 more
also sqrt(2 rho)-GDP (`gaussian_price`).

Unknown domain: elements below m are not considered, which is a function of the public m. Those that reach m under
both neighbours are treated as above, and hiding what is at or below T is post-processing. Those that reach m under h'
only are all hidden with probability at least 1 - delta (`threshold`); given that, the two laws are as far apart as over
a known domain. So it is delta-approximate rho-zCDP, and delta-approximate sqrt(2 rho)-GDP. How many elements there are,
or how many are asked for, has no part in it: the price does not depend on k.

All counts, T and the noise are in units of the bound's grid; m is in counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.bounded.contribution_bound import ContributionBound
from dp_service.mechanisms.bounded.threshold import hiding_threshold
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import (
    Cost,
    Currency,
    require_outcome,
    require_positive_integer,
    require_rational,
)
from dp_service.mechanisms.rows import Rows
from dp_service.mechanisms.selection import Selection
from dp_service.noise.discrete_gaussian import MAX_VARIANCE
from dp_service.noise.gaussian_price import rho_of_units, variance_for
from dp_service.noise.source import NoiseSource
from dp_service.terms import MechanismName

# Noise is within 2^62 and counts are not negative, so no noisy count is as low.
_BELOW_ALL = np.iinfo(np.int64).min


@dataclass(frozen=True)
class BoundGauss:
    """Release h_i + N_i, N_i discrete Gaussian of parameter `variance`, for all elements above `threshold`.

    Over an unknown domain `min_count` is m, the smallest count that is considered: it comes from the policy and
    never from the data. Over a known domain it is None, and every element is released, absent ones as 0.

    `units` is how many units of information the release costs; it is a whole number but for a look that shares its
    units with another one. With rho = units * epsilon_per^2 / 8 the guarantee for member-level neighbours whose
    contributions are bounded by `bound` is rho-zCDP and sqrt(2 rho)-GDP over a known domain, and delta-approximately so
    over an unknown one. Cost: information `units`, calls 0 or 1, whatever is shown.

    >>> look = BoundGauss(Currency(Fraction("0.15"), Fraction("1e-10")), Fraction(20), ContributionBound(32), 1)
    >>> float(look.variance), look.threshold
    (284.5353535353535, 117)

    Raises:
        ValueError: `units` is no positive Fraction, `min_count` is no positive integer, or the noise that follows
            from units, epsilon_per and the bound cannot be drawn.
    """

    name: ClassVar[MechanismName] = MechanismName.BOUND_GAUSS
    version: ClassVar[int] = 3

    currency: Currency
    units: Fraction
    bound: ContributionBound
    min_count: int | None

    def __post_init__(self) -> None:
        require_rational("units", self.units)
        if self.min_count is not None:
            require_positive_integer("min_count", self.min_count)
        require_drawable_variance(self.variance)

    @property
    def rho(self) -> Fraction:
        """The zCDP that the units stand for: e^2 / 8 each."""
        return rho_of_units(self.currency.epsilon_per, self.units)

    @property
    def variance(self) -> Fraction:
        """The parameter sigma^2 of the noise; D is the squared distance of neighbours."""
        return variance_for(self.bound.squared_distance, self.rho)

    @property
    def threshold(self) -> int | None:
        """T: elements whose noisy count exceeds it are shown. None over a known domain."""
        if self.min_count is None:
            return None
        return hiding_threshold(self.bound, self.variance, self.currency.delta, self.min_count)

    def worst_case_cost(self) -> Cost:
        """Return the units, rounded up to a whole number, and one call if the domain is unknown."""
        return Cost(information=math.ceil(self.units), calls=0 if self.min_count is None else 1)

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return the same, whatever was released; the threshold is public, so no list ends in it."""
        require_outcome(released >= 0 and not ended_in_bottom)
        return self.worst_case_cost()

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return the elements that are shown with their noisy counts, descending, ties by the element.

        All elements that reach `min_count` may come in; those below it are never shown. Time depends on how many
        rows come in and not on their counts.
        """
        rows = Rows.shuffled(histogram, len(histogram), noise)
        noisy = rows.counts + noise.discrete_gaussian(self.variance, len(rows), "counts")
        is_shown = self._is_shown(rows.counts, noisy)
        # All rows are sorted, those that are shown first, so that time knows no more than what is released.
        order = rows.descending(noisy * is_shown + _BELOW_ALL * ~is_shown)[: np.count_nonzero(is_shown)]
        return Selection(rows.elements[order], noisy[order], ended_in_bottom=False, bottom=self.threshold)

    def _is_shown(self, counts: NDArray[np.int64], noisy: NDArray[np.int64]) -> NDArray[np.bool_]:
        threshold = self.threshold
        if self.min_count is None or threshold is None:
            return np.ones(counts.size, dtype=np.bool_)
        return (noisy > threshold) & (counts >= self.min_count * self.bound.grid)


def require_drawable_variance(variance: Fraction) -> None:
    """Raise ValueError, in terms of the caller's parameters, unless Gaussian noise of this parameter can be drawn."""
    if variance > MAX_VARIANCE:
        raise ValueError(
            "units, epsilon_per, typical, tau and periods must give a noise variance of at most "
            f"{MAX_VARIANCE}, got {float(variance):g}"
        )
