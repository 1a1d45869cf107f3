"""Uniform numbers, each an endless sequence of random bits of which samplers read as many as they need.

Every sampler of this package is a function of such numbers: it reads the first word of each and goes on
to further words only where those do not decide yet. So a draw is defined by the number alone; how many bits
were read, in which order and with what precision cannot change it.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.interval_arithmetic import Interval, IntervalContext
from dp_service.noise.stream import WORD_BITS, KeyedStream, SubStream

BLOCK = 2**14
"""How many numbers are processed together: arrays of this length stay in a processor's cache."""

DRAWS_AT_A_TIME = 2**17
"""How many draws are made together where a draw needs arrays besides its result, so that these stay small."""


class UniformBits(Protocol):
    """Independent uniform numbers in [0, 1], each an endless sequence of 64-bit words, most significant first."""

    def __len__(self) -> int:
        """How many numbers there are."""
        ...

    def leading_blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """Yield the first word of every number in order, in blocks: where a block begins, and its words."""
        ...

    def words_at(self, level: int, indices: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return word `level` (0 is the most significant) of the numbers `indices`; shape as `indices`."""
        ...


class KeyedUniforms:
    """The uniform numbers of a label: word j of number i is word i of a sub-stream for level j.

    The sub-stream is named by the label itself for the first words and by the label, "word" and j for the
    others. What a word is depends on its level and index alone. With `first`, these are `size` numbers of the
    label from that one on: index 0 is number `first`.
    """

    def __init__(self, stream: KeyedStream, label: tuple[str, ...], size: int, first: int = 0) -> None:
        self._stream = stream
        self._label = label
        self._size = size
        self._first = first
        self._levels: dict[int, SubStream] = {}

    def __len__(self) -> int:
        return self._size

    def leading_blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """Yield the first words; see `UniformBits`."""
        leading = self._level(0)
        leading.seek(self._first)
        for start in range(0, self._size, BLOCK):
            yield start, leading.words(min(BLOCK, self._size - start))

    def words_at(self, level: int, indices: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return further words of some numbers; see `UniformBits`."""
        return self._level(level).words_at(self._first + indices)

    def _level(self, level: int) -> SubStream:
        if level not in self._levels:
            further = ("word", str(level)) if level else ()
            self._levels[level] = self._stream.substream(*self._label, *further)
        return self._levels[level]


def enclose_uniform(
    uniforms: UniformBits, index: int, words: int, context: IntervalContext, word_bits: int = WORD_BITS
) -> Interval:
    """Enclose number `index` given its first `words` words; `context` should keep at least their bits."""
    prefix = leading_bits(uniforms, index, words, word_bits)
    return context.mpf([prefix, prefix + 1]) / 2 ** (word_bits * words)


def leading_bits(uniforms: UniformBits, index: int, words: int, word_bits: int = WORD_BITS) -> int:
    """Return the first `words` words of number `index` as one integer."""
    position = np.array([index], dtype=np.int64)
    prefix = 0
    for level in range(words):
        prefix = prefix << word_bits | int(uniforms.words_at(level, position)[0])
    return prefix
