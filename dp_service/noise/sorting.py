"""Sorting whose timing does not reveal the numbers: all keys that are compared differ, even if values are equal."""

import numpy as np
from numpy.typing import NDArray

_HALF = np.uint64(32)
_LOWER_HALF = np.uint64(2**32 - 1)
_SIGN = np.uint64(2**63)


def ascending_order(values: NDArray[np.int64], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return positions by ascending value, and by ascending rank where values are equal; shape (n,).

    `ranks` holds each of 0..n-1 once, n < 2^32. If the rows stand in a random order, the answers to the
    comparisons have the law of those for random integers, whatever the values are.
    """
    keys = values.view(np.uint64) ^ _SIGN
    # First by the lower halves of the keys and the rank, then by the upper halves and the order so far.
    by_lower = np.sort(keys << _HALF | ranks.view(np.uint64)) & _LOWER_HALF
    positions = np.take(inverse(ranks), by_lower.view(np.int64))
    by_upper = np.sort(keys & ~_LOWER_HALF | inverse(positions).view(np.uint64)) & _LOWER_HALF
    return positions[by_upper.view(np.int64)]


def inverse(order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each of 0..n-1 in an order of them."""
    found = np.empty(order.size, dtype=np.int64)
    found[order] = np.arange(order.size)
    return found
