"""Intervals cover given that the element is shown, for every mechanism: exact enumeration of the real code.

Every run of a mechanism is enumerated with its intervals, and for each element the probability that it is shown with an
interval that covers is divided by the probability that it is shown. What lies beyond the radius counts as shown and
not covered.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.mechanisms import (
    CountNoise,
    Currency,
    KnownGumb,
    KnownLap,
    Selection,
    UnkGumb,
    UnkLap,
)
from dp_service.mechanisms.count_noise import gaussian_variance
from dp_service.mechanisms.intervals import (
    CountIntervals,
    fresh_noise_interval,
    gaussian_noise_interval,
    thresholded_interval,
)
from dp_service.mechanisms.selection import selection_thresholds
from tests.support.examples import long_but

from .enumeration import Law, output_law
from .neighbours import Counts, Release, over_known_domain

ALPHA = Fraction(1, 5)
CURRENCY = Currency(Fraction(2), Fraction(1, 4))
HALF = Currency(Fraction(3), Fraction(1, 4))
EVERYTHING = 10**6

Bounded = KnownLap | KnownGumb | UnkLap | UnkGumb
Covered = frozenset[tuple[int, bool]]
"""The elements that a run shows, each with whether its interval covers its count."""


def intervals_of(
    mechanism: Bounded, noisy: NDArray[np.int64], thresholds: NDArray[np.int64] | None
) -> CountIntervals:
    """Return the intervals that a release carries, given the thresholds that its noise had to reach, if any."""
    minimum = 0 if isinstance(mechanism, KnownLap | KnownGumb) else 1
    scale = mechanism.count_inverse_scale
    if isinstance(mechanism, KnownGumb | UnkGumb) and mechanism.count_noise is CountNoise.GAUSSIAN:
        return gaussian_noise_interval(noisy, gaussian_variance(scale), alpha=ALPHA, minimum=minimum)
    if thresholds is None:
        return fresh_noise_interval(noisy, scale, alpha=ALPHA, minimum=minimum)
    return thresholded_interval(noisy, thresholds, scale, alpha=ALPHA, minimum=minimum)


def covering(mechanism: Bounded, counts: Counts, shown: int, *, plain: bool) -> Callable[[Release], Covered]:
    """Return what says of a release which elements it shows and which of them it covers."""
    selected_by_counts = isinstance(mechanism, KnownLap | UnkLap)

    @cache
    def ends(noisy: Counts, thresholds: Counts | None) -> list[tuple[int, int]]:
        found = intervals_of(mechanism, as_array(noisy), None if thresholds is None else as_array(thresholds))
        return list(zip(found.lower.tolist(), found.upper.tolist(), strict=True))

    def covered(release: Release) -> Covered:
        assert release.noisy_counts is not None
        thresholds = thresholds_of(release, shown) if selected_by_counts and not plain else None
        elements = release.elements[:shown]
        return frozenset(
            (element, lower <= counts[element] <= upper)
            for element, (lower, upper) in zip(
                elements, ends(release.noisy_counts[:shown], thresholds), strict=True
            )
        )

    return covered


def thresholds_of(release: Release, shown: int) -> Counts | None:
    """Return the noisy counts that the first `shown` elements had to reach."""
    assert release.noisy_counts is not None
    selection = Selection(
        as_array(release.elements), as_array(release.noisy_counts), release.ended_in_bottom, release.bottom
    )
    thresholds = selection_thresholds(selection, shown)
    return None if thresholds is None else tuple(thresholds.tolist())


def as_array(numbers: Counts) -> NDArray[np.int64]:
    """Return them as an array."""
    return np.array(numbers, dtype=np.int64)


@cache
def law_of(mechanism: Bounded, counts: Counts, radius: int) -> Law[Release]:
    """Return the law of a whole release: what is shown of it afterwards does not change it."""
    return output_law(over_known_domain(mechanism, counts), radius=radius)


def worst_coverage(
    mechanism: Bounded, counts: Counts, *, shown: int = EVERYTHING, radius: int, plain: bool = False
) -> float:
    """Return the smallest coverage given that an element is shown, over all elements that can be shown."""
    law = law_of(mechanism, counts, radius)
    covered_by = covering(mechanism, counts, shown, plain=plain)
    runs = [(covered_by(release), mass) for release, mass in law.mass.items()]
    coverages = []
    for element in range(len(counts)):
        covered = sum(mass for run, mass in runs if (element, True) in run)
        missed = sum(mass for run, mass in runs if (element, False) in run)
        # Runs beyond the radius may have shown the element without covering it.
        if covered + missed > 1e-3:
            coverages.append(covered / (covered + missed + law.lost))
    return min(coverages)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(3, 3), (4, 2), (7, 0), (0, 0)])
@pytest.mark.parametrize("shown", [1, 2])
def test_known_lap_covers_cut_or_whole(counts: Counts, shown: int) -> None:
    """Cut to its largest, an element is shown because of its noise; the interval allows for it."""
    mechanism = KnownLap(CURRENCY, 1, 1)
    assert worst_coverage(mechanism, counts, shown=shown, radius=20) >= 1 - ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(3, 3, 3), (5, 4, 1)])
def test_known_lap_covers_when_two_of_three_are_shown(counts: Counts) -> None:
    """The threshold of each element is the one that is cut off, wherever ties fall."""
    assert worst_coverage(KnownLap(HALF, 1, 1), counts, shown=2, radius=9) >= 1 - ALPHA


@pytest.mark.slow
@pytest.mark.parametrize(
    "counts", long_but(lambda counts: max(counts) < 4, [(1, 0), (3, 0), (6, 1), (9, 3), (4, 4)])
)
@pytest.mark.parametrize("shown", [1, EVERYTHING])
def test_unk_lap_covers_around_its_threshold(counts: Counts, shown: int) -> None:
    """Below, at and above h_(d_bar+1) + C, given the bottom that is released."""
    mechanism = UnkLap(CURRENCY, 1, 2, 1)
    assert worst_coverage(mechanism, counts, shown=shown, radius=12) >= 1 - ALPHA - Fraction(1, 1000)


@pytest.mark.parametrize("law", CountNoise)
@pytest.mark.parametrize("counts", [(3, 3), (5, 0), (2, 1)])
def test_known_gumb_covers(counts: Counts, law: CountNoise) -> None:
    """Its counts are drawn after the choice, so plain intervals are true for whatever is shown."""
    mechanism = KnownGumb(CURRENCY, 1, 1, count_noise=law)
    assert worst_coverage(mechanism, counts, radius=40) >= 1 - ALPHA


@pytest.mark.parametrize("law", CountNoise)
@pytest.mark.parametrize("counts", [(3, 1, 0), (6, 5, 1), (1, 0, 0)])
def test_unk_gumb_covers(counts: Counts, law: CountNoise) -> None:
    """As in KnownGumb, also for elements that rarely beat the threshold."""
    mechanism = UnkGumb(CURRENCY, 1, 2, 1, count_noise=law)
    assert worst_coverage(mechanism, counts, radius=40) >= 1 - ALPHA


@pytest.mark.slow
def test_plain_intervals_would_not_cover_what_its_noise_selected() -> None:
    """The same enumeration finds plain intervals wrong for UnkLap and for a cut KnownLap."""
    assert worst_coverage(UnkLap(CURRENCY, 1, 2, 1), (1, 0), radius=12, plain=True) < 0.5
    assert worst_coverage(KnownLap(CURRENCY, 1, 1), (7, 0), shown=1, radius=20, plain=True) < 0.5
