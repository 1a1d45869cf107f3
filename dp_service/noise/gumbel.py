"""The exact Gumbel order: ranking by noisy keys, which is selection by the exponential mechanism.

Entry i gets the key ln w_i + G_i with independent standard Gumbel noise. The order of the largest keys is
Plackett-Luce: the first entry is i with probability proportional to w_i, the next is drawn in the same way
from the rest, and so on (Durfee and Rogers 2019, lemma 4.2). This module returns only the order, never a
key. Entries that are not eligible come after all that are, in the order of their keys: whatever bits they
draw, none of them comes before the last eligible one.

Each U_i is an endless sequence of random bits of which the first 64 are usually enough. Floats with error
bounds (`gumbel_keys`) settle the order wherever neighbouring keys are further apart than their errors; the others
are evaluated in interval arithmetic with more and more bits until they separate. So the result is a
function of the weights and the random bits alone, the same on every platform.

Timing must not reveal the weights. Keys that are too close for floats are rare, but how rare depends on the
weights; so the `s` closest pairs of neighbours are always evaluated exactly, needed or not, and the weights
affect the work only if more than `s` gaps are in doubt. Let g bound the gap that is (in natural units
of the key). Given all earlier arrivals, the keys of rank i and i + 1 lie within g of each other with
probability at most g X_i, where X_i, the time of arrival i times the weight left, is at most a sum of i unit
exponentials. The product over a set i_1 < i_2 < ... has an expectation of at most i_1 (i_2 + 1) (i_3 + 2)...
Summed over all sets of s + 1 of the ranks 1..k, the probability that more than s gaps are in doubt is at most
(g (k (k + 1) / 2 + s k))^(s + 1) / (s + 1)!, whatever the weights. `spare_pairs` makes it at most 2^-40. (Among
the entries that are not eligible arrivals begin anew, so that i only counts these; between the two kinds no
gap is ever in doubt.)
"""

import math
from functools import cmp_to_key, lru_cache

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.gumbel_keys import FloatKeys, float_keys
from dp_service.noise.interval_arithmetic import log_bounds
from dp_service.noise.sorting import ascending_order, inverse
from dp_service.noise.stream import WORD_BITS
from dp_service.noise.uniforms import BLOCK, UniformBits, leading_bits
from dp_service.noise.weights import KeyBounds, LogWeights

TIMING_PROBABILITY = 2.0**-40
"""With at most this probability does the work of an order depend on the weights beyond their number."""

DOUBTFUL_GAP = 2.0**-38
"""Bounds the gap of two keys that floats cannot order, for |G| <= 64 and odds within e^+-50."""

_FIRST_EXACT_WORDS = 2
# Keys are below 2^96, so this leaves enough for them and for the rounding of a dozen operations.
_GUARD_BITS = 128


def gumbel_order(uniforms: UniformBits, weights: LogWeights, count: int) -> NDArray[np.int64]:
    """Return the entries with the `count` largest keys, in descending order of key, shape (count,).

    Needs memory for a block of entries and for a few times `count`, beyond its arguments.

    Raises:
        ValueError: Unless 0 <= count <= len(weights).
    """
    if not 0 <= count <= len(weights):
        raise ValueError(f"count must be from 0 to the number of weights, {len(weights)}, got {count}")
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    # One more than requested, so that the gap below the last one is checked like every other.
    contenders = _contenders(uniforms, weights, min(count + 1, len(weights)))
    ranked = contenders[_descending(contenders)]
    order = ranked.index
    exact = _ExactKeys(uniforms, weights)
    for start, end in _groups_in_doubt(ranked, count):
        order[start:end] = exact.sorted_descending(order[start:end])
    return order[:count]


@lru_cache(maxsize=1024)
def spare_pairs(count: int) -> int:
    """Return how many pairs of neighbours are evaluated exactly in any case, for an order of `count`."""
    pairs = 0
    while _log_chance_of_more(count, pairs) > math.log(TIMING_PROBABILITY):
        pairs += 1
    return pairs


def _log_chance_of_more(count: int, pairs: int) -> float:
    ranks = count * (count + 1) / 2 + pairs * count
    return (pairs + 1) * math.log(DOUBTFUL_GAP * ranks) - math.lgamma(pairs + 2)


