"""Whether a weight with discrete Gaussian noise exceeds a cut, decided exactly from one uniform number.

Weight h with noise Z exceeds the cut c if Z >= c + 1 - h, so with probability p = Pr[Z >= c + 1 - h]. That is decided
by whether the element's uniform number U is below p: the same as drawing Z by inverting its tail from U, without
writing Z down. Several cuts are decided by one number, so all answers agree with one and the same Z.

A table of p at steps of sigma / 1024 encloses the first word of p. The first word of U lies outside for all but about
one element in a thousand; the others are settled in interval arithmetic with 128 bits of U. The table is made of
floats with room for error: the platform's erfc is within 2^-40 of the true value (libraries claim 2^-50), and the
discrete tail lies between integrals::

    Q(n / sigma) (1 - 2^-60) <= Pr[Z >= n] <= Q((n - 1) / sigma), Q(x) = erfc(x / sqrt 2) / 2, n >= 1, sigma >= 2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.distribution import gaussian_tail
from dp_service.noise.interval_arithmetic import certainly_below, interval_context
from dp_service.noise.stream import WORD_BITS
from dp_service.noise.uniforms import UniformBits, enclose_uniform

_STEPS_PER_SIGMA = 1024
_FLOAT_ERROR = 2.0**-40
# Beyond 10 sigma a tail is below 2^-64.
_TABLE_SIGMAS = 10
_EXACT_WORDS = 2
_LARGEST_WORD = (1 << WORD_BITS) - 1
# Up to the second, tails are known to 70 digits; from the third on, to 40 bits and more.
_LEAST_VARIANCE, _LARGEST_SMALL_VARIANCE, _LEAST_LARGE_VARIANCE = 4, 1024, 2**40
_CONTEXT = interval_context(256)

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


class UndecidedError(ArithmeticError):
    """128 bits and what is known of the tail did not settle one decision.

    The probability that a publication fails so is below 10^-6: at most 1 / variance for each element near its cut.
    """


class NoisyComparison:
    """Decides how many cuts a weight with discrete Gaussian noise of parameter `variance` exceeds.

    Noise for weights is far above.

    Raises:
        ValueError: `variance` is neither from 4 to 1024 nor at least 2^40. Below, the table's bounds do not hold, and
            in between the tail is not known well enough.
    """

    def __init__(self, variance: Fraction) -> None:
        self._variance = variance
        self._table = _tail_table(variance)

    def levels(self, weights: Integers, cuts: Sequence[int], uniforms: UniformBits) -> Integers:
        """Return of each weight how many of the ascending `cuts` it exceeds with its noise; shape (n,).

        Raises:
            ValueError: The shapes differ.
            UndecidedError: 128 bits did not settle a decision, which practically never happens.
        """
        if len(uniforms) != weights.size:
            raise ValueError(f"expected a uniform number for each weight, got {len(uniforms)}")
        levels = np.zeros(weights.size, dtype=np.int64)
        for start, words in uniforms.leading_blocks():
            block = slice(start, start + words.size)
            for cut in cuts:
                levels[block] += self._reached(cut + 1 - weights[block], words, uniforms, start)
        return levels

    def _reached(
        self, needed: Integers, words: Words, uniforms: UniformBits, start: int
    ) -> NDArray[np.bool_]:
        """Return for each number whether it is below Pr[Z >= needed]."""
        cell = self._table.cells(needed)
        reached = words < self._table.low[cell]
        for index in np.flatnonzero(~reached & (words <= self._table.high[cell])).tolist():
            reached[index] = self._decide(int(needed[index]), uniforms, start + index)
        return reached

    def _decide(self, needed: int, uniforms: UniformBits, index: int) -> bool:
        tail = gaussian_tail(self._variance, needed)
        uniform = enclose_uniform(uniforms, index, _EXACT_WORDS, _CONTEXT)
        if certainly_below(uniform, tail):
            return True
        if certainly_below(tail, uniform):
            return False
        raise UndecidedError("a release could not be decided with 128 random bits; run the publication again")


@dataclass(frozen=True, eq=False)
class _TailTable:
    """Bounds of the first word of Pr[Z >= n], cell by cell of n.

    Cell 0 lies below the first knot, cell i from knot i - 1 up to knot i, the last one from the last knot on. A first
    word below low[i] is certainly below every p of the cell, and one above high[i] certainly above.
    """

    step: int
    first: int
    low: Words
    high: Words

    def cells(self, needed: Integers) -> Integers:
        return np.clip(needed // self.step - self.first + 1, 0, self.low.size - 1)


@lru_cache(maxsize=16)
def _tail_table(variance: Fraction) -> _TailTable:
    if not (_LEAST_VARIANCE <= variance <= _LARGEST_SMALL_VARIANCE or variance >= _LEAST_LARGE_VARIANCE):
        raise ValueError(f"variance must be from 4 to 1024 or at least 2^40, got {float(variance):g}")
    sigma = math.sqrt(variance)
    step = max(1, int(sigma) // _STEPS_PER_SIGMA)
    reach = int(_TABLE_SIGMAS * sigma) // step + 1
    knots = range(-reach * step, (reach + 1) * step, step)
    low = [_word(upper_tail(knot / sigma) * (1 - _FLOAT_ERROR)) for knot in knots]
    high = [_word(upper_tail((knot - 1) / sigma) * (1 + _FLOAT_ERROR)) for knot in knots]
    ends = (0, _LARGEST_WORD)
    return _TailTable(
        step, -reach, np.array([*low, ends[0]], dtype=np.uint64), np.array([ends[1], *high], dtype=np.uint64)
    )


def upper_tail(x: float) -> float:
    """Return Q(x), the tail of the standard normal law, as the platform computes it."""
    return math.erfc(x / math.sqrt(2)) / 2


def _word(probability: float) -> int:
    """Return floor(2^64 p), at most the largest word; scaling by a power of two is exact."""
    return min(int(math.ldexp(probability, WORD_BITS)), _LARGEST_WORD)
