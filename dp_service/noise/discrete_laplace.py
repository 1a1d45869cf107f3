"""The exact discrete Laplace sampler.

Pr[Z = z] is proportional to q^|z| with q = exp(-inverse_scale). Z is the difference of two independent
geometric numbers G, Pr[G = n] = (1 - q) q^n. The binary digits of a geometric number are independent,
because q^n is a product over the digits of n: digit j is 1 with probability q^(2^j) / (1 + q^(2^j)) = 1 /
(1 + exp(2^j inverse_scale)). All digits from J on together form a geometric number with q^(2^J) in place of
q, which is drawn by counting successes of exact trials until one fails.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.bernoulli import BernoulliLaw, bernoulli
from dp_service.noise.stream import RandomWords

MIN_INVERSE_SCALE = Fraction(1, 10**9)
MAX_INVERSE_SCALE = Fraction(1000)

# Counts are at most 2^53 and 64-bit integers end at 2^63, so a sum of the two never wraps.
MAX_MAGNITUDE = 2**62

# Where digits end is only a matter of speed: here one trial in twenty goes on to a second.
_HIGH_PART_EXPONENT = 3


def discrete_laplace(stream: RandomWords, inverse_scale: Fraction, size: int) -> NDArray[np.int64]:
    """Draw `size` independent numbers with Pr[Z = z] proportional to exp(-inverse_scale |z|), exactly.

    Words are read digit by digit from the lowest, then trial by trial of the high part; each time for
    `size` minuends and then `size` subtrahends.

    Raises ValueError if `size` is negative or `inverse_scale` is not in [10^-9, 10^3], and OverflowError in
    place of a number beyond 2^62, whose probability is below exp(-10^9).
    """
    if size < 0:
        raise ValueError(f"size must not be negative, got {size}")
    check_inverse_scale(inverse_scale)
    geometric = _geometric(stream, inverse_scale, 2 * size)
    return geometric[:size] - geometric[size:]


def check_inverse_scale(inverse_scale: Fraction) -> None:
    """Raise ValueError unless the sampler can draw at this inverse scale."""
    if not MIN_INVERSE_SCALE <= inverse_scale <= MAX_INVERSE_SCALE:
        raise ValueError(
            f"inverse_scale must be from {MIN_INVERSE_SCALE} to {MAX_INVERSE_SCALE}, got {inverse_scale}"
        )


def low_digits(inverse_scale: Fraction) -> int:
    """Return J, the number of binary digits that are drawn one by one."""
    digits = 0
    while inverse_scale * 2**digits < _HIGH_PART_EXPONENT:
        digits += 1
    return digits


def _geometric(stream: RandomWords, inverse_scale: Fraction, size: int) -> NDArray[np.int64]:
    values = np.zeros(size, dtype=np.int64)
    digits = low_digits(inverse_scale)
    for digit in range(digits):
        ones = bernoulli(stream, BernoulliLaw.LOGISTIC, inverse_scale * 2**digit, size)
        values += ones.astype(np.int64) << digit
    return values + _high_part(stream, inverse_scale * 2**digits, 2**digits, size)


def _high_part(stream: RandomWords, exponent: Fraction, step: int, size: int) -> NDArray[np.int64]:
    values = np.zeros(size, dtype=np.int64)
    going_on = np.arange(size)
    successes = 0
    while going_on.size:
        values[going_on] = successes * step
        going_on = going_on[bernoulli(stream, BernoulliLaw.EXPONENTIAL, exponent, going_on.size)]
        successes += 1
        if (successes + 1) * step > MAX_MAGNITUDE:
            raise OverflowError("a discrete Laplace draw exceeded 2^62")
    return values
