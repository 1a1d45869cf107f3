"""LimitDom with Laplace noise: the top k above a noisy threshold under restricted sensitivity.

Source: Durfee and Rogers 2019, section 6.1, algorithm 4 and lemmas 6.1 to 6.4. The discrete Laplace law
replaces the continuous one, and the threshold is rounded up to an integer.

Why it is private. It is UnkLap with another threshold, and shows less: no counts, no bottom's value and
no more than k elements. The argument of `unk_lap` holds for any threshold shift C, with delta as the
shift makes it: (exp(epsilon) + 1) min(Delta, d_bar) Pr[Z1 - Z2 > C - tau]. That probability is evaluated
exactly here; the paper bounds it by delta_hat (3 + ln(Delta / delta_hat)) / (4 Delta) for the continuous
law.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import MAX_ROWS, Currency, require_drawable, require_positive_integer
from dp_service.mechanisms.selection import Selection
from dp_service.noise.distribution import exponential, laplace_difference_tail
from dp_service.noise.interval_arithmetic import Interval, IntervalContext, enclose
from research.lab.mechanisms.floors import scaled_floor
from dp_service.noise.source import NoiseSource
from research.lab.mechanisms.interface import (
    Guarantee,
    by_noisy_count,
    largest_counts,
    rounded_up,
    upper_end,
)


@dataclass(frozen=True)
class LaplaceLimitDom:
    """Release at most k elements whose h_i + Z_i exceed h_(d_bar+1) + C + Z, in the order of these (algorithm 4).

    `parameters` holds the paper's epsilon, of the whole release, and its delta, which is not the one that is
    promised: see `guarantee`. Pr[Z = z] is proportional to exp(-epsilon |z| / (tau Delta)), Delta =
    `delta_l0`. Guarantee: (epsilon, delta)-DP under restricted sensitivity.

    Raises:
        ValueError: A parameter is no positive integer, k or Delta is above d_bar, or the scale cannot be drawn.
    """

    label: ClassVar[str] = "Laplace LimitDom (DR alg. 4)"

    parameters: Currency
    k: int
    d_bar: int
    delta_l0: int
    tau: int

    def __post_init__(self) -> None:
        require_positive_integer("d_bar", self.d_bar, at_most=MAX_ROWS)
        for name in ("k", "delta_l0", "tau"):
            require_positive_integer(name, getattr(self, name))
        for name in ("k", "delta_l0"):
            if getattr(self, name) > self.d_bar:
                raise ValueError(f"{name} must be at most d_bar = {self.d_bar}, got {getattr(self, name)}")
        require_drawable(self.inverse_scale)

    @property
    def inverse_scale(self) -> Fraction:
        """One over the scale of all noise."""
        return self.parameters.epsilon_per / (self.tau * self.delta_l0)

    @cached_property
    def threshold_shift(self) -> int:
        """C, which is tau (1 + Delta ln(Delta / delta_hat) / epsilon) rounded up."""
        odds = self.delta_l0 / self.parameters.delta

        def closed_form(context: IntervalContext) -> Interval:
            return self.tau + context.log(enclose(context, odds)) / enclose(context, self.inverse_scale)

        return scaled_floor(closed_form, 0) + 1

    def guarantee(self) -> Guarantee:
        """Return epsilon and (exp(epsilon) + 1) Delta Pr[Z1 - Z2 > C - tau]."""
        tail = laplace_difference_tail(self.inverse_scale, self.threshold_shift - self.tau + 1)
        delta = (exponential(self.parameters.epsilon_per) + 1) * self.delta_l0 * tail
        return Guarantee(rounded_up(self.parameters.epsilon_per), upper_end(delta), choices=None)

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return the elements found; zeros are as good as absent."""
        counts, elements = largest_counts(histogram, self.d_bar + 1)
        candidates = int(np.count_nonzero(counts[: self.d_bar]))
        drawn = noise.discrete_laplace(self.inverse_scale, candidates + 1, "counts")
        bottom = int(counts[self.d_bar] + drawn[candidates]) + self.threshold_shift
        noisy = counts[:candidates] + drawn[:candidates]
        above = np.flatnonzero(noisy > bottom)
        shown = by_noisy_count(elements[above], noisy[above])[: self.k]
        return Selection(elements[above][shown], None, ended_in_bottom=shown.size < self.k)
