"""The work of a release depends on how many rows come in, and on nothing else of the data."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms import Currency, Histogram
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound, Shift
from dp_service.noise import KeyedNoise
from tests.unit.dp_service.mechanisms.counting import ROWS, SHAPES, CountingStream

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))
UNKNOWN = BoundGauss(CURRENCY, Fraction(20), ContributionBound(32), 5)
KNOWN = BoundGauss(CURRENCY, Fraction(20), ContributionBound(32), None)
SHIFT = Shift(CURRENCY, Fraction(20), ContributionBound(ROWS), ROWS)
RUNS: dict[str, Callable[[Histogram, KeyedNoise], object]] = {
    "unknown": UNKNOWN.run,
    "known": KNOWN.run,
    "shift": lambda histogram, noise: SHIFT.run(histogram, 10**6, noise),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_all_histograms_of_one_size_read_as_many_words(name: str) -> None:
    """Of every sub-stream, for every shape and 20 seeds."""
    for seed in range(20):
        reads = []
        for counts in SHAPES.values():
            stream = CountingStream(seed)
            RUNS[name](Histogram.from_element_order(counts), KeyedNoise(stream))
            reads.append(stream.read)
        assert all(read == reads[0] for read in reads)
        assert sum(reads[0].values()) >= ROWS


def test_what_is_below_min_count_is_never_shown() -> None:
    """However large its noise: rows that the query should have left out."""
    look = BoundGauss(Currency(Fraction("0.15"), Fraction(9, 10)), Fraction(1), ContributionBound(1), 5)
    below = Histogram.from_element_order(np.full(1000, 4))
    at = Histogram.from_element_order(np.full(1000, 5))
    shown = []
    for histogram in (below, at):
        stream = CountingStream(1)
        shown.append(len(look.run(histogram, KeyedNoise(stream)).indices))
    assert shown[0] == 0
    assert shown[1] > 0
