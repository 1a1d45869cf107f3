"""Gumbel keys in float64 together with a bound on their error.

The key of entry i is ln w_i + G_i with ln w_i = unit * multiple_i + ln odds_i and G_i = -ln(-ln(1 - U_i)). It
is kept in steps of `unit`, as multiple_i + (ln odds_i + G_i) / unit: the multiple is exact in an integer,
however large, and what is added to it is split into an integer and a fraction. So counts of 10^15 do not
swallow the differences that decide the order.

Entries that are not eligible get keys in the same way, moved below every other possible key: so their work is
the same, and they come last.

The one assumption about the platform: its logarithms of float64 are within `_LOG_ULPS` units in the last
place (the libraries claim 1 to 4). A larger error bound costs nothing but a few more exact evaluations.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.uniforms import UniformBits
from dp_service.noise.weights import LogWeights

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Integers = NDArray[np.int64]

_LOG_ULPS = 16
_ULP = 2.0**-52

# U below 2^-14 and U from 1 - 2^-6 on are read to 128 bits, as the distance to the nearer end of [0, 1].
_NEAR_ZERO = np.uint64(2**50)
_NEAR_ONE = np.uint64(2**64 - 2**58)
_BETWEEN = _NEAR_ONE - _NEAR_ZERO
# Nearer still (probability 2^-115), 128 bits are not enough for first-order error analysis.
_TOO_NEAR = 2.0**-116

# A multiple is within 2^54 and what is added to it, (ln odds + G) / unit, within 2^51; so two such steps and the
# largest finite error never reach from an eligible key to one that is not.
_INELIGIBLE_SHIFT = 2**60


@dataclass(frozen=True, eq=False)
class FloatKeys:
    """Approximate keys: key `index[i]` divided by the unit lies within `error` of whole[i] + fraction[i].

    |fraction| <= 1/2, so comparing pairs (whole, fraction) compares the sums. The arrays have shape (n,).

    A fraction is 1/4 or more only if `error` is at least 2^-52: so what is lost where a sum of a whole number
    and a fraction is rounded to a float is less than `error`, close to where two keys are compared.
    """

    index: Integers
    whole: Integers
    fraction: Floats
    error: float

    def __len__(self) -> int:
        return self.index.size

    def __getitem__(self, chosen: Integers) -> "FloatKeys":
        return FloatKeys(self.index[chosen], self.whole[chosen], self.fraction[chosen], self.error)


def float_keys(weights: LogWeights, uniforms: UniformBits, start: int, words: Words) -> FloatKeys:
    """Enclose the keys of entries start, start + 1, ..., whose uniform numbers begin with `words`."""
    stop = start + words.size
    rest, error = standard_gumbel(uniforms, start, words)
    size = _largest_magnitude(rest)
    if weights.divisors is not None:
        logarithms = np.log(weights.divisors[start:stop].astype(np.float64))
        rest -= logarithms
        size += _largest_magnitude(logarithms)
        error += _error_of_logarithm(_largest_magnitude(logarithms))
    if weights.last_odds != 1 and stop == len(weights):
        for term, sign in zip(weights.last_odds.as_integer_ratio(), (1, -1), strict=True):
            logarithm = math.log(float(term))
            rest[-1] += sign * logarithm
            size += logarithm
            error += _error_of_logarithm(logarithm)
    unit = float(weights.unit)
    rest /= unit
    # To the nearest and not down: the difference is exact, and a small negative rest keeps its digits.
    nearest = np.rint(rest)
    whole = nearest.astype(np.int64)
    whole += weights.multiples[start:stop]
    if weights.eligible is not None:
        whole -= _INELIGIBLE_SHIFT * ~weights.eligible[start:stop]
    rest -= nearest
    return FloatKeys(np.arange(start, stop), whole, rest, (error + 4 * _ULP * size) / unit)


def standard_gumbel(uniforms: UniformBits, start: int, words: Words) -> tuple[Floats, float]:
    """Return G = -ln(-ln(1 - U)) for the numbers from `start` on, and a bound on the error of all of them.

    The bound covers whatever bits follow those that were read: 64, or 128 close to 0 and 1.

    Let E = -ln(1 - U). An error of dU makes a relative error of dU / ((1 - U) E) in E and the same absolute
    error in G. Conversion to a float gives dU <= 2^-53 U + 2^-64. For 2^-14 <= U <= 1/2 that is at most 10
    units of 2^-52, because E >= U; for 1/2 <= U < 1 - 2^-6 it is at most 8, because (1 - U) E is at least
    4.15 / 64. Closer to the ends the distance is known to 2^-128 and a few roundings, which is less. 16 is
    taken for all, and `_LOG_ULPS` for each of two logarithms.
    """
    uniform = words.astype(np.float64)
    uniform *= -(2.0**-64)
    # Words below _NEAR_ZERO wrap around to large ones.
    near = np.flatnonzero(words - _NEAR_ZERO >= _BETWEEN)
    # A stand-in without infinite logarithms; these entries are computed separately.
    uniform[near] = -0.5
    negative_exponential = np.log1p(uniform)
    is_enough = True
    if near.size:
        negative_exponential[near], is_enough = _near_the_ends(uniforms, start + near, words[near])
    gumbel = -np.log(-negative_exponential)
    error = _ULP * (16 + _LOG_ULPS + _LOG_ULPS * (1 + _largest_magnitude(gumbel)))
    return gumbel, error if is_enough else np.inf


def _near_the_ends(uniforms: UniformBits, indices: Integers, words: Words) -> tuple[Floats, bool]:
    """Return ln(1 - U) for numbers near 0 or 1, and whether 128 bits are enough for all of them."""
    upper = words >= _NEAR_ONE
    further = uniforms.words_at(1, indices)
    # Complements are one step of 2^-128 short of 1 - U.
    leading, following = np.where(upper, ~words, words), np.where(upper, ~further, further)
    distance = leading.astype(np.float64) * 2.0**-64 + following.astype(np.float64) * 2.0**-128
    is_enough = bool(distance.min() >= _TOO_NEAR)
    distance = np.maximum(distance, _TOO_NEAR)
    return np.where(upper, np.log(distance), np.log1p(-distance)), is_enough


def _error_of_logarithm(logarithm: float) -> float:
    """Bound what is lost in the logarithm of a rounded integer, and in adding it to something."""
    return (_LOG_ULPS + 2) * _ULP * (1 + logarithm)


def _largest_magnitude(values: Floats) -> float:
    return max(-float(values.min()), float(values.max()))
