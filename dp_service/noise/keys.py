"""Gumbel keys in float64 together with a bound on their error.

The key of entry i is K_i = ln w_i + G_i, where G = -ln(-ln U) and U is uniform. Only the first 64 bits of U
are looked at here, so K_i is known up to an interval. Keys are kept as unevaluated sums of two floats:
counts of 10^15 would otherwise swallow the differences that decide the order.

The one assumption about the platform: its logarithms of float64 are within `_LOG_ULPS` units in the last
place (the libraries claim 1 to 4). A larger error bound costs nothing but a few more exact evaluations.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.weights import LogWeights

Floats = NDArray[np.float64]

_LOG_ULPS = 16
_ULP = 2.0**-52
_EXTREME_WORD = np.uint64(2**11)
_HALF = np.uint64(2**63)
_VELTKAMP = 2.0**27 + 1


@dataclass(frozen=True, eq=False)
class FloatKeys:
    """Approximate keys: the true key i lies within `error[i]` of high[i] + low[i]; |low| <= ulp(high)."""

    high: Floats
    low: Floats
    error: Floats


def float_keys(weights: LogWeights, words: NDArray[np.uint64]) -> FloatKeys:
    """Enclose the keys whose uniform numbers begin with the given words, shape (n,)."""
    product, linear_rest = _linear_part(weights)
    odds, odds_error = _log_odds(weights)
    gumbel, gumbel_error = standard_gumbel(words)
    first, rest = _two_sum(product, gumbel)
    small = linear_rest + odds + rest
    rounding = 8 * _ULP * (np.abs(linear_rest) + np.abs(odds) + np.abs(rest))
    high, low = _two_sum(first, small)
    return FloatKeys(high, low, gumbel_error + odds_error + rounding)


def standard_gumbel(words: NDArray[np.uint64]) -> tuple[Floats, Floats]:
    """Return G = -ln(-ln U) and its error bound for every U in [w / 2^64, (w + 1) / 2^64].

    Words within 2^11 of either end get an infinite bound: there the interval of U is too wide for
    first-order error analysis, and more bits are needed anyway.
    """
    below_one = ~words + np.uint64(1)
    upper = words >= _HALF
    # The distance to the nearer end of [0, 1] is what keeps its relative precision in a float.
    distance = np.where(upper, below_one, words)
    fraction = np.maximum(distance, np.uint64(1)).astype(np.float64) * 2.0**-64
    exponential = -np.where(upper, np.log1p(-fraction), np.log(fraction))
    # d ln(-ln U) / d ln(distance) is at most 1.45 in absolute value on both branches; 2 leaves room for the
    # second order.
    relative = 2 * (2.0**-64 / fraction + _ULP) + _LOG_ULPS * _ULP
    gumbel = -np.log(exponential)
    error = relative + _LOG_ULPS * _ULP * (1 + np.abs(gumbel))
    return gumbel, np.where(distance < _EXTREME_WORD, np.inf, error)


def _linear_part(weights: LogWeights) -> tuple[Floats, Floats]:
    """Return unit * (multiple - largest multiple) as product + rest, relatively exact to about 2^-100."""
    if not len(weights):
        return np.zeros(0), np.zeros(0)
    # A common shift does not change the order; the subtraction of integers is exact.
    steps = weights.multiples - weights.multiples.max()
    steps_high = steps.astype(np.float64)
    steps_low = (steps - steps_high.astype(np.int64)).astype(np.float64)
    unit_high = float(weights.unit)
    unit_low = float(weights.unit - Fraction(unit_high))
    product = steps_high * unit_high
    rest = _product_error(steps_high, unit_high, product) + steps_high * unit_low + steps_low * unit_high
    return product, rest


def _log_odds(weights: LogWeights) -> tuple[Floats, Floats]:
    total = np.zeros(len(weights))
    error = np.zeros(len(weights))
    for odds, sign in ((weights.numerators, 1.0), (weights.denominators, -1.0)):
        if odds is not None:
            logarithm = np.log(odds.astype(np.float64))
            total += sign * logarithm
            error += (_LOG_ULPS + 2) * _ULP * (1 + logarithm)
    return total, error


def _two_sum(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Return the rounded sum and its rounding error, exactly (Knuth)."""
    total = left + right
    shadow = total - left
    return total, (left - (total - shadow)) + (right - shadow)


def _product_error(left: Floats, right: float, product: Floats) -> Floats:
    """Return left * right - product without error, for the rounded product (Dekker, Veltkamp)."""
    left_high = _VELTKAMP * left - (_VELTKAMP * left - left)
    right_high = _VELTKAMP * right - (_VELTKAMP * right - right)
    left_low, right_low = left - left_high, right - right_high
    partial = ((left_high * right_high - product) + left_high * right_low) + left_low * right_high
    return partial + left_low * right_low
