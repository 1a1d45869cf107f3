"""Confidence intervals for released counts that are true given that the element is shown.

Everything here is post-processing of released values and costs nothing. Two cases differ:

* The count carries noise that had no part in the selection (KnownGumb, UnkGumb): `fresh_noise_interval`
or `gaussian_noise_interval`, the plain quantile of the noise.
* The element is shown because of the very noise in its count (UnkLap, a KnownLap cut to its largest):
`thresholded_interval`. Given V = h + N >= t, the noise is biased upwards and plain intervals cover far less
than they say. The law of V given V >= t is inverted instead, with equal tails of alpha / 2.

Intervals are computed in float64 and rounded outwards; floats may be used because nothing here touches true
counts.
"""

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.parameters import require_drawable
from dp_service.noise.distribution import exact_bound, laplace_tail, smallest_with_tail_at_most

Floats = NDArray[np.float64]

# Relative slack that covers the rounding of a handful of float64 operations.
_SLACK = 1e-9
# Beyond them the tail of a normal law is below the smallest float.
_MOST_SIGMAS = 40


@dataclass(frozen=True, eq=False)
class CountIntervals:
    """Bounds, both inclusive, of the true count of each shown element: int64, shape (j,)."""

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]


def fresh_noise_interval(
    noisy_counts: NDArray[np.int64], inverse_scale: Fraction, *, alpha: Fraction, minimum: int
) -> CountIntervals:
    """Return v +- w with the smallest integer w such that Pr[|Z| > w] <= alpha, cut off below `minimum`.

    Covers the true count with probability at least 1 - alpha, given the selection, because the noise in v is
    independent of it. `minimum` is the least count a shown element can have: 0 in a known domain, 1 in an
    unknown.

    Raises:
        ValueError: Unless alpha lies strictly between 0 and 1 and `minimum` is not negative.
    """
    _check(inverse_scale, alpha, minimum)
    half_width = noise_half_width(inverse_scale, alpha)
    return _clipped(noisy_counts - half_width, noisy_counts + half_width, minimum)


@lru_cache(maxsize=1024)
def noise_half_width(inverse_scale: Fraction, alpha: Fraction) -> int:
    """Return the smallest integer w >= 0 with Pr[|Z| > w] <= alpha, in doubt a larger one.

    Raises:
        ValueError: Unless alpha lies strictly between 0 and 1 and the scale can be drawn.
    """
    require_drawable(inverse_scale)
    _check_alpha(alpha)
    bound = exact_bound(alpha / 2)
    return smallest_with_tail_at_most(lambda n: laplace_tail(inverse_scale, n + 1), bound)


def gaussian_noise_interval(
    noisy_counts: NDArray[np.int64], variance: Fraction, *, alpha: Fraction, minimum: int
) -> CountIntervals:
    """Return v +- w for counts with fresh discrete Gaussian noise; otherwise as `fresh_noise_interval`."""
    _check_level(alpha, minimum)
    half_width = gaussian_half_width(variance, alpha)
    return _clipped(noisy_counts - half_width, noisy_counts + half_width, minimum)


@lru_cache(maxsize=1024)
def gaussian_half_width(variance: Fraction, alpha: Fraction) -> int:
    """Return an integer w >= 0 with Pr[|Z| > w] <= alpha that is at most 1 above the smallest.

    Raises:
        ValueError: Unless `variance` is positive and alpha lies strictly between 0 and 1.
    """
    _check_alpha(alpha)
    if variance <= 0:
        raise ValueError(f"variance must be positive, got {variance}")
    sigma = math.sqrt(variance)
    allowed = float(alpha) * (1 - _SLACK)
    widths = range(_MOST_SIGMAS * math.ceil(sigma))
    return bisect.bisect_left(widths, True, key=lambda w: _gaussian_outside(w, sigma) <= allowed)


def _gaussian_outside(width: int, sigma: float) -> float:
    """Bound Pr[|Z| > width] from above by the continuous law N of the same parameter.

    Pr[Z >= w + 1] <= Pr[N >= w] (Canonne, Kamath and Steinke 2020, proposition 25). Beyond sigma the density is
    convex, so its integral from z - 1/2 to z + 1/2 is at least its value at z, and the masses add up to more
    than the integral: Pr[Z >= w + 1] <= Pr[N >= w + 1/2].
    """
    reach = width + 0.5 if width + 0.5 >= sigma else width
    return math.erfc(reach / (math.sqrt(2) * sigma))


