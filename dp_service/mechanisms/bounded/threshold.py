"""The threshold that hides what one member alone brings, from the exact tail of the discrete Gaussian law.

Only elements whose count is at least m are considered. Let x' be x with one more member. An element that reaches m in
x' but not in x holds at most m - 1 there, so at most m - 1 + s tau in x', where s is the number of periods in which
the member counts in it (tau alone if there is one period). Its noisy count exceeds T with probability at most
Pr[N > T - (m - 1 + s tau)]. If that is at most delta s / (P Delta) for every s = 1 .. P, then all such elements
together are shown with probability at most delta, because the s of all of them sum to at most P Delta.

Forgetting m or tau shows a newcomer with probability 1/2 and more.

Sources: Korolova et al. 2009; Wilson et al. 2020; Swanberg et al. 2023, with the discrete law in place of the
continuous one.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from dp_service.mechanisms.bounded.contribution_bound import ContributionBound
from dp_service.noise.distribution import exact_bound, gaussian_tail, smallest_with_tail_at_most
from dp_service.noise.interval_arithmetic import certainly_below


@lru_cache(maxsize=1024)
def hiding_threshold(bound: ContributionBound, variance: Fraction, delta: Fraction, min_count: int) -> int:
    """Return T, the smallest integer that satisfies the inequality above for every s.

    The inequality is decided in interval arithmetic of 45 digits and doubt counts as failure, so T errs upwards only.
    T is at least m - 1 + tau, also where a delta of nearly 1/2 and more would be content with less.
    """
    threshold = 0
    for largest_change, at_most in bound.newcomers():
        hidden = min_count - 1 + largest_change
        allowed = delta / at_most
        if not _hides(variance, threshold - hidden, allowed):
            threshold = hidden + _smallest_excess(variance, allowed)
    return threshold


def _smallest_excess(variance: Fraction, allowed: Fraction) -> int:
    """Return the smallest n >= 0 with Pr[N > n] <= allowed."""
    # An exact tail takes milliseconds: the search begins where the normal law has it, which is nearly always right.
    share = min(max(float(allowed), sys.float_info.min), 0.5)
    guess = round(-math.sqrt(variance) * NormalDist().inv_cdf(share))
    return smallest_with_tail_at_most(
        lambda n: gaussian_tail(variance, n + 1), exact_bound(allowed), guess=guess
    )


def _hides(variance: Fraction, excess: int, allowed: Fraction) -> bool:
    return excess >= 0 and certainly_below(gaussian_tail(variance, excess + 1), exact_bound(allowed))
