"""Tails of the discrete Gaussian law in float64, on a logarithmic scale, for intervals.

Intervals are computed from released values alone, so floats may be used; nothing private is decided here. What decides
is enclosed exactly in `dp_service.noise.distribution`.
"""

from __future__ import annotations

import math
from functools import lru_cache

# Up to this sigma^2 a tail is summed: it takes 30 terms. Beyond, the Euler-Maclaurin formula is right to 1e-9, unless
# the tail begins so far out that it falls like a geometric series, of which 60 terms are enough.
_LARGEST_SUMMED_VARIANCE = 9.0
_GEOMETRIC_FROM = 0.6
_NEGLIGIBLE = 1e-17
# B_2k / (2k)! for k = 1 .. 6.
_BERNOULLI_RATIOS = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000)
# From here on exp(x^2 / 2) would overflow, and the asymptotic series of Mills' ratio is right to 1e-11.
_FAR = 25.0


def log_tail(variance: float, n: int) -> float:
    """Return ln Pr[Z >= n], to about 1e-9."""
    if n < 1:
        return math.log1p(-math.exp(log_tail(variance, 1 - n)))
    return -n * n / (2 * variance) + math.log(_tail_over_mass(variance, n)) - _log_total(variance)


def _tail_over_mass(variance: float, n: int) -> float:
    """Return the sum of exp(-m^2 / 2v) over m >= n, divided by its first term, for n >= 1."""
    if variance <= _LARGEST_SUMMED_VARIANCE or n > _GEOMETRIC_FROM * variance:
        return _summed(variance, n)
    sigma = math.sqrt(variance)
    total = sigma * _mills_ratio(n / sigma) + 0.5
    before, now = 0.0, 1.0
    # g_j = He_j(n / sigma) / sigma^j; only the odd ones are needed.
    for j, ratio in enumerate(_BERNOULLI_RATIOS):
        before, now = now, (n * now - 2 * j * before) / variance
        total += ratio * now
        before, now = now, (n * now - (2 * j + 1) * before) / variance
    return total


def _summed(variance: float, n: int) -> float:
    total, j, term = 0.0, 0, 1.0
    while term > _NEGLIGIBLE * total:
        total += term
        j += 1
        term = math.exp(-j * (2 * n + j) / (2 * variance))
    return total


def _mills_ratio(x: float) -> float:
    """Return the tail of the standard normal law from x >= 0 on, divided by its density at x."""
    if x < _FAR:
        return math.sqrt(math.pi / 2) * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))
    inverse = 1 / (x * x)
    return (1 - inverse * (1 - inverse * (3 - inverse * (15 - 105 * inverse)))) / x


@lru_cache(maxsize=1024)
def _log_total(variance: float) -> float:
    """Return the logarithm of the sum of exp(-n^2 / 2v) over all integers."""
    if variance > _LARGEST_SUMMED_VARIANCE:
        # By Poisson's summation formula the rest is exp(-2 pi^2 v) of it.
        return math.log(2 * math.pi * variance) / 2
    return math.log1p(2 * _summed(variance, 1) * math.exp(-1 / (2 * variance)))
