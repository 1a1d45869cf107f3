"""Interval arithmetic: numbers that are known to lie between two bounds.

A thin layer over mpmath's interval context. Every operation rounds outwards, so a comparison that holds
between two intervals holds between the real numbers inside them. Contexts are cached by precision and their
precision is never changed afterwards, so nothing is shared between callers but constants.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from mpmath.ctx_iv import MPIntervalContext

# mpmath carries no types: an interval and the context that makes it are opaque here.
Interval = Any
IntervalContext = Any

_FIRST_PRECISION_BITS = 256


@cache
def interval_context(precision_bits: int) -> IntervalContext:
    """Return the interval arithmetic that keeps `precision_bits` significant bits per bound."""
    context = MPIntervalContext()
    context.prec = precision_bits
    return context


def enclose(context: IntervalContext, value: Fraction | int) -> Interval:
    """Return an interval of `context` that contains a rational number."""
    return context.mpf(value.numerator) / context.mpf(value.denominator)


def certainly_below(left: Interval, right: Interval) -> bool:
    """Say whether every number in `left` is below every number in `right`; doubt is False."""
    # The ends are compared and not the intervals: on intervals that overlap, releases of mpmath
    # disagree about whether a comparison gives None or raises.
    return bool(left.b < right.a)


def scaled_floor(evaluate: Callable[[IntervalContext], Interval], scale_bits: int) -> int:
    """Return floor(x * 2^scale_bits) for a positive irrational x, exactly.

    `evaluate` gives an interval around x in the arithmetic it is handed. The precision is doubled until both
    bounds have the same floor, which happens for every irrational x; a rational x could loop for ever.
    """
    precision_bits = _FIRST_PRECISION_BITS + scale_bits
    while True:
        value = evaluate(interval_context(precision_bits)) * 2**scale_bits
        low = int(value.a)
        if low == int(value.b):
            return low
        precision_bits *= 2
