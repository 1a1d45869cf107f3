"""Interval arithmetic: numbers that are known to lie between two bounds.

A thin layer over mpmath's interval context. Every operation rounds outwards, so a comparison that holds
between two intervals holds between the real numbers inside them. Contexts are cached by precision and their
precision is never changed afterwards, so nothing is shared between callers but constants.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

from mpmath.ctx_iv import MPIntervalContext
from mpmath.libmp import from_man_exp, mpf_ln, round_floor

# mpmath carries no types: an interval and the context that makes it are opaque here.
Interval = Any
IntervalContext = Any

Result = TypeVar("Result")

_FIRST_PRECISION_BITS = 192
# A logarithm of what is drawn or weighed here is below 2^16.
_LOG_GUARD_BITS = 16


class UncertainError(ArithmeticError):
    """An interval is too wide to say what was asked of it."""


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
    """Return whether every number in `left` is certainly below every number in `right`."""
    # The ends are compared and not the intervals: on intervals that overlap, releases of mpmath
    # disagree about whether a comparison gives None or raises.
    return bool(left.b < right.a)


def log_bounds(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Return integers that enclose 2^bits ln(numerator / denominator), for positive integers, and lie close to it.

    It is what `IntervalContext.log` computes, without an interval and with one logarithm in place of two: that takes a
    twentieth of the time. The logarithm is below 2^16 here, so that of `bits` + 16 significant bits no unit of 2^-bits
    is lost in it; cutting the quotient off loses less, and cutting the result off one unit. One more on each side is
    left for mpmath, whose last bit may be wrong.
    """
    precision = bits + _LOG_GUARD_BITS
    shift = max(0, precision + 1 + denominator.bit_length() - numerator.bit_length())
    quotient = from_man_exp((numerator << shift) // denominator, -shift)
    sign, mantissa, exponent, _ = mpf_ln(quotient, precision, round_floor)
    value = -int(mantissa) if sign else int(mantissa)
    shift = int(exponent) + bits
    # Shifted to the right, an integer is rounded down.
    value = value << shift if shift >= 0 else value >> -shift
    return value - 1, value + 4


def scaled_bounds(value: Interval, bits: int) -> tuple[int, int]:
    """Return integers that enclose 2^bits times the non-negative number in an interval."""
    scaled = value * 2**bits
    return int(scaled.a), int(scaled.b) + 1


def geometric_bounds(first: tuple[int, int], ratio: tuple[int, int], bits: int) -> Iterator[tuple[int, int]]:
    """Yield bounds, scaled by 2^bits as the arguments are, of first * ratio^n for n = 0, 1, ... without end.

    This is interval arithmetic with integers; it is a hundred times faster than raising to powers.
    """
    low, high = first
    while True:
        yield low, high
        low, high = low * ratio[0] >> bits, (high * ratio[1] >> bits) + 1


def certain_floor(bounds: tuple[int, int], bits: int) -> int:
    """Return the common floor of two bounds divided by 2^bits.

    Raises:
        UncertainError: If their floors differ.
    """
    low, high = bounds[0] >> bits, bounds[1] >> bits
    if low != high:
        raise UncertainError
    return low


def with_enough_precision(evaluate: Callable[[int], Result]) -> Result:
    """Call `evaluate` with a number of bits of precision, doubled for as long as it raises UncertainError.

    It ends when the floors asked for are those of irrational numbers; a rational one could loop for ever.
    """
    precision_bits = _FIRST_PRECISION_BITS
    while True:
        try:
            return evaluate(precision_bits)
        except UncertainError:
            precision_bits *= 2
