"""The work of a release depends on nothing that is not known before or shown afterwards.

Time itself is measured by `python -m research.bench.timing`; here is counted what a release draws and how many random
words it reads.
"""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.mechanisms import (
    CountNoise,
    Currency,
    Histogram,
    KnownGumb,
    KnownLap,
    Mechanism,
    UnkGumb,
    UnkLap,
)
from dp_service.noise import KeyedNoise, KeyedStream, LogWeights
from tests.support.some import some

from .counting import ROWS, SHAPES, CountingStream

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))
SEEDS = 20
KNOWN: list[Mechanism] = [
    KnownLap(CURRENCY, 2, 1),
    KnownGumb(CURRENCY, 5, 1),
    KnownGumb(CURRENCY, 5, 1, with_counts=False),
    KnownGumb(CURRENCY, 5, 1, count_noise=CountNoise.GAUSSIAN),
]
UNKNOWN: list[Mechanism] = [
    UnkLap(CURRENCY, 2, ROWS - 1, 1),
    UnkGumb(CURRENCY, 1, ROWS - 1, 1),
    UnkGumb(CURRENCY, 5, ROWS - 1, 1),
    UnkGumb(CURRENCY, ROWS - 1, ROWS - 1, 1),
    UnkGumb(CURRENCY, 5, ROWS - 1, 1, with_counts=False),
    UnkGumb(CURRENCY, 5, ROWS - 1, 1, count_noise=CountNoise.GAUSSIAN),
]


def words_read(mechanism: Mechanism, counts: NDArray[np.int64], seed: int) -> Counter[str]:
    """Return how many words of each sub-stream a release reads."""
    stream = CountingStream(seed)
    mechanism.run(Histogram.from_element_order(counts), KeyedNoise(stream))
    return stream.read


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [*KNOWN, *UNKNOWN], ids=str)
def test_all_histograms_of_one_size_read_as_many_words(mechanism: Mechanism) -> None:
    """Of every sub-stream, for every shape and 20 seeds; keys in doubt would show by chance once in 10^8 runs."""
    for seed in range(SEEDS):
        reads = [words_read(mechanism, counts, seed) for counts in SHAPES.values()]
        assert all(read == reads[0] for read in reads)
        assert sum(reads[0].values()) >= ROWS


class RecordingNoise(KeyedNoise):
    """Writes down what it is asked for: how many of what, and under which label."""

    def __init__(self, seed: int) -> None:
        super().__init__(KeyedStream(seed.to_bytes(32, "big")))
        self.asked: list[tuple[object, ...]] = []

    def discrete_laplace(self, inverse_scale: Fraction, size: int, label: str) -> NDArray[np.int64]:
        """Record and draw."""
        self.asked.append(("Laplace", inverse_scale, size, label))
        return super().discrete_laplace(inverse_scale, size, label)

    def discrete_gaussian(self, variance: Fraction, size: int, label: str) -> NDArray[np.int64]:
        """Record and draw."""
        self.asked.append(("Gaussian", variance, size, label))
        return super().discrete_gaussian(variance, size, label)

    def gumbel_order(self, weights: LogWeights, count: int, label: str) -> NDArray[np.int64]:
        """Record and draw."""
        self.asked.append(("Gumbel", weights.unit, len(weights), count, label))
        return super().gumbel_order(weights, count, label)

    def random_order(self, size: int, label: str) -> NDArray[np.int64]:
        """Record and draw."""
        self.asked.append(("order", size, label))
        return super().random_order(size, label)


@pytest.mark.parametrize("mechanism", [*KNOWN, *UNKNOWN], ids=str)
def test_all_histograms_of_one_size_are_asked_the_same_of_noise(mechanism: Mechanism) -> None:
    """The same laws, sizes, lengths of orders and labels in the same sequence, for every shape."""
    asked = []
    for counts in SHAPES.values():
        noise = RecordingNoise(0)
        mechanism.run(Histogram.from_element_order(counts), noise)
        asked.append(noise.asked)
    assert all(each == asked[0] for each in some(asked))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", UNKNOWN, ids=str)
def test_missing_rows_read_as_many_words_as_those_that_are_there(mechanism: Mechanism) -> None:
    """How many elements of an unknown domain exist is no secret of the mechanism's, but not time's to tell either."""
    for seed in range(SEEDS):
        reads = [words_read(mechanism, SHAPES["Zipf"][:size], seed) for size in (0, 1, 6, ROWS - 1, ROWS)]
        assert all(read == reads[0] for read in reads)