def thresholded_interval(
    noisy_counts: NDArray[np.int64],
    thresholds: NDArray[np.int64],
    inverse_scale: Fraction,
    *,
    alpha: Fraction,
    minimum: int,
) -> CountIntervals:
    """Return all h for which both tails of V = h + N given V >= t exceed alpha / 2 at the released v.

    `thresholds` holds t for each element (`selection_thresholds`). Covers the true count with probability
    at least 1 - alpha given that the element is shown, whatever the count. For h <= t the law of V - t is
    geometric and does not depend on h at all (the discrete Laplace law has no memory): such counts cannot
    be distinguished, so an interval that holds one of them goes down to `minimum`, and where v is so close to
    t that nothing fits, up to t.

    Raises:
        ValueError: If alpha, `minimum` or a shape is out of range, or some v is below its t.
    """
    _check(inverse_scale, alpha, minimum)
    if noisy_counts.shape != thresholds.shape:
        raise ValueError("thresholds must have one entry for each noisy count")
    excess = (noisy_counts - thresholds).astype(np.float64)
    if np.any(excess < 0):
        raise ValueError("noisy_counts must not be below their thresholds")
    rate, tail = float(inverse_scale), float(alpha) / 2
    lowest = _lowest_excess(excess, rate, tail)
    lower = np.where(np.isneginf(lowest), minimum, thresholds + np.maximum(lowest, 0).astype(np.int64))
    upper = thresholds + _highest_excess(excess, rate, tail).astype(np.int64)
    return _clipped(lower, upper, minimum)


def _lowest_excess(excess: Floats, rate: float, tail: float) -> Floats:
    """Return the smallest h - t with Pr[V >= v | V >= t] > tail, or minus infinity where every h <= t has it.

    With n = v - t: the probability is q^n for h <= t. For t < h <= v it is Pr[N >= v - h] / Pr[N >= t - h],
    so with y = q^-(h - t) the condition reads q^n y^2 - tail (1 + q) y + tail q > 0.
    """
    root = _larger_root(excess, rate, tail, math.exp(-rate))
    unbounded = -rate * excess > math.log(tail) - _SLACK
    return np.where(unbounded, -np.inf, np.ceil(root - _slack(root)))


def _highest_excess(excess: Floats, rate: float, tail: float) -> Floats:
    """Return the largest h - t with Pr[V <= v | V >= t] > tail, and 0 where no h has it.

    With n = v - t: the probability is 1 - q^(n + 1) for h <= t. For t < h <= v the condition is that of
    `_lowest_excess` with n + 1, 1 - tail and the opposite sign. For h >= v it reads
    q^-(h - t) (q^-n - q (1 - tail)) > tail (1 + q) in the same way, which leaves h - t below `beyond`.
    """
    q = math.exp(-rate)
    within = _larger_root(excess + 1, rate, 1 - tail, q)
    log_factor = np.log1p(-(1 - tail) * np.exp(-rate * (excess + 1)))
    beyond = excess + (log_factor - math.log(tail * (1 + q))) / rate
    highest = np.where(beyond >= excess, beyond, within)
    nothing_fits = np.exp(-rate * (excess + 1)) >= 1 - tail
    return np.where(nothing_fits, 0, np.floor(highest + _slack(highest)))


def _larger_root(excess: Floats, rate: float, tail: float, q: float) -> Floats:
    """Return ln(y) / rate for the larger root y of q^n y^2 - tail (1 + q) y + tail q = 0, n = excess."""
    linear = tail * (1 + q)
    discriminant = linear**2 - 4 * tail * np.exp(-rate * (excess + 1))
    return excess + np.log((linear + np.sqrt(np.maximum(discriminant, 0))) / 2) / rate


def _slack(values: Floats) -> Floats:
    return _SLACK * (1 + np.abs(values))


def _clipped(lower: NDArray[np.int64], upper: NDArray[np.int64], minimum: int) -> CountIntervals:
    return CountIntervals(np.maximum(lower, minimum), np.maximum(upper, minimum))


def _check(inverse_scale: Fraction, alpha: Fraction, minimum: int) -> None:
    require_drawable(inverse_scale)
    _check_level(alpha, minimum)


def _check_level(alpha: Fraction, minimum: int) -> None:
    _check_alpha(alpha)
    if minimum < 0:
        raise ValueError(f"minimum must not be negative, got {minimum}")


def _check_alpha(alpha: Fraction) -> None:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha}")
