"""The threshold that hides what one member alone brings, from the exact tail of the discrete Gaussian law.

Only elements whose count is at least m are considered. Let x' be x with one more member. An element that reaches m in
x' but not in x holds at most m - 1 there, and y_i more in x'. Its noisy count exceeds T with probability at most
f(y_i) = Pr[N > T - (m - 1) - y_i]. T is the smallest integer with

    (D / y^2) f(y) <= delta    for every contribution y that a member can make (`ContributionBound`).

The squares of a member's y_i sum to at most D, so the sum of all f(y_i) = y_i^2 f(y_i) / y_i^2 is at most delta. On a
grid, m is in its units. It holds however a member divides D among elements and periods.

Forgetting m, or what a member adds, shows a newcomer with probability 1/2 and more.

Sources: Korolova et al. 2009; Wilson et al. 2020; Swanberg et al. 2023, with the discrete law in place of the
continuous one.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from dp_service.mechanisms.bounded.contribution_bound import ContributionBound
from dp_service.noise.distribution import exact_bound, gaussian_tail, smallest_with_tail_at_most
from dp_service.noise.interval_arithmetic import Interval, certainly_below


@lru_cache(maxsize=1024)
def hiding_threshold(bound: ContributionBound, variance: Fraction, delta: Fraction, min_count: int) -> int:
    """Return T, the smallest integer that satisfies the inequality above for every y.

    The inequality is decided in interval arithmetic of 45 digits and doubt counts as failure, so T errs upwards only.
    T is at least m - 1 and the largest y, also where a delta of nearly 1/2 and more would be content with less.
    """
    hidden = min_count * bound.grid - 1
    least, most = bound.contributions[0], bound.contributions[-1]
    hiding = _Hiding(variance, delta / bound.squared_distance)
    # Nearly always one of the ends decides; what lies between is checked.
    excess = max(hiding.needed(y) for y in {least, most})
    while (shown := hiding.shown_too_often(excess, least, most)) is not None:
        excess = max(excess + 1, hiding.needed(shown))
    return hidden + excess


@dataclass(frozen=True)
class _Hiding:
    """The inequality, with T = m - 1 + excess; `part` is delta / D."""

    variance: Fraction
    part: Fraction

    def needed(self, y: int) -> int:
        """Return the smallest excess >= y that suffices for y."""
        allowed = self.part * y**2
        # An exact tail takes milliseconds: the search begins where the normal law has it, which is nearly always right.
        share = min(max(float(allowed), sys.float_info.min), 0.5)
        guess = round(-math.sqrt(self.variance) * NormalDist().inv_cdf(share))
        return y + smallest_with_tail_at_most(
            lambda n: gaussian_tail(self.variance, n + 1), exact_bound(allowed), guess=guess
        )

    def shown_too_often(self, excess: int, least: int, most: int) -> int | None:
        """Return a y between `least` and `most` for which the excess may not suffice, None if there is none.

        It suffices for both ends.

        ln f is concave in y, because the discrete Gaussian law is log-concave. So between two neighbouring y it rises
        at least as steeply to the left of them and at most as steeply to the right, and beyond them it lies below the
        line through both. That line less 2 ln y is convex: it suffices at all y of a range if it does at both ends.
        """
        if most - least <= 1:
            return None
        middle = (least + most) // 2
        at, after = self._shown(excess, middle), self._shown(excess, middle + 1)
        for y, shown in ((middle, at), (middle + 1, after)):
            if not self._suffices(shown, y):
                return y
        step = after / at
        found = None
        if not self._suffices(at / step ** (middle - least), least):
            found = self.shown_too_often(excess, least, middle)
        if found is None and not self._suffices(after * step ** (most - middle - 1), most):
            found = self.shown_too_often(excess, middle + 1, most)
        return found

    def _shown(self, excess: int, y: int) -> Interval:
        """Enclose f(y)."""
        return gaussian_tail(self.variance, excess - y + 1)

    def _suffices(self, shown: Interval, y: int) -> bool:
        return certainly_below(shown, exact_bound(self.part * y**2))
