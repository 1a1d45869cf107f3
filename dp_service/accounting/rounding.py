"""Real numbers as intervals that certainly contain them, and rounding from these to floats in a stated direction."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias

from mpmath.ctx_mp import MPContext

from dp_service.noise.interval_arithmetic import Interval, enclose, interval_context

Real: TypeAlias = Any
"""A number of mpmath without a bound on its error, for searches whose result is checked by an interval."""

INTERVALS = interval_context(192)
"""Arithmetic to 57 digits in which every operation rounds its lower end down and its upper end up."""

# A separate context: any code can change the precision of mpmath's global one at any time.
REALS: Any = MPContext()
REALS.dps = 60


def interval(number: Fraction | int) -> Interval:
    """Return the narrowest interval that holds an exact number."""
    return enclose(INTERVALS, number)


def real(number: Fraction | int) -> Real:
    """Return an exact number rounded to sixty digits."""
    return REALS.mpf(number.numerator) / number.denominator


def rounded_up(bound: Interval) -> float:
    """Return the smallest float that is not below the interval."""
    upper = REALS.mpf(bound.b)
    nearest = float(upper)
    return math.nextafter(nearest, math.inf) if REALS.mpf(nearest) < upper else nearest


def fraction_up(number: Fraction) -> float:
    """Return the smallest float that is not below an exact number."""
    return rounded_up(interval(number))