def _contenders(uniforms: UniformBits, weights: LogWeights, count: int) -> FloatKeys:
    """Return every entry that may be among the `count` largest; at least `count`."""
    waiting: list[FloatKeys] = []
    for start, words in uniforms.leading_blocks():
        waiting.append(float_keys(weights, uniforms, start, words))
        if sum(map(len, waiting)) > 2 * count + 4 * BLOCK:
            waiting = [_largest(_joined(waiting), count)]
    return _largest(_joined(waiting), count)


def _joined(blocks: list[FloatKeys]) -> FloatKeys:
    if len(blocks) == 1:
        return blocks[0]
    return FloatKeys(
        np.concatenate([block.index for block in blocks]),
        np.concatenate([block.whole for block in blocks]),
        np.concatenate([block.fraction for block in blocks]),
        max(block.error for block in blocks),
    )


def _largest(keys: FloatKeys, count: int) -> FloatKeys:
    if len(keys) <= count:
        return keys
    rank = len(keys) - count
    # Distances are measured from about where the cut will be, for there they have to be precise.
    distance = (keys.whole - np.partition(keys.whole, rank)[rank]) + keys.fraction
    cut = np.partition(distance, rank)[rank]
    # Each of the two may be off by the error; the third absorbs the rounding of distances.
    return keys[np.flatnonzero(distance >= cut - 3 * keys.error)]


def _descending(keys: FloatKeys) -> NDArray[np.int64]:
    """Return positions by descending whole part, and by descending fraction where that is equal."""
    by_fraction = np.argsort(keys.fraction)[::-1]
    return ascending_order(~keys.whole, inverse(by_fraction))


def _groups_in_doubt(ranked: FloatKeys, count: int) -> list[tuple[int, int]]:
    """Return where groups of keys begin and end whose order has to be found exactly, among `count` ranks."""
    steps = ranked.whole[:-1] - ranked.whole[1:]
    gaps = steps + (ranked.fraction[:-1] - ranked.fraction[1:])
    # Twice the largest error separates any two intervals; the third absorbs the rounding of the gap itself.
    in_doubt = gaps <= 3 * ranked.error
    spare = min(spare_pairs(count), gaps.size)
    if spare:
        in_doubt[np.argpartition(gaps, spare - 1)[:spare]] = True
    edges = np.flatnonzero(np.diff(in_doubt, prepend=False, append=False))
    return [(start, end + 1) for start, end in edges.reshape(-1, 2).tolist() if start < count]


class _ExactKeys:
    """Comparison of keys in interval arithmetic, with as many random bits as it takes."""

    def __init__(self, uniforms: UniformBits, weights: LogWeights) -> None:
        self._uniforms = uniforms
        self._weights = weights
        self._known: dict[tuple[int, int], KeyBounds] = {}

    def sorted_descending(self, entries: NDArray[np.int64]) -> list[int]:
        return sorted(entries.tolist(), key=cmp_to_key(self._compare), reverse=True)

    def _compare(self, left: int, right: int) -> int:
        words = _FIRST_EXACT_WORDS
        while True:
            (left_low, left_high), (right_low, right_high) = self._key(left, words), self._key(right, words)
            # Only now, so that the work does not depend on which entries are eligible.
            if self._weights.is_eligible(left) != self._weights.is_eligible(right):
                return 1 if self._weights.is_eligible(left) else -1
            if right_high < left_low:
                return 1
            if left_high < right_low:
                return -1
            words *= 2

    def _key(self, index: int, words: int) -> KeyBounds:
        if (index, words) not in self._known:
            self._known[index, words] = self._evaluate(index, words)
        return self._known[index, words]

    def _evaluate(self, index: int, words: int) -> KeyBounds:
        uniform_bits = WORD_BITS * words
        bits = uniform_bits + _GUARD_BITS
        one = 2**uniform_bits
        # 1 - U lies from the first to the second, in steps of 2^-uniform_bits.
        above = one - leading_bits(self._uniforms, index, words)
        below = above - 1
        least, most = log_bounds(above, one, bits)
        # While U may still be 0 or 1, E = -ln(1 - U) may be 0 or without a bound, which is right. One logarithm is
        # enough, as ln(above / below) is at most 1 / below.
        exponential = max(0, -most), -least - (-(1 << bits) // below) if below else None
        return self._weights.key_bounds(index, exponential, bits)
