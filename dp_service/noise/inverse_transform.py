"""Exact draws from a law on integers by inverting its distribution function.

A uniform number U becomes the value z with F(z - 1) <= U < F(z), where F(z) = Pr[Z <= z]; so Pr[Z = z] is
F(z) - F(z - 1), exactly. A table holds the boundary words floor(2^64 F(z)). U begins with a word w. If w is
no boundary word, it lies on the same side of every F(z) as U does, and the table alone gives z. If it is one
(probability 2^-64 for each boundary), U is compared with F in interval arithmetic and with as many of its
bits as it takes. Both tails are among these cases: beyond the table all boundary words are 0 or 2^64 - 1.

Every F(z) strictly between 0 and 1 must be irrational, so that its floor is well defined and U never equals
it. The laws here are rational functions of exp(x) for a rational x, which is transcendental.
"""

from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.interval_arithmetic import Interval, IntervalContext, certainly_below, interval_context
from dp_service.noise.stream import WORD_BITS
from dp_service.noise.uniforms import UniformBits, enclose_uniform

_GUIDE_BITS = 14
_GUIDE_PAYS_FROM = 1024
_FIRST_EXACT_WORDS = 4
_GUARD_BITS = 64
_UNDECIDED = np.iinfo(np.int64).min


class InvertibleLaw(Protocol):
    """A law on integers, given by its distribution function F."""

    @property
    def lowest(self) -> int:
        """The smallest value, or one that all smaller values are counted as."""
        ...

    @property
    def highest(self) -> int:
        """The largest value, or one that all larger values are counted as."""
        ...

    @property
    def is_cut_off(self) -> bool:
        """Whether the law goes on beyond its ends, so that drawing an end is an overflow."""
        ...

    def distribution(self, z: int, context: IntervalContext) -> Interval:
        """Enclose F(z) for lowest <= z < highest."""
        ...

    def boundary_words(self, word_bits: int) -> tuple[int, list[int]]:
        """Return some z0 and floor(2^word_bits F(z)) for z = z0, z0 + 1, ..., exactly.

        If F has values before z0, the list begins with 0; if it has values after the end but for F(highest),
        the list ends with 2^word_bits - 1.
        """
        ...


class InverseTransformSampler:
    """A law prepared for drawing. `word_bits` is 64 except where a test enumerates all words."""

    def __init__(self, law: InvertibleLaw, word_bits: int = WORD_BITS) -> None:
        self._law = law
        self._word_bits = word_bits
        self._first, boundaries = law.boundary_words(word_bits)
        self._boundaries = np.array(boundaries, dtype=np.uint64)

    def draw(self, uniforms: UniformBits) -> NDArray[np.int64]:
        """Return the value of each uniform number, shape (len(uniforms),).

        Raises:
            OverflowError: If a value lies beyond an end of a law that was cut off.
        """
        values = np.empty(len(uniforms), dtype=np.int64)
        for start, words in uniforms.leading_blocks():
            block = values[start : start + words.size]
            if len(uniforms) < _GUIDE_PAYS_FROM:
                block[:], undecided = self._searched(words)
            else:
                block[:], undecided = self._guided(words)
            for index in undecided.tolist():
                block[index] = self._decide(uniforms, start + index)
        return values

    def _searched(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the values that the words alone determine, and which words determine none."""
        below = np.searchsorted(self._boundaries, words)
        reached = self._boundaries[np.minimum(below, self._boundaries.size - 1)]
        return self._first + below, np.flatnonzero(words == reached)

    def _guided(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Do the same as `_searched`, with one look-up for words in a stretch without boundaries."""
        shift = np.uint64(self._word_bits - self._guide_bits)
        values = self._guide.take((words >> shift).astype(np.int64))
        searched = np.flatnonzero(values == _UNDECIDED)
        values[searched], undecided = self._searched(words[searched])
        return values, searched[undecided]

    @property
    def _guide_bits(self) -> int:
        return min(_GUIDE_BITS, self._word_bits)

    @cached_property
    def _guide(self) -> NDArray[np.int64]:
        """The value of all words with the same leading bits, where no boundary word has these bits."""
        shift = np.uint64(self._word_bits - self._guide_bits)
        leading = (self._boundaries >> shift).astype(np.int64)
        inside = np.bincount(leading, minlength=2**self._guide_bits)
        before = np.cumsum(inside) - inside
        return np.where(inside == 0, self._first + before, _UNDECIDED)

    def _decide(self, uniforms: UniformBits, index: int) -> int:
        """Return the value of one number by bisection over the whole law, with as many words as it takes."""
        words = _FIRST_EXACT_WORDS
        while (value := self._bisected(uniforms, index, words)) is None:
            words *= 2
        if self._law.is_cut_off and value in (self._law.lowest, self._law.highest):
            raise OverflowError("a draw exceeded the integers that it has to fit")
        return value

    def _bisected(self, uniforms: UniformBits, index: int, words: int) -> int | None:
        context = interval_context(self._word_bits * words + _GUARD_BITS)
        uniform = enclose_uniform(uniforms, index, words, context, self._word_bits)
        low, high = self._law.lowest, self._law.highest
        while low < high:
            middle = (low + high) // 2
            boundary = self._law.distribution(middle, context)
            if certainly_below(uniform, boundary):
                high = middle
            elif certainly_below(boundary, uniform):
                low = middle + 1
            else:
                return None
        return low
