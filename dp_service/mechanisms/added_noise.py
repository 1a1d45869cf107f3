"""How far a sum of independent noisy counts may be off: half widths from the law of the sum of their noise.

All draws have one law, so the sum of m of them has its m-th power of convolution. It is added up by a fast Fourier
transform in float64, whose error has a Euclidean norm below 10^-13: relative to that of the law, which is at most 1, it
is about m times the logarithm of the length in units of 2 * 10^-16. So a tail of n values is off by less than sqrt(n)
times that, and it is taken to be so much larger than it was found. Where that is not small beside alpha, or where
values are too many, each draw is kept to alpha / m: with all of them so is their sum. Both are true, and neither
follows from what was released, so the narrower one is taken.

Post-processing: nothing here touches true counts.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.intervals import gaussian_half_width, noise_half_width

_REACH_IN_SIGMAS = 12
# e^-50 is what a tail leaves out, far below the error of a value.
_REACH_IN_SCALES = 50
_MOST_VALUES = 2**21
_ERROR = 1e-13


@lru_cache(maxsize=1024)
def added_laplace_width(inverse_scale: Fraction, draws: int, alpha: Fraction) -> int:
    """Return an integer w with Pr[|Z_1 + .. + Z_m| > w] <= alpha, of m draws with discrete Laplace noise.

    Raises:
        ValueError: Unless alpha lies strictly between 0 and 1 and the scale can be drawn.
    """
    apart = draws * noise_half_width(inverse_scale, alpha / draws)
    reach = math.ceil(_REACH_IN_SCALES / inverse_scale)
    if draws == 1 or not _is_small(reach, draws):
        return apart
    distances = np.abs(np.arange(-reach, reach + 1, dtype=np.float64))
    return min(apart, _half_width(np.exp(-float(inverse_scale) * distances), draws, float(alpha), apart))


@lru_cache(maxsize=1024)
def added_gaussian_width(variance: Fraction, draws: int, alpha: Fraction) -> int:
    """Return an integer w with Pr[|Z_1 + .. + Z_m| > w] <= alpha, of m draws with discrete Gaussian noise.

    Raises:
        ValueError: Unless `variance` is positive and alpha lies strictly between 0 and 1.
    """
    apart = draws * gaussian_half_width(variance, alpha / draws)
    reach = math.ceil(_REACH_IN_SIGMAS * math.sqrt(variance)) + 1
    if draws == 1 or not _is_small(reach, draws):
        return apart
    distances = np.arange(-reach, reach + 1, dtype=np.float64)
    masses = np.exp(-(distances**2) / (2 * float(variance)))
    return min(apart, _half_width(masses, draws, float(alpha), apart))


def _is_small(reach: int, draws: int) -> bool:
    return draws * (2 * reach + 1) <= _MOST_VALUES


def _half_width(masses: NDArray[np.float64], draws: int, alpha: float, otherwise: int) -> int:
    """Return the smallest w whose tails are at most alpha, in doubt a larger one; `otherwise`: none is known."""
    size = draws * (masses.size - 1) + 1
    padded = 1 << (size - 1).bit_length()
    law = np.fft.irfft(np.fft.rfft(masses / masses.sum(), padded) ** draws, padded)[:size]
    # The law is symmetric: of tails from the centre on, twice that of w + 1 is missed.
    upper = np.cumsum(law[size // 2 :][::-1])[::-1]
    missed = 2 * (upper + _ERROR * math.sqrt(size))
    fitting = np.flatnonzero(missed <= alpha)
    return int(fitting[0]) - 1 if fitting.size and fitting[0] > 0 else otherwise
