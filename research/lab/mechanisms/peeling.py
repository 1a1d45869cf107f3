"""Peeling: the exponential mechanism k times, each time over the elements that are left.

Source: McSherry and Talwar 2007; Durfee and Rogers 2019, section 4.1.

Why it is private. Each round is an exponential mechanism with utility h_i e / tau, which a member moves
by 0 to e, all in one direction: e-BR. The domain is known and the elements of earlier rounds are
released, so each round's candidates are no secret. KnownGumb without counts has exactly this law from one
draw of noise (lemma 4.2).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

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
class Peeling:
    """Release k elements of a known domain, one exponential mechanism after the other.

    Guarantee: k e-BR choices one after the other, hence k e-DP and (k e^2 / 8)-zCDP, under unrestricted
    sensitivity, e = epsilon_per.

    Raises:
        ValueError: A parameter is no positive integer, or the scale cannot be drawn.
    """

    label: ClassVar[str] = "peeling"

    currency: Currency
    k: int
    tau: int

    def __post_init__(self) -> None:
        require_positive_integer("k", self.k)
        require_positive_integer("tau", self.tau)
        require_drawable(self.currency.epsilon_per / self.tau)

    def guarantee(self) -> Guarantee:
        """Return k choices."""
        return Guarantee(rounded_up(self.k * self.currency.epsilon_per), 0.0, choices=self.k)

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return k elements.

        Raises:
            ValueError: If k exceeds the domain.
        """
        require_within_domain(self.k, len(histogram))
        unit = self.currency.epsilon_per / self.tau
        left = histogram.canonical_order
        found = np.zeros(0, dtype=np.int64)
        for number in range(1, self.k + 1):
            weights = LogWeights(unit, histogram.counts_by_element[left])
            choice = noise.gumbel_order(weights, 1, f"round {number}")
            found = np.append(found, left[choice])
            left = np.delete(left, choice)
        return Selection(found, None, ended_in_bottom=False)
