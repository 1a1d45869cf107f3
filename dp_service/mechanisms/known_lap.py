"""KnownLap: noisy counts of a known domain under restricted sensitivity.

Source: Dwork et al. 2006; Rogers et al. 2020, algorithm 1. The discrete Laplace law replaces the continuous
one.

Why it is private. Precondition: the domain is fixed without looking at the data, and one member changes at
most Delta counts, each by at most tau. Released: h_i + Z_i for every element, in an order computed from the
released values and the elements alone. Moving a count by tau changes the probability of any noisy value by
a factor of at most exp(tau * e / (2 tau)) = exp(e / 2). At most Delta factors differ from 1, so the release
is (Delta e / 2)-DP, and its log-ratios lie in a range of length Delta e, so it is Delta e-BR. Showing only
the k largest afterwards is post-processing, and every k is free.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import (
    Cost,
    Currency,
    require_drawable,
    require_outcome,
    require_positive_integer,
)
from dp_service.mechanisms.rows import Rows
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import NoiseSource
from dp_service.terms import MechanismName


@dataclass(frozen=True)
class KnownLap:
    """Release h_i + Z_i for all d elements, Pr[Z = z] proportional to exp(-e |z| / (2 tau)), e = epsilon_per.

    `delta_l0` is Delta, the number of elements that one member can change, and `tau` by how much. Guarantee:
    (Delta e / 2)-DP and Delta e-BR under restricted sensitivity. Cost: information Delta, calls 0.

    Raises:
        ValueError: A parameter is no positive integer, or the scale cannot be drawn.
    """

    name: ClassVar[MechanismName] = MechanismName.KNOWN_LAP
    version: ClassVar[int] = 2

    currency: Currency
    delta_l0: int
    tau: int

    def __post_init__(self) -> None:
        require_positive_integer("delta_l0", self.delta_l0)
        require_positive_integer("tau", self.tau)
        require_drawable(self.count_inverse_scale)

    @property
    def count_inverse_scale(self) -> Fraction:
        """One over the scale of the noise in the counts."""
        return self.currency.epsilon_per / (2 * self.tau)

    def worst_case_cost(self) -> Cost:
        """Return Delta units of information."""
        return Cost(information=self.delta_l0, calls=0)

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return Delta units of information, whatever was released; there is no bottom to end in."""
        require_outcome(released >= 0 and not ended_in_bottom)
        return self.worst_case_cost()

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return the whole domain with noisy counts, descending; the histogram holds its zeros too."""
        rows = Rows.shuffled(histogram, len(histogram), noise)
        noisy = rows.counts + noise.discrete_laplace(self.count_inverse_scale, len(rows), "counts")
        order = rows.descending(noisy)
        return Selection(rows.elements[order], noisy[order], ended_in_bottom=False)
