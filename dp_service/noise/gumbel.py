"""The exact Gumbel order: ranking by noisy keys, which is selection by the exponential mechanism.

Entry i gets the key ln w_i + G_i with independent standard Gumbel noise. The order of the largest keys is
Plackett-Luce: the first entry is i with probability proportional to w_i, the next is drawn in the same way
from the rest, and so on (Durfee and Rogers 2019, lemma 4.2). Only the order leaves this module, never a
key.

Each U_i is an infinite sequence of random bits of which the first 64 are usually enough. Floats with error
bounds (`keys`) settle the order wherever neighbouring keys are further apart than their errors; the others
are evaluated in interval arithmetic with more and more bits until they separate. So the result is a
function of the weights and the random bits alone, the same on every platform.

How often are more than 64 bits needed? The keys of rank i and i + 1 lie within g of each other with
probability at most i g, whatever the weights, and the gap that is asked for is three errors, below 1.5e-13
unless a word is extreme. So exact evaluation happens with probability below about k^2 / 2 * 1.5e-13, which
is 2^-30 for the 100 largest.
"""

from functools import cmp_to_key
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.exact import Interval, certainly_below, interval_context
from dp_service.noise.keys import FloatKeys, float_keys
from dp_service.noise.stream import WORD_BITS
from dp_service.noise.weights import LogWeights

_FIRST_REFINEMENT_WORDS = 4
_GUARD_BITS = 192


class UniformBits(Protocol):
    """Independent uniform numbers in [0, 1], each an endless sequence of bits, one for each entry."""

    @property
    def leading_words(self) -> NDArray[np.uint64]:
        """The first 64 bits of each number, shape (n,)."""
        ...

    def prefix(self, index: int, words: int) -> int:
        """The first 64 * `words` bits of number `index` as an integer; its top word is the leading one."""
        ...


def gumbel_order(uniforms: UniformBits, weights: LogWeights, count: int) -> NDArray[np.int64]:
    """Return the entries with the `count` largest keys, in descending order of key, shape (count,).

    Raises ValueError unless 0 <= count <= len(weights).
    """
    if not 0 <= count <= len(weights):
        raise ValueError(f"count must be from 0 to the number of weights, {len(weights)}, got {count}")
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    keys = float_keys(weights, uniforms.leading_words)
    contenders = _contenders(keys, count)
    order = contenders[np.lexsort((-keys.low[contenders], -keys.high[contenders]))]
    starts = _group_starts(keys, order)
    exact = _ExactKeys(uniforms, weights)
    for start, end in pairwise([*starts.tolist(), order.size]):
        if start < count and end - start > 1:
            order[start:end] = exact.sorted_descending(order[start:end])
    return order[:count]


def _contenders(keys: FloatKeys, count: int) -> NDArray[np.int64]:
    """Return every entry that may be among the `count` largest, in ascending order of index."""
    slack = keys.error + 4 * np.spacing(np.abs(keys.high))
    lower = keys.high - slack
    cut = np.partition(lower, lower.size - count)[lower.size - count]
    return np.flatnonzero(keys.high + slack >= cut)


def _group_starts(keys: FloatKeys, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where, in a descending order, groups begin that are certainly apart from all before them."""
    high, low = keys.high[order], keys.low[order]
    gaps = (high[:-1] - high[1:]) + (low[:-1] - low[1:])
    # Twice the largest error separates any two intervals; the third absorbs the rounding of the gap itself.
    apart = gaps > 3 * keys.error[order].max()
    return np.concatenate(([0], np.flatnonzero(apart) + 1))


class _ExactKeys:
    """Comparison of keys in interval arithmetic, with as many random bits as it takes."""

    def __init__(self, uniforms: UniformBits, weights: LogWeights) -> None:
        self._uniforms = uniforms
        self._weights = weights
        self._known: dict[tuple[int, int], Interval] = {}

    def sorted_descending(self, entries: NDArray[np.int64]) -> list[int]:
        return sorted(entries.tolist(), key=cmp_to_key(self._compare), reverse=True)

    def _compare(self, left: int, right: int) -> int:
        words = _FIRST_REFINEMENT_WORDS
        while True:
            left_key, right_key = self._key(left, words), self._key(right, words)
            if certainly_below(right_key, left_key):
                return 1
            if certainly_below(left_key, right_key):
                return -1
            words *= 2

    def _key(self, index: int, words: int) -> Interval:
        if (index, words) not in self._known:
            self._known[index, words] = self._evaluate(index, words)
        return self._known[index, words]

    def _evaluate(self, index: int, words: int) -> Interval:
        bits = WORD_BITS * words
        context = interval_context(bits + _GUARD_BITS)
        prefix = self._uniforms.prefix(index, words)
        # While U may still be 0 or 1 the interval of its key is unbounded on that side, which is right.
        uniform = context.mpf([prefix, prefix + 1]) / 2**bits
        return self._weights.log_weight(index, context) - context.log(-context.log(uniform))
