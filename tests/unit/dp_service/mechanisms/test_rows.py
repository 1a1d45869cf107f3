"""The rows that mechanisms compute on."""

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
from dp_service.mechanisms.rows import Rows
from dp_service.noise import KeyedNoise, KeyedStream, NoiseSource
from tests.support.some import some

from .enumeration import Law, RowOrder, output_law
from .neighbours import Release

CURRENCY = Currency(Fraction(1), Fraction(1, 20))
LARGEST, SMALLEST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def keyed(seed: int = 0) -> KeyedNoise:
    """Return a fresh source of noise."""
    return KeyedNoise(KeyedStream(seed.to_bytes(32, "big")))


def shuffled(counts: list[int], size: int, seed: int = 0) -> Rows:
    """Return the rows of some counts."""
    return Rows.shuffled(Histogram.from_element_order(counts), size, keyed(seed))


def test_every_element_is_there_once_with_its_count_and_missing_ones_with_zero() -> None:
    """Whatever the order, counts and elements belong together."""
    for seed in range(20):
        rows = shuffled([5, 0, 7], 6, seed)
        assert dict(enumerate([5, 0, 7, 0, 0, 0])) == dict(
            zip(rows.elements.tolist(), rows.counts.tolist(), strict=True)
        )


def test_the_order_is_a_random_one() -> None:
    """Over 6000 seeds each of three rows stands in each place a third of the time, within 5 standard errors."""
    places = np.array([shuffled([1, 2, 3], 3, seed).elements for seed in range(6000)])
    for place in range(3):
        assert np.abs(np.bincount(places[:, place], minlength=3) - 2000).max() < 5 * 37


VALUES = {
    "different": [3, 1, 4, 15, 9, 2, 6],
    "all equal": [4] * 7,
    "ties": [1, 0, 1, 0, 0, 2, 2],
    "ascending": list(range(7)),
    "extreme": [LARGEST, SMALLEST, 0, -1, 1, SMALLEST, LARGEST],
    "around 2^32": [2**32, 2**32 - 1, -(2**32), -(2**32) - 1, 2**33, 2**32 + 1, 0],
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_values_are_ordered_and_ties_broken_by_the_element(values: list[int]) -> None:
    """In any order of the rows, the result is that of sorting pairs of value and element."""
    for seed in range(30):
        rows = shuffled([0] * 7, 7, seed)
        by_position = np.array(values, dtype=np.int64)[rows.elements]
        expected = sorted(range(7), key=lambda element: (-values[element], element))
        assert expected == rows.elements[rows.descending(by_position)].tolist()


@pytest.mark.parametrize("spread", [1, 50, 2**31, 2**62])
def test_many_values_are_ordered_like_few(spread: int) -> None:
    """Five thousand of them, from all equal to all different, against a library's sort."""
    values = np.random.default_rng(spread).integers(-spread, spread, 5000)
    rows = shuffled([0] * 5000, 5000)
    expected = np.lexsort((rows.elements, -values))
    assert expected.tolist() == rows.descending(values).tolist()


@pytest.mark.parametrize("size", [0, 1, 2])
def test_hardly_any_rows_are_rows(size: int) -> None:
    """None at all, one, or two."""
    rows = shuffled([0] * size, size)
    assert list(range(size)) == rows.elements[rows.descending(np.zeros(size, dtype=np.int64))].tolist()


def law_by(mechanism: Mechanism, counts: list[int], row_order: RowOrder) -> Law[Release]:
    """Return the exact law of what a mechanism releases if its rows stand in this order."""
    histogram = Histogram.from_element_order(counts)

    def run(noise: NoiseSource) -> Release:
        found = mechanism.run(histogram, noise)
        noisy = None if found.noisy_counts is None else tuple(found.noisy_counts.tolist())
        return Release(tuple(found.indices.tolist()), noisy, found.ended_in_bottom, found.bottom)

    return output_law(run, radius=3, row_order=row_order)


def reversed_rows(size: int) -> NDArray[np.int64]:
    """Return the rows from last to first."""
    return np.arange(size)[::-1].copy()


def rotated_rows(size: int) -> NDArray[np.int64]:
    """Return the rows from the second on, and then the first."""
    return np.roll(np.arange(size), -1)


@pytest.mark.slow
@pytest.mark.parametrize("row_order", [reversed_rows, rotated_rows])
@pytest.mark.parametrize("counts", [[2, 0, 1], [1, 1, 1], [3, 2, 0]])
@pytest.mark.parametrize(
    "mechanism",
    [
        KnownLap(CURRENCY, 1, 1),
        KnownGumb(CURRENCY, 2, 1),
        KnownGumb(CURRENCY, 1, 1, count_noise=CountNoise.GAUSSIAN),
        UnkLap(CURRENCY, 1, 2, 1),
        UnkLap(CURRENCY, 1, 3, 1),
        UnkGumb(CURRENCY, 2, 2, 1, with_counts=False),
        UnkGumb(CURRENCY, 2, 3, 1, with_counts=False),
        UnkGumb(CURRENCY, 1, 3, 1),
    ],
    ids=str,
)
def test_what_comes_out_does_not_depend_on_the_order_of_the_rows(
    mechanism: Mechanism, counts: list[int], row_order: RowOrder
) -> None:
    """Given any order, the exact law of the release is the same: the order is for time and for nothing else."""
    first, second = law_by(mechanism, counts, np.arange), law_by(mechanism, counts, row_order)
    assert first.mass.keys() == second.mass.keys()
    for outcome, probability in some(first.mass.items()):
        assert second.mass[outcome] == pytest.approx(probability, rel=1e-9)
