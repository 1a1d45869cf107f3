"""Variances and standard deviations: their values, their ends, and how often their intervals cover, given shown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from dp_service.mechanisms import Currency, Histogram
from dp_service.mechanisms.aggregates import BoundMoments, ColumnSums, SumShare
from dp_service.mechanisms.aggregates.intervals import shown_by_count
from dp_service.mechanisms.aggregates.released import ReleasedMoments
from dp_service.mechanisms.aggregates.spreads import SpreadColumns, SpreadInterval
from dp_service.mechanisms.bounded import ContributionBound
from dp_service.noise import KeyedNoise, KeyedStream
from dp_service.values.bounds import Clamp
from dp_service.values.squares import OFF, Squares
from tests.support.silent_noise import SilentNoise

THIRD = Fraction(1, 3)
SQUARES = Squares.of_sums(Clamp(-20, 3000), terms=10**6)
OF_ALL = SpreadColumns(0, 1, SQUARES.of, SQUARES.size)


def released(
    groups: list[list[int]], units: int, *, threshold: bool = False, key: int = 0, silent: bool = False
) -> ReleasedMoments:
    """Return counts, sums and sums of squares of some groups of numbers."""
    squares, clamp = SQUARES, SQUARES.of
    mechanism = BoundMoments(
        Currency(Fraction(1, 2), Fraction(1, 10**6)),
        Fraction(units),
        ContributionBound(1),
        1 if threshold else None,
        THIRD,
        (SumShare(clamp, THIRD), SumShare(squares.clamp, THIRD)),
    )
    sums = (
        ColumnSums(np.array([sum(map(clamp.centred, group)) for group in groups])),
        ColumnSums(
            np.array([sum(squares.clamp.centred(squares(each)) for each in group) for group in groups])
        ),
    )
    noise = SilentNoise() if silent else KeyedNoise(KeyedStream(key.to_bytes(32, "big")))
    return mechanism.run(Histogram.from_element_order([len(group) for group in groups]), sums, noise)


def found(release: ReleasedMoments, alpha: Fraction) -> dict[int, SpreadInterval | None]:
    """Return the variance of each group that is shown."""
    shown = shown_by_count(release)
    intervals = OF_ALL.intervals(release, shown, alpha=alpha)
    return dict(zip((int(release.groups[row]) for row in shown.rows), intervals, strict=True))


def test_the_variance_is_that_of_the_numbers_but_for_the_rounding_of_squares() -> None:
    """Without noise; a group of equal numbers has none, and a standard deviation is its root."""
    chosen = Random(3)
    groups = [
        [chosen.randrange(-20, 3001) for _ in range(400)],
        [17] * 500,
        [-20, 3000] * 200,
    ]
    for group, spread in found(released(groups, 10**7, silent=True), Fraction(1, 20)).items():
        assert spread is not None
        exact = statistics.pvariance(map(Fraction, groups[group]))
        # Of at most 3020^2 / 4.
        assert abs(spread.value - exact) <= 100
        assert spread.lower <= exact <= spread.upper
        assert spread.upper - spread.lower < 1000
        root = spread.root
        assert root.lower**2 <= spread.lower <= spread.upper <= root.upper**2
        assert math.isclose(root.value, math.sqrt(spread.value), rel_tol=1e-6, abs_tol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["even", "few large", "two ends"])
def test_intervals_cover_given_that_they_are_shown(name: str) -> None:
    """300 releases of groups of 60 to 600, over an unknown domain: at least 95 % of those that are shown."""
    chosen = Random(name)
    makers: dict[str, Callable[[], int]] = {
        "even": lambda: chosen.randrange(-20, 3001),
        "few large": lambda: chosen.choice([0] * 19 + [3000]),
        "two ends": lambda: chosen.choice([-20, 3000]),
    }
    numbers = makers[name]
    groups = [[numbers() for _ in range(size)] for size in (60, 150, 600)]
    true = [statistics.pvariance(map(Fraction, group)) for group in groups]
    covered: list[bool] = []
    for key in range(300):
        release = released(groups, 24, threshold=True, key=key)
        for group, spread in found(release, Fraction(1, 10)).items():
            if spread is not None:
                covered.append(spread.lower <= true[group] <= spread.upper)
                assert 0 <= spread.lower <= spread.value <= spread.upper <= Fraction(3020**2, 4)
    assert len(covered) > 300
    assert sum(covered) >= 0.95 * len(covered), sum(covered) / len(covered)
    print(name, len(covered), sum(covered) / len(covered))


@pytest.mark.parametrize("low_high", [(0, 1), (-5, 5), (0, 3000), (-(2**39), 2**39), (1, 2**40)])
@pytest.mark.parametrize("terms", [1, 10**6, 10**11])
def test_squares_stay_within_their_ends_and_near_the_exact_ones(
    low_high: tuple[int, int], terms: int
) -> None:
    """Sums of as many of them, centred, are exact in doubles."""
    squares = Squares.of_sums(Clamp(*low_high), terms=terms)
    low, high = low_high
    assert terms * 3 * squares.clamp.high < 2**53
    assert squares.clamp.high >= 1000
    for steps in {low, high, (low + high) // 2, low + 1, high - 1, low + (high - low) // 3}:
        exact = (2 * steps - low - high) ** 2 / squares.size
        assert 0 <= squares(steps) <= squares.clamp.high
        assert abs(squares(steps) - exact) <= OFF
    assert squares(low) == squares(high) == squares.clamp.high


def test_squares_that_cannot_be_added_up_are_refused() -> None:
    """Too wide, or too many."""
    for clamp, terms in ((Clamp(0, 2**40 + 1), 1), (Clamp(0, 10), 2**50)):
        with pytest.raises(ValueError, match="coarser quantum"):
            Squares.of_sums(clamp, terms=terms)
