"""The masses of the noise laws in interval arithmetic: closed forms that tails and draws are compared with."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import mpmath

from dp_service.noise.distribution import exact_bound, exponential
from dp_service.noise.interval_arithmetic import Interval


def laplace_mass(inverse_scale: Fraction, z: int) -> Interval:
    """Enclose Pr[Z = z] = (1 - q) / (1 + q) * q^|z|, q = exp(-inverse_scale)."""
    q = exponential(-inverse_scale)
    return (1 - q) / (1 + q) * exponential(-inverse_scale * abs(z))


def laplace_difference_mass(inverse_scale: Fraction, n: int) -> Interval:
    """Enclose Pr[Z1 - Z2 = n] = ((1 - q) / (1 + q))^2 q^|n| (|n| + (1 + q^2) / (1 - q^2))."""
    q = exponential(-inverse_scale)
    front = ((1 - q) / (1 + q)) ** 2
    return front * exponential(-inverse_scale * abs(n)) * (abs(n) + (1 + q**2) / (1 - q**2))


def gaussian_mass(variance: Fraction, z: int) -> Interval:
    """Return Pr[Z = z] = exp(-z^2 / 2v) / (sum over all integers n of exp(-n^2 / 2v))."""
    return exponential(-z * z / (2 * variance)) / _gaussian_total(variance)


@cache
def _gaussian_total(variance: Fraction) -> Interval:
    """Return the sum term by term to 2^-256, which needs about 19 sigma on each side."""
    total, n = exact_bound(Fraction(1)), 1
    while (term := exponential(-n * n / (2 * variance))) > mpmath.mpf(2) ** -256:
        total, n = total + 2 * term, n + 1
    return total
