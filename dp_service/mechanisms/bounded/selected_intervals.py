"""Intervals for counts that are shown because of the very noise in them: above T, or above the first that was cut off.

Given that an element is shown, its noisy count V = h + N is at least t, where t comes from T and from the noisy counts
of the others alone (`mechanisms.selection.selection_thresholds`). The law of V given V >= t is inverted, with equal
tails of alpha / 2: the interval holds all h for which both tails at the released v exceed alpha / 2. The discrete
Gaussian law is log-concave, so both tails are monotone in h, and the h that fit are an interval.

Plain intervals v +- w would cover 84 %, 63 % and 0 % at h = T - 1, 1.5 and 2 sigma.

What is covered is the **bounded** count. Bounding only lowers counts, so the lower end, at alpha / 2, also holds for
the count before bounding; the upper end does not.
"""

from __future__ import annotations

import bisect
import math
from fractions import Fraction
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.bounded.gaussian_tails import log_tail
from dp_service.mechanisms.intervals import CountIntervals, gaussian_half_width

# Covers what floats do to a tail; the interval grows by it.
_SLACK = 1e-7
# The probability of noise beyond so many standard deviations is 10^-23.
_FAR_DEVIATIONS = 10


def selected_gaussian_interval(
    noisy_counts: NDArray[np.int64],
    thresholds: NDArray[np.int64],
    variance: Fraction,
    *,
    alpha: Fraction,
    minimum: int,
) -> CountIntervals:
    """Return the interval of each count, shape as `noisy_counts`.

    `thresholds` holds t for each element: it is shown exactly if v >= t. Covers the bounded count with probability at
    least 1 - alpha given that the element is shown, whatever the count. `minimum` is the least count that a shown
    element can have: m over an unknown domain, 0 over a known one.

    Raises:
        ValueError: alpha, the variance or a shape is out of range, or some v is below its t.
    """
    half_width = gaussian_half_width(variance, alpha)
    if noisy_counts.shape != thresholds.shape:
        raise ValueError("thresholds must have one entry for each noisy count")
    if np.any(noisy_counts < thresholds):
        raise ValueError("noisy_counts must not be below their thresholds")
    inversion = _Inversion(float(variance), float(alpha) / 2, minimum, half_width)
    far = noisy_counts - thresholds >= inversion.far
    # Far above its threshold an element would have been shown anyway: the ends lie where they do without one.
    below, above = inversion.far_ends()
    lower = np.maximum(noisy_counts + below, minimum)
    upper = np.maximum(noisy_counts + above, minimum)
    near = np.stack((noisy_counts[~far], thresholds[~far]), axis=1)
    # Many elements have the same noisy count, and most have the same threshold.
    given, position = np.unique(near, axis=0, return_inverse=True)
    ends = [inversion.interval(int(v), int(t)) for v, t in given]
    lower[~far], upper[~far] = np.array(ends, dtype=np.int64).reshape(-1, 2)[position.reshape(-1)].T
    return CountIntervals(lower, upper)


class _Inversion:
    """Inverts the law of V given V >= t at one level; `half_width` is that of the plain interval."""

    def __init__(self, variance: float, tail: float, minimum: int, half_width: int) -> None:
        # Elements of one answer ask about the same few hundred n. If tails were kept for longer, how soon an account is
        # answered would depend on what others were shown.
        self._log_tail = cache(partial(log_tail, variance))
        self._log_tail_level = math.log(tail * (1 - _SLACK))
        self._log_rest_level = math.log1p(-tail * (1 - _SLACK))
        self._minimum = minimum
        self._half_width = half_width
        # From here on no float can tell the law given that the element is shown from the law itself.
        self.far = 2 * half_width + math.ceil(_FAR_DEVIATIONS * math.sqrt(variance)) + 1

    def far_ends(self) -> tuple[int, int]:
        """Return how far the ends of an interval lie from v, where v is far above t."""
        v = self._minimum + 2 * self.far
        first, last = self.interval(v, v - self.far)
        return first - v, last - v

    def interval(self, v: int, t: int) -> tuple[int, int]:
        """Return the least and the largest h >= minimum that fit; the minimum alone if none does."""
        # The plain upper end is above this one: given that it is large, V is more likely to be large.
        candidates = range(self._minimum, max(v + self._half_width, self._minimum) + 1)
        first = bisect.bisect_left(candidates, True, key=lambda h: self._is_reached_often(h, v, t))
        beyond = bisect.bisect_left(candidates, True, key=lambda h: not self._is_exceeded_often(h, v, t))
        return self._minimum + first, max(self._minimum + beyond - 1, self._minimum + first, self._minimum)

    def _is_reached_often(self, h: int, v: int, t: int) -> bool:
        """Return whether Pr[V >= v | V >= t] > alpha / 2."""
        return self._log_ratio(h, v, t) > self._log_tail_level

    def _is_exceeded_often(self, h: int, v: int, t: int) -> bool:
        """Return whether Pr[V <= v | V >= t] > alpha / 2, that is Pr[V >= v + 1 | V >= t] < 1 - alpha / 2."""
        return self._log_ratio(h, v + 1, t) < self._log_rest_level

    def _log_ratio(self, h: int, v: int, t: int) -> float:
        return self._log_tail(v - h) - self._log_tail(t - h)
