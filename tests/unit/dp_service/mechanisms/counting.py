"""Histograms of one size and many shapes, and streams that count the random words that are read of them."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from dp_service.noise import KeyedStream
from dp_service.noise.stream import SubStream

ROWS = 40
RANKS = np.arange(ROWS)

SHAPES: dict[str, NDArray[np.int64]] = {
    "all zero": np.zeros(ROWS, dtype=np.int64),
    "flat": np.full(ROWS, 5000),
    "one large": np.where(RANKS == 7, 10**6, 1),
    "one is there": np.where(RANKS == 7, 10**6, 0),
    "tied": RANKS // 5 * 300,
    "Zipf": 10**7 // (RANKS + 1),
    "ascending": RANKS * 1000,
    "near 2^53": 2**53 - RANKS,
}


class CountingSubStream(SubStream):
    """Writes down how many words are read, in order and one by one."""

    def __init__(self, sub_key: bytes, read: Counter[str], name: str) -> None:
        super().__init__(sub_key)
        self._read = read
        self._name = name

    def words(self, count: int) -> NDArray[np.uint64]:
        """Count and pass on."""
        self._read[self._name] += count
        return super().words(count)

    def words_at(self, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Count and pass on."""
        self._read[f"{self._name}, singly"] += positions.size
        return super().words_at(positions)


class CountingStream(KeyedStream):
    """A keyed stream that counts the words read of each of its sub-streams."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed.to_bytes(32, "big"))
        self.read: Counter[str] = Counter()

    def substream(self, *labels: str) -> SubStream:
        """Return the same sub-stream, watched."""
        return CountingSubStream(self.sub_key(*labels), self.read, "/".join(labels))
