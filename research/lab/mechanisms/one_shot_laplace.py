"""One-shot Laplace: the k largest of counts that all got Laplace noise at once.

Source: Qiao, Su and Zhang 2021, "Oneshot differentially private top-k selection", theorem 2.2, as quoted
in Durfee and Rogers 2021, "One-shot DP top-k mechanisms".

Why it is private. The theorem says so, for the continuous Laplace law of scale 8 tau sqrt(k ln(d /
delta)) / epsilon, for epsilon below 0.2 and delta below 0.05, and for the **set** of the k elements. Its
proof couples the noise of two neighbours and is not repeated here. The discrete law of the same scale is
not in the theorem; the tests enumerate it on small domains only. This is for comparison, and the reason
not to serve it is in the numbers: at least twice the noise in counts and four times the noise in choosing
(`standard_deviations`), no order, and no bounded range.
"""

from dataclasses import dataclass
from fractions import Fraction
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
from dp_service.noise.interval_arithmetic import Interval, IntervalContext, enclose
from research.lab.mechanisms.floors import scaled_floor
from dp_service.noise.source import NoiseSource
from research.lab.mechanisms.interface import Guarantee, by_noisy_count, rounded_up

_LARGEST_EPSILON = Fraction(1, 5)
_LARGEST_DELTA = Fraction(1, 20)
_SCALE_BITS = 64


@dataclass(frozen=True)
class OneShotLaplace:
    """Release the set of the k largest h_i + Z_i of a known domain.

    `parameters` holds epsilon and delta of the whole release. Guarantee: (epsilon, delta)-DP under
    unrestricted sensitivity, by a theorem on the continuous law.

    Raises:
        ValueError: A parameter is no positive integer, or the theorem does not cover epsilon or delta.
    """

    label: ClassVar[str] = "one-shot Laplace (QSZ)"

    parameters: Currency
    k: int
    tau: int

    def __post_init__(self) -> None:
        require_positive_integer("k", self.k)
        require_positive_integer("tau", self.tau)
        if self.parameters.epsilon_per >= _LARGEST_EPSILON:
            raise ValueError(
                f"epsilon_per must be below {_LARGEST_EPSILON}, got {self.parameters.epsilon_per}"
            )
        if self.parameters.delta >= _LARGEST_DELTA:
            raise ValueError(f"delta must be below {_LARGEST_DELTA}, got {self.parameters.delta}")

    def inverse_scale(self, domain_size: int) -> Fraction:
        """Return epsilon / (8 tau sqrt(k ln(d / delta))), rounded down to 64 binary places: more noise, never less."""

        def closed_form(context: IntervalContext) -> Interval:
            logarithm = context.log(enclose(context, domain_size / self.parameters.delta))
            return enclose(context, self.parameters.epsilon_per / (8 * self.tau)) / context.sqrt(
                self.k * logarithm
            )

        inverse_scale = Fraction(scaled_floor(closed_form, _SCALE_BITS), 2**_SCALE_BITS)
        require_drawable(inverse_scale)
        return inverse_scale

    def guarantee(self) -> Guarantee:
        """Return epsilon and delta."""
        return Guarantee(
            rounded_up(self.parameters.epsilon_per), rounded_up(self.parameters.delta), choices=None
        )

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return k elements in the order of the elements.

        Raises:
            ValueError: If k exceeds the domain.
        """
        require_within_domain(self.k, len(histogram))
        drawn = noise.discrete_laplace(self.inverse_scale(len(histogram)), len(histogram), "counts")
        ranked = by_noisy_count(histogram.canonical_order, histogram.counts_by_element[histogram.canonical_order] + drawn)
        return Selection(np.sort(histogram.canonical_order[ranked[: self.k]]), None, ended_in_bottom=False)
