"""Counts of a small known domain relative to their total: by which fraction, and where that helps.

Instead of counts x_i, b x_i - a n is released, with n the number of members that count in any element
(`dp_service.mechanisms.bounded.shift`). One member moves all of these together by W in square, where

    W = Delta (b - a)^2 + (d - Delta) a^2

for d elements, of which a member counts in at most Delta. At a given price the error of x_i is in proportion to
(sqrt(W) + a) / b; without the total it is in proportion to sqrt(Delta).

All of it follows from d and Delta, which are public. Denominators are powers of two, so that every count that is
computed from a release is exact as a binary or decimal fraction.
"""

from __future__ import annotations

import math
from functools import cache

DENOMINATORS = (2, 4, 8, 16)
LARGEST_DOMAIN = 1000
"""Domains with more elements are not small: no policy that bounds members tightly gains anything there."""

LARGEST_TAU = 256
"""Beyond it, tau n could exceed 64 bits."""

MOST_PER_BOUND = 4
"""With so many times Delta elements, what is left to gain is a few per cent."""


def helps(domain_size: int, typical: int, *, tau: int, of_events: bool) -> bool:
    """Return whether the error of counts is smaller if they are released relative to their total.

    Args:
        domain_size: d, the number of elements.
        typical: In how many of them a member counts at most, from 1 to d.
        tau: By how much a member changes a count.
        of_events: Whether events are counted. Then a / b is tau / 2, and members have to be unbounded in the domain.
    """
    if not 1 < domain_size <= min(LARGEST_DOMAIN, MOST_PER_BOUND * typical):
        return False
    if of_events:
        return typical == domain_size and tau <= LARGEST_TAU
    return relative_error(domain_size, typical, *factors(domain_size, typical)) < math.sqrt(typical)


@cache
def factors(domain_size: int, typical: int) -> tuple[int, int]:
    """Return a and b, 0 < a / b <= 1/2, with the smallest error; of equal ones the smallest b.

    >>> factors(10, 10)
    (1, 2)
    >>> factors(20, 10)
    (1, 4)
    """
    candidates = [(a, b) for b in DENOMINATORS for a in range(1, b // 2 + 1)]
    return min(candidates, key=lambda each: relative_error(domain_size, typical, *each))


def squared_distance(domain_size: int, typical: int, a: int, b: int) -> int:
    """Return W where distinct members are counted."""
    return typical * (b - a) ** 2 + (domain_size - typical) * a**2


def relative_error(domain_size: int, typical: int, a: int, b: int) -> float:
    """Return (sqrt(W) + a) / b, rounded so that a / b and 2 a / 2 b are equal."""
    return round((math.sqrt(squared_distance(domain_size, typical, a, b)) + a) / b, 12)
