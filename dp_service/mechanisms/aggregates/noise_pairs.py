"""Tails of Z_b + k Z_n for independent discrete Gaussian Z_b and Z_n, also given that Z_n >= a.

This is the law of the error of sums and averages: B carries Z_b and N carries Z_n, and where a group is shown because
of its N, Z_n was selected. It is added up over Z_n, with the tails of Z_b in closed form or from a table. Where there
are too many values of Z_n, they are taken in at most 2,048 bins, each at its worse end, so that no tail is too small:
an interval grows by at most 1 % of the standard deviation of k Z_n.

Intervals are computed from released values alone, so floats may be used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Up to here tails come from a table. Beyond, the integral from n - 1/2 on is right to 2 10^-7 of a tail at 12 sigma.
_LARGEST_TABLED_SIGMA = 2000.0
_REACH_IN_SIGMAS = 12.0
# What lies beyond has a probability below 10^-20, also given Z_n >= a.
_LOG_NEGLIGIBLE = 46.0
_MOST_POINTS = 2**20
_MOST_BINS = 2**11

# erfc(z) = t exp(-z^2 + sum of c_i t^i) with t = 1 / (1 + z / 2) for z >= 0, right to 1.2 10^-7 of itself: Press,
# Teukolsky, Vetterling and Flannery, Numerical Recipes in C (1992), section 6.2. `math.erfc` takes no arrays.
_ERFC = (
    -1.26551223,
    1.00002368,
    0.37409196,
    0.09678418,
    -0.18628806,
    0.27886807,
    -1.13520398,
    1.48851587,
    -0.82215223,
    0.17087277,
)


def upper_tails(variance: float, n: Floats) -> Floats:
    """Return Pr[Z >= n] for whole numbers n, in the shape of n."""
    sigma = math.sqrt(variance)
    if sigma <= _LARGEST_TABLED_SIGMA:
        table = _tail_table(variance)
        radius = table.size // 2
        return table[np.clip(n + radius, 0, table.size - 1).astype(np.int64)]
    return _erfc((n - 0.5) / (sigma * math.sqrt(2))) / 2


def _erfc(z: Floats) -> Floats:
    size = np.abs(z)
    t = 1 / (1 + size / 2)
    exponent = np.full_like(t, _ERFC[-1])
    for coefficient in _ERFC[-2::-1]:
        exponent = exponent * t + coefficient
    upper = t * np.exp(exponent - size * size)
    return np.asarray(np.where(z >= 0, upper, 2 - upper))


@lru_cache(maxsize=16)
def _tail_table(variance: float) -> Floats:
    """Return Pr[Z >= n] for n from -radius to radius."""
    radius = math.ceil(_REACH_IN_SIGMAS * math.sqrt(variance)) + 2
    weights = np.exp(-(np.arange(-radius, radius + 1, dtype=np.float64) ** 2) / (2 * variance))
    sums = np.cumsum(weights[::-1])[::-1]
    return np.asarray(sums / sums[0])


@dataclass(frozen=True, eq=False)
class Bins:
    """Disjoint ranges of whole numbers from `low` to `high` with their probabilities."""

    low: Floats
    high: Floats
    mass: Floats


@lru_cache(maxsize=256)
def bins_of(variance: float, at_least: int | None) -> Bins:
    """Return the law of Z given that Z >= at_least, or of Z."""
    sigma = math.sqrt(variance)
    reach = math.ceil(sigma * math.sqrt(2 * _LOG_NEGLIGIBLE)) + 1
    start = -reach if at_least is None else max(at_least, -reach)
    # From a > 0 on, the mass falls by exp(-(2 a j + j^2) / 2v) at a + j.
    end = reach if start <= 0 else start + _length(variance, start)
    stride = max(1, (end - start) // _MOST_POINTS)
    low = np.arange(start, end + 1, stride, dtype=np.float64)
    high = low + (stride - 1)
    middle = (low + high) / 2
    least = max(start, 0)
    mass = np.exp((least - middle) * (least + middle) / (2 * variance))
    return _joined(Bins(low, high, mass / mass.sum()))


def _length(variance: float, start: int) -> int:
    """Return j with 2 a j + j^2 = 2 v times the logarithm that is negligible."""
    return math.ceil(math.sqrt(start**2 + 2 * variance * _LOG_NEGLIGIBLE) - start) + 1


def _joined(bins: Bins) -> Bins:
    size = -(-bins.mass.size // _MOST_BINS)
    starts = np.arange(0, bins.mass.size, size)
    ends = np.minimum(starts + size, bins.mass.size) - 1
    return Bins(bins.low[starts], bins.high[ends], np.add.reduceat(bins.mass, starts))


def pair_upper_tail(
    sum_variance: float, count_variance: float, k: int, at_least: int | None, n: int
) -> float:
    """Return Pr[Z_b + k Z_n >= n] given Z_n >= at_least, in doubt a larger number."""
    bins = bins_of(count_variance, at_least)
    worse = bins.high if k > 0 else bins.low
    return float(bins.mass @ upper_tails(sum_variance, n - k * worse))


@lru_cache(maxsize=1024)
def least_rarely_reached(
    sum_variance: float, count_variance: float, k: int, at_least: int | None, level: float
) -> int:
    """Return the smallest n with Pr[Z_b + k Z_n >= n] <= level, given Z_n >= at_least."""

    def is_rare(n: int) -> bool:
        return pair_upper_tail(sum_variance, count_variance, k, at_least, n) <= level

    centre = 0 if at_least is None else k * max(at_least, 0)
    step = 1
    while not is_rare(centre + step):
        step *= 2
    low, high = centre - step, centre + step
    while is_rare(low):
        low -= step
        step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_rare(middle) else (middle, high)
    return high


def largest_rarely_undercut(
    sum_variance: float, count_variance: float, k: int, at_least: int | None, level: float
) -> int:
    """Return the largest n with Pr[Z_b + k Z_n <= n] <= level, given Z_n >= at_least."""
    # The law of Z_b is symmetric, so the noise with k and -k are each other's negatives.
    return -least_rarely_reached(sum_variance, count_variance, -k, at_least, level)
