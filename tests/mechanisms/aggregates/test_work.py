"""The work of a release depends on how many rows come in, and on nothing else of the data."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms import Currency, Histogram
from dp_service.mechanisms.aggregates import BoundMoments, ColumnSums, SumShare
from dp_service.mechanisms.bounded import ContributionBound
from dp_service.noise import KeyedNoise
from dp_service.values.bounds import Clamp
from tests.mechanisms.counting import ROWS, SHAPES, CountingStream

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))
HALF = Fraction(1, 2)


@pytest.mark.parametrize("min_count", [None, 5])
def test_all_groups_read_as_many_words(min_count: int | None) -> None:
    """Of every sub-stream, for every shape of counts and of sums."""
    asked = BoundMoments(
        CURRENCY, Fraction(20), ContributionBound(8), min_count, HALF, (SumShare(Clamp(0, 9), HALF),)
    )
    for seed in range(5):
        reads = []
        for counts in SHAPES.values():
            stream = CountingStream(seed)
            sums = ColumnSums((counts - 1000) * np.int64(3))
            asked.run(Histogram.from_element_order(counts), (sums,), KeyedNoise(stream))
            reads.append(stream.read)
        assert all(read == reads[0] for read in reads)
        assert sum(reads[0].values()) >= 2 * ROWS
