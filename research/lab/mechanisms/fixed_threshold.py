"""The fixed threshold: every count that exceeds a threshold without noise by its own noise.

Source: Durfee and Rogers 2019, appendix F, algorithm 8 and theorem 5.

Why it is private. Released: the set of the elements with h_i > c and h_i + Z_i > c + T, c = h_(d_bar+1).
Each element answers for itself. Let h and h' be neighbours, in either order.

* Above c in both: h_i - c moves by at most tau, because a member moves both by 0 to tau in the same
direction, so against noise of scale tau / e the answer is e-DP.
* Above c in h only: it is at most tau above, so it comes out with probability at most p = Pr[Z > T - tau],
and for h' never: (0, p)-DP. There are at most d_bar of these, so T is such that d_bar p <= delta.
* Above c in h' only: it never comes out for h, and for h' it stays out with probability at least 1 - p. That
is e-DP if p <= 1 - exp(-e), which T sees to as well.

The first and the third kind are all above c in h', so there are at most d_bar of them: (d_bar e,
delta)-DP. The paper argues with one neighbour's set containing the other's (lemma 6.7), which is so for
tau = 1 only: with tau = 2 and d_bar = 1, (1, 0) becomes (1, 2), and {0} becomes {1}.

Nothing of the order is released, and neither bounded range nor a price by what was found are known for
it. Knowing Delta would not help: one changed count moves c, and with it every answer.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import MAX_ROWS, Currency, require_drawable, require_positive_integer
from dp_service.mechanisms.selection import Selection
from dp_service.noise.distribution import exact_bound, exponential, laplace_tail, smallest_with_tail_at_most
from dp_service.noise.source import NoiseSource
from research.lab.mechanisms.interface import Guarantee, largest_counts, rounded_up


@dataclass(frozen=True)
class FixedThreshold:
    """Release the set of those of the d_bar largest counts that exceed h_(d_bar+1) + T by their noise (algorithm 8).

    Pr[Z = z] is proportional to exp(-e |z| / tau), e = epsilon_per. Guarantee: (d_bar e, delta)-DP under
    unrestricted sensitivity.

    Raises:
        ValueError: A parameter is no positive integer, or the scale cannot be drawn.
    """

    label: ClassVar[str] = "fixed threshold (DR alg. 8)"

    currency: Currency
    d_bar: int
    tau: int

    def __post_init__(self) -> None:
        require_positive_integer("d_bar", self.d_bar, at_most=MAX_ROWS)
        require_positive_integer("tau", self.tau)
        require_drawable(self.inverse_scale)

    @property
    def inverse_scale(self) -> Fraction:
        """One over the scale of the noise."""
        return self.currency.epsilon_per / self.tau

    def guarantee(self) -> Guarantee:
        """Return d_bar answers and one delta."""
        return Guarantee(
            rounded_up(self.d_bar * self.currency.epsilon_per), rounded_up(self.currency.delta), choices=None
        )

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return the elements found, in the order of the elements; zeros are as good as absent."""
        counts, elements = largest_counts(histogram, self.d_bar + 1)
        candidates = counts[counts > counts[self.d_bar]]
        noisy = candidates + noise.discrete_laplace(self.inverse_scale, candidates.size, "answers")
        above = np.flatnonzero(noisy > counts[self.d_bar] + fixed_shift(self))
        return Selection(np.sort(elements[above]), None, ended_in_bottom=False)


@lru_cache(maxsize=1024)
def fixed_shift(mechanism: FixedThreshold) -> int:
    """Return T, the smallest integer with Pr[Z > T - tau] <= delta / d_bar and <= 1 - exp(-e); doubt raises it."""
    # The noise exceeds T - tau where it is at least one more.
    least = max(
        smallest_with_tail_at_most(lambda n: laplace_tail(mechanism.inverse_scale, n), allowed)
        for allowed in (
            exact_bound(mechanism.currency.delta / mechanism.d_bar),
            1 - exponential(-mechanism.currency.epsilon_per),
        )
    )
    return mechanism.tau - 1 + least
