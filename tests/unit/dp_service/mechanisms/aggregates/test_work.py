"""The work of a release depends on how many rows come in, and on nothing else of the data."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_service.mechanisms import Currency, Histogram
from dp_service.mechanisms.aggregates import BoundMoments, ColumnSums, SumShare, intervals, noise_pairs
from dp_service.mechanisms.bounded import ContributionBound
from dp_service.noise import KeyedNoise
from dp_service.values.bounds import Clamp
from tests.support.examples import examples
from tests.unit.dp_service.mechanisms.counting import ROWS, SHAPES, CountingStream

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


@pytest.mark.slow
@pytest.mark.parametrize("min_count", [None, 1])
@pytest.mark.parametrize("epsilon", ["0.15", "0.01", "0.0003"])
def test_the_work_of_an_average_depends_neither_on_its_noise_nor_on_how_much_there_is(
    monkeypatch: pytest.MonkeyPatch, min_count: int | None, epsilon: str
) -> None:
    """However many values the noise has: bins are few, and so are the tails that a search needs."""
    currency = Currency(Fraction(epsilon), Fraction("1e-10"))
    shares = (SumShare(Clamp(0, 3000), HALF),)
    asked = BoundMoments(currency, Fraction(1), ContributionBound(2), min_count, HALF, shares)
    sizes: list[int] = []
    real = noise_pairs.upper_tails

    def counted(variance: float, n: noise_pairs.Floats) -> noise_pairs.Floats:
        sizes.append(n.size)
        return real(variance, n)

    for module in (noise_pairs, intervals):
        monkeypatch.setattr(module, "upper_tails", counted)
    sigma = math.isqrt(math.floor(asked.count_variance))
    far = (asked.threshold or 6 * sigma) + 1
    counts = [far + 40 * sigma, far + 3 * sigma, far + 1]
    for sums in ([0, 0, 0], [10**7 * sigma, -(10**5) * sigma, 3]):
        release = asked.released(np.arange(3), np.array(counts), [(np.array(sums), None)])
        for shown in (intervals.shown_by_count(release), intervals.shown_by_sum(release, 0, most=2)):
            sizes.clear()
            found = intervals.average_intervals(release, 0, shown, alpha=Fraction(1, 20))
            assert None not in found[:1]
            assert len(sizes) <= 128 * len(found)
            assert max(sizes) <= 2**11


@settings(max_examples=examples(300), deadline=None)
@given(
    mean=st.integers(-(10**6), 10**6),
    deviation=st.floats(0.1, 10**5),
    off=st.floats(-20, 20),
    step=st.integers(1, 10**6),
    level=st.floats(1e-9, 0.4),
)
def test_a_search_finds_the_first_rare_number_wherever_it_begins(
    mean: int, deviation: float, off: float, step: int, level: float
) -> None:
    """Of a tail that has nothing of a normal law in its middle, too."""

    def tail(n: int) -> float:
        return 0.5 * math.erfc((n - mean) / deviation) if (n - mean) % 7 else tail(n + 1)

    near, within = mean + round(off * deviation), (-(10**9), 10**9)
    found = noise_pairs.first_rare(tail, level, near=near, step=step, within=within)
    assert tail(found) <= level < tail(found - 1)


@given(near=st.integers(-(10**6), 10**6), step=st.integers(1, 10**6), rare=st.booleans())
def test_a_search_without_a_first_rare_number_ends_within_its_range(near: int, step: int, rare: bool) -> None:
    """A tail whose level floats never reach leaves the end of the range, which makes the interval a wide one."""
    found = noise_pairs.first_rare(lambda _: 0.0 if rare else 1.0, 1e-300, near=near, step=step)
    assert found == near + (-64 if rare else 64) * step
    within = (-7, 3)
    found = noise_pairs.first_rare(
        lambda _: 0.0 if rare else 1.0, 1e-300, near=near, step=step, within=within
    )
    assert found == within[not rare]
