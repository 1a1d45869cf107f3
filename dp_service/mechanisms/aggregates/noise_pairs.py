"""Tails of s Z_b + k Z_n for independent discrete Gaussian Z_b and Z_n, also given that Z_n >= a.

This is the law of the error of sums and averages: B carries Z_b and N carries Z_n, and where a group is shown because
of its N, Z_n was selected. It is added up over Z_n, with the tails of Z_b in closed form or from a table. Where there
are too many values of Z_n, they are taken in at most 2,048 bins, each at its worse end, so that no tail is too small:
an interval grows by at most 1 % of the standard deviation of k Z_n.

Intervals are computed from released values alone, so floats may be used.

The work for one interval is bounded, whatever the noise is and whatever it came to: at most 2^15 values and 2,048 bins
of Z_n, and a search that needs about ten tails where halving alone may need eighty. It ends within a range that is
given: where floats never find a tail rare, at the end of that range, so that the interval is a wide one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Up to here tails come from a table. Beyond, the integral from n - 1/2 on is right to 2 10^-7 of a tail at 12 sigma.
_LARGEST_TABLED_SIGMA = 2000.0
_REACH_IN_SIGMAS = 12.0
# What lies beyond has a probability below 10^-20, also given Z_n >= a.
_LOG_NEGLIGIBLE = 46.0
# Beyond this many values of Z_n ranges of them are taken at their middles: then they are as wide as sigma / 1700, and
# their masses right to 10^-6 of themselves up to 8 sigma.
_MOST_POINTS = 2**15
_MOST_BINS = 2**11
# In so many steps of at least a standard deviation every tail falls below the smallest float.
_MOST_STEPS = 64
_NORMAL = NormalDist()

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
    return normal_tails((n - 0.5) / sigma)


def normal_tails(z: Floats) -> Floats:
    """Return the chance that a standard normal draw is at least z, right to 1.2 10^-7 of itself."""
    return _erfc(z / math.sqrt(2)) / 2


def _erfc(z: Floats) -> Floats:
    size = np.abs(z)
    t = 1 / (1 + size / 2)
    exponent = np.full_like(t, _ERFC[-1])
    for coefficient in _ERFC[-2::-1]:
        exponent *= t
        exponent += coefficient
    exponent -= size * size
    upper = t * np.exp(exponent)
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


@dataclass(frozen=True)
class NoisePair:
    """s Z_b + k Z_n.

    Attributes:
        sum_variance: The parameter of Z_b.
        count_variance: The parameter of Z_n.
        k: A whole number.
        scale: s, a positive whole number.
    """

    sum_variance: float
    count_variance: float
    k: int
    scale: int = 1

    def upper_tail(self, at_least: int | None, n: int) -> float:
        """Return Pr[s Z_b + k Z_n >= n] given Z_n >= at_least, in doubt a larger number."""
        bins = bins_of(self.count_variance, at_least)
        worse = bins.high if self.k > 0 else bins.low
        return float(bins.mass @ upper_tails(self.sum_variance, np.ceil((n - self.k * worse) / self.scale)))


@lru_cache(maxsize=1024)
def least_rarely_reached(noise: NoisePair, at_least: int | None, level: float) -> int:
    """Return the smallest n with Pr[s Z_b + k Z_n >= n] <= level, given Z_n >= at_least."""

    def tail(n: int) -> float:
        return noise.upper_tail(at_least, n)

    centre = 0 if at_least is None else noise.k * max(at_least, 0)
    variance = noise.scale**2 * noise.sum_variance + noise.k**2 * noise.count_variance
    return first_rare(tail, level, near=centre, step=math.ceil(math.sqrt(variance)))


def first_rare(
    tail: Callable[[int], float], level: float, *, near: int, step: int, within: tuple[int, int] | None = None
) -> int:
    """Return the smallest n with tail(n) <= level, for a tail that falls from 1 to 0.

    It is found wherever it is in the range, and soon if it is a few steps from `near` and the tail is about that of a
    normal law. Between an n that is not rare and one that is, the next is where the level would be if normal quantiles
    of the tail were on a straight line, and then one beside it.

    Args:
        tail: The tail.
        level: What it must not exceed.
        near: Where to begin.
        step: About a standard deviation.
        within: Both ends of the range. The first is returned if all are rare, the last if none is. None: 64 steps
            around `near`.

    >>> first_rare(lambda n: 2.0**-n if n > 0 else 1.0, 0.01, near=0, step=3)
    7
    >>> first_rare(lambda n: 1.0, 0.01, near=0, step=3)
    192
    """
    first, last = within or (near - _MOST_STEPS * step, near + _MOST_STEPS * step)
    low, high = max(min(near - step, last), first), min(max(near + step, first), last)
    width = step
    while (below := tail(low)) <= level:
        if low == first:
            return first
        low, high, width = max(low - width, first), low, 2 * width
    width = step
    while (beyond := tail(high)) > level:
        if high == last:
            return last
        low, below, high, width = high, beyond, min(high + width, last), 2 * width
    found = _Between(tail, level, low, high, _score(below), _score(beyond))
    while (size := found.high - found.low) > 1:
        aside = max(size // 64, 1)
        n = found.on_a_line()
        n += -aside if found.narrowed(n) else aside
        if found.low < n < found.high:
            found.narrowed(n)
        if (left := found.high - found.low) > max(size // 2, 1):
            found.narrowed(found.low + left // 2)
    return found.high


@dataclass
class _Between:
    """An n that is not rare, `low`, below one that is, `high`, with the normal quantiles of their tails."""

    tail: Callable[[int], float]
    level: float
    low: int
    high: int
    score_low: float
    score_high: float

    def on_a_line(self) -> int:
        """Return the n between them whose tail would be the level if these quantiles were on a straight line."""
        part = (self.score_low - _score(self.level)) / max(self.score_low - self.score_high, 1e-300)
        return min(max(self.low + round(part * (self.high - self.low)), self.low + 1), self.high - 1)

    def narrowed(self, n: int) -> bool:
        """Take an n between them in place of one of both, and return whether it is rare."""
        value = self.tail(n)
        if value <= self.level:
            self.high, self.score_high = n, _score(value)
        else:
            self.low, self.score_low = n, _score(value)
        return value <= self.level


def _score(probability: float) -> float:
    return _NORMAL.inv_cdf(min(max(probability, 1e-300), 1 - 1e-12))


def largest_rarely_undercut(noise: NoisePair, at_least: int | None, level: float) -> int:
    """Return the largest n with Pr[s Z_b + k Z_n <= n] <= level, given Z_n >= at_least."""
    # The law of Z_b is symmetric, so the noise with k and -k are each other's negatives.
    return -least_rarely_reached(replace(noise, k=-noise.k), at_least, level)
