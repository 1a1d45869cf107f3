"""UnkLap: noisy counts above a noisy threshold, unknown domain, restricted sensitivity.

Source: Rogers et al. 2020, algorithm 3 and its appendix; Durfee and Rogers 2019, section 6.1.

Why it is private. Precondition: the histogram holds the d_bar + 1 largest counts (or all there are, missing
ones count 0), ties at the cut broken by the element; one member changes at most Delta counts, each by at
most tau. Released: the elements whose noisy counts beat the noisy threshold v_bottom, with those counts,
and v_bottom.

Elements that are among the first d_bar of both neighbours: the counts of at most Delta of them change, and
if the (d_bar + 1)-th count changes too, one of the Delta changes was spent on an element outside. So at
most Delta numbers move by tau each, against noise of scale 2 tau Delta / e: a factor of exp(e / 2).

Elements that are among the first d_bar of one neighbour only: at most min(Delta, d_bar), and none is more
than tau above the (d_bar + 1)-th count. Each is shown with probability at most p = Pr[Z1 - Z2 > C - tau],
which `threshold_shift` makes so small that (exp(e / 2) + 1) min(Delta, d_bar) p <= delta. A shift that
forgets tau fails here by a factor of about exp(e / (2 Delta)).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import (
    MAX_ROWS,
    Cost,
    Currency,
    require_drawable,
    require_outcome,
    require_positive_integer,
)
from dp_service.mechanisms.rows import Rows
from dp_service.mechanisms.selection import Selection
from dp_service.noise.distribution import (
    exact_bound,
    exponential,
    laplace_difference_tail,
    smallest_with_tail_at_most,
)
from dp_service.noise.source import NoiseSource
from dp_service.terms import MechanismName

# Noise is within 2^62 and counts are not negative, so no noisy count is as low.
_BELOW_ALL = np.iinfo(np.int64).min


@dataclass(frozen=True)
class UnkLap:
    """Release every h_i + Z_i above v_bottom = h_(d_bar+1) + C + Z, and v_bottom itself.

    Pr[Z = z] is proportional to exp(-e |z| / (2 tau Delta)) with e = epsilon_per and Delta = `delta_l0`.
    Guarantee: (e / 2, delta)-DP for neighbours under restricted sensitivity. Cost: information 1, calls 1.

    Raises:
        ValueError: A parameter is no positive integer, or the scale cannot be drawn.
    """

    name: ClassVar[MechanismName] = MechanismName.UNK_LAP
    version: ClassVar[int] = 2

    currency: Currency
    delta_l0: int
    d_bar: int
    tau: int

    def __post_init__(self) -> None:
        require_positive_integer("delta_l0", self.delta_l0)
        require_positive_integer("d_bar", self.d_bar, at_most=MAX_ROWS)
        require_positive_integer("tau", self.tau)
        require_drawable(self.count_inverse_scale)

    @property
    def count_inverse_scale(self) -> Fraction:
        """One over the scale of the noise in the counts and in the threshold."""
        return self.currency.epsilon_per / (2 * self.tau * self.delta_l0)

    def worst_case_cost(self) -> Cost:
        """Return one unit of information and one call."""
        return Cost(information=1, calls=1)

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return one unit of information and one call, whatever was released."""
        require_outcome(0 <= released <= self.d_bar)
        return self.worst_case_cost()

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return the elements above the threshold, descending; at most d_bar + 1 rows may come in."""
        rows = Rows.shuffled(histogram, self.d_bar + 1, noise)
        noisy = rows.counts + noise.discrete_laplace(self.count_inverse_scale, len(rows), "counts")
        # The row that is cut off lends its count and its noise to bottom; it is never above it, as C is positive.
        bottom = int(noisy[last_row(rows)]) + threshold_shift(self)
        is_shown = (noisy > bottom) & may_be_shown(rows)
        # All rows are sorted, those that are shown first, so that time knows no more than what is released.
        masked = noisy * is_shown + _BELOW_ALL * ~is_shown
        order = rows.descending(masked)[: np.count_nonzero(is_shown)]
        return Selection(rows.elements[order], noisy[order], ended_in_bottom=True, bottom=bottom)


def last_row(rows: Rows) -> int:
    """Return the position of the (d_bar + 1)-th largest count: the smallest, and of equal ones the last element."""
    is_smallest = rows.counts == rows.counts.min()
    return int(np.argmax((rows.elements + 1) * is_smallest))


def may_be_shown(rows: Rows) -> NDArray[np.bool_]:
    """Return which rows are elements that a member has; a count of zero is a missing row, or equivalent to one."""
    return rows.counts > 0


@lru_cache(maxsize=1024)
def threshold_shift(mechanism: UnkLap) -> int:
    """Return C, the smallest integer with (e^(e/2) + 1) min(Delta, d_bar) Pr[Z1 - Z2 > C - tau] <= delta.

    The inequality is decided in interval arithmetic and doubt counts as failure, so C errs upwards only.
    """
    epsilon_per, delta = mechanism.currency.epsilon_per, mechanism.currency.delta
    newcomers = min(mechanism.delta_l0, mechanism.d_bar)
    allowed = exact_bound(delta) / ((exponential(epsilon_per / 2) + 1) * newcomers)
    inverse_scale = mechanism.count_inverse_scale
    # The allowed probability is below 1/2 and Z1 - Z2 is symmetric, so C - tau is never negative.
    excess = smallest_with_tail_at_most(lambda n: laplace_difference_tail(inverse_scale, n + 1), allowed)
    return mechanism.tau + excess
