"""Shares of the sum over all rows: the law of their noise, whichever rows are shown, and their ends."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms.aggregates.compared import Weighted
from dp_service.mechanisms.aggregates.intervals import ShownRows
from dp_service.mechanisms.aggregates.released import ReleasedColumn, ReleasedMoments
from dp_service.mechanisms.aggregates.shares import Shares, tail
from dp_service.values.bounds import Clamp
from tests.unit.dp_service.mechanisms.bounded.laws import masses

VARIANCE = Fraction(100)
COUNTS = (400, 150, 90, 20, 5, 0)
SUMS = (900, 200, 60, 30, 4, 0)
PART = (100, 80, 5, 10, 0, 0)
CLAMPS = (Clamp(0, 4), Clamp(0, 1))


def drawn(rng: np.random.Generator, scale: float = 1.0, *, variance: Fraction = VARIANCE) -> ReleasedMoments:
    """Return a release of a known domain of six elements: counts, sums of 0 to 4, and a number of some members."""
    sigma = math.sqrt(variance)

    def noise(width: float) -> np.ndarray:
        return np.rint(rng.normal(0, sigma * width, len(COUNTS))).astype(np.int64)

    true = [np.rint(np.array(each) * scale).astype(np.int64) for each in (COUNTS, SUMS, PART)]
    counts = true[0] + noise(1)
    order = np.argsort(-counts, kind="stable")
    columns = [
        ReleasedColumn(
            clamp,
            (2 * number - clamp.centre * true[0] + noise(clamp.width))[order],
            counts[order],
            variance * clamp.width**2,
            variance,
            has_own_count=False,
        )
        for clamp, number in zip(CLAMPS, true[1:], strict=True)
    ]
    return ReleasedMoments(order, counts[order], tuple(columns), variance, None, 0)


def true_shares(places: tuple[int | None, int | None], scale: float) -> list[float]:
    """Return the shares before noise."""
    numbers = {None: COUNTS, 0: SUMS, 1: PART}
    above, below = (np.rint(np.array(numbers[place]) * scale) for place in places)
    return [float(each) for each in above / below.sum()]


def shares_of(release: ReleasedMoments, divided: int | None, added_up: int | None) -> Shares:
    """Return the shares of a column, or of the count, in the sum of another one or of the same."""
    return Shares(release, Weighted(divided, Fraction(1)), Weighted(added_up, Fraction(1)))


def whole(release: ReleasedMoments) -> ShownRows:
    """Return all of a release."""
    return ShownRows(tuple(range(release.groups.size)), (None,) * release.groups.size)


@pytest.mark.parametrize(
    ("places", "scale", "confidence"),
    [
        ((None, None), 1.0, 0.8),
        ((None, None), 1.0, 0.95),
        ((0, 0), 1.0, 0.8),
        ((1, 0), 1.0, 0.95),
        # There the sum is hardly ever shown.
        ((0, 0), 0.12, 0.8),
    ],
)
def test_each_interval_covers_given_that_it_is_shown(
    places: tuple[int | None, int | None], scale: float, confidence: float
) -> None:
    """Of each element by itself, and hardly oftener where its share is far from 0."""
    rng, alpha = np.random.default_rng(5), 1 - Fraction(str(confidence))
    true, releases = true_shares(places, scale), 120
    covered, found = {0: 0, 3: 0}, 0
    for _ in range(releases):
        release = drawn(rng, scale)
        elements = release.groups.tolist()
        rows = ShownRows(tuple(elements.index(each) for each in covered), (None, None))
        intervals = shares_of(release, *places).intervals(rows, alpha)
        for element, each in zip(covered, intervals, strict=True):
            covered[element] += each is not None and each.lower <= true[element] <= each.upper
        found += intervals[0] is not None
    deviation = math.sqrt(found * confidence * (1 - confidence))
    assert releases / 10 < found
    assert min(covered.values()) >= found * confidence - 4 * deviation
    if scale == 1:
        assert found > releases * 0.99
        assert covered[0] <= found * (confidence + 0.05) + 3 * deviation


def test_noise_of_a_row_is_in_the_sum_as_well() -> None:
    """A row that is nearly all of the sum has a share that is known far better than the row: (1 - r) of its noise."""
    counts = np.array([4000, 40], dtype=np.int64)
    release = ReleasedMoments(np.arange(2), counts, (), VARIANCE, None, 0)
    first, second = shares_of(release, None, None).intervals(whole(release), Fraction(1, 5))
    assert first is not None
    assert second is not None
    assert float(first.upper - first.lower) == pytest.approx(2 * 1.2816 * 10 / 4040, rel=0.15)
    assert 1 - first.upper == pytest.approx(second.lower, abs=3e-4)


def test_no_share_is_shown_where_the_sum_may_be_0() -> None:
    """The noise of six rows is in it, and the smallest sum with shares follows from that alone."""
    release = ReleasedMoments(np.arange(6), np.array([20, 10, 8, 4, 0, -2]), (), VARIANCE, None, 0)
    shares = shares_of(release, None, None)
    assert shares.doubled_sum == 80
    assert shares.intervals(whole(release), Fraction(1, 20)) == [None] * 6
    assert shares.least_sum(Fraction(1, 20)) == pytest.approx(2 * 2.24 * 10 * math.sqrt(6), rel=0.03)


def test_shares_are_of_known_domains_alone() -> None:
    """Over an unknown one what passed the threshold is not all that there is."""
    release = ReleasedMoments(np.arange(1), np.array([90]), (), VARIANCE, 50, 1)
    with pytest.raises(ValueError, match="known domain"):
        shares_of(release, None, None)


@pytest.mark.parametrize("variance", [1, 3, 4, 9])
@pytest.mark.parametrize("number", [2, 7, 40])
def test_no_tail_of_equal_draws_is_below_that_of_their_law(variance: int, number: int) -> None:
    """From 4 on they add up to one draw of their variances together; below, to no more than the bound."""
    law = masses(Fraction(variance))
    added = law
    for _ in range(number - 1):
        added = np.convolve(added, law)
    tails = np.cumsum(added[::-1])[::-1]
    middle = added.size // 2
    for x in range(math.ceil(5 * math.sqrt(variance * number))):
        exact = tails[middle + x]
        assert exact > 0.2 or exact <= tail(((1, float(variance), number),), x) * (1 + 1e-6)
