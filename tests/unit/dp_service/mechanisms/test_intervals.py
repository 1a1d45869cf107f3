"""Confidence intervals are true given that the element is shown."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.mechanisms import Selection
from dp_service.mechanisms.intervals import fresh_noise_interval, noise_half_width, thresholded_interval
from dp_service.mechanisms.selection import selection_thresholds

RATE = Fraction(3, 40)
ALPHA = Fraction(1, 20)
THRESHOLD = 1000
SIGMA = math.sqrt(2) / float(RATE)


def relative_mass(z: NDArray[np.int64], rate: float) -> NDArray[np.float64]:
    """Return the discrete Laplace masses divided by their sum: the law given that one of these values comes out."""
    exponents = -rate * np.abs(z)
    mass: NDArray[np.float64] = np.exp(exponents - exponents.max())
    return np.divide(mass, math.fsum(mass))


def coverage_given_shown(count: int, rate: Fraction, alpha: Fraction, *, plain: bool = False) -> float:
    """Return Pr[lower <= count <= upper | V >= t], summed over the law of V to 60 standard deviations."""
    reach = math.ceil(60 / float(rate))
    values = np.arange(THRESHOLD, max(THRESHOLD, count) + reach)
    mass = relative_mass(values - count, float(rate))
    if plain:
        intervals = fresh_noise_interval(values, rate, alpha=alpha, minimum=0)
    else:
        intervals = thresholded_interval(
            values, np.full_like(values, THRESHOLD), rate, alpha=alpha, minimum=0
        )
    covered = (intervals.lower <= count) & (count <= intervals.upper)
    return math.fsum(mass[covered])


AROUND_THRESHOLD = [
    0,
    THRESHOLD - 100,
    *range(THRESHOLD - 30, THRESHOLD + 60, 7),
    THRESHOLD + 300,
    THRESHOLD + 5000,
]


@pytest.mark.parametrize("alpha", [ALPHA, Fraction(1, 3)])
@pytest.mark.parametrize("rate", [RATE, Fraction(1, 100), Fraction(2)])
def test_intervals_cover_given_that_the_element_is_shown(rate: Fraction, alpha: Fraction) -> None:
    """Wherever the true count lies around the threshold, coverage is at least what is claimed."""
    for count in AROUND_THRESHOLD:
        assert coverage_given_shown(count, rate, alpha) >= 1 - alpha - Fraction(1, 10**9)


def test_intervals_far_above_the_threshold_cover_little_more_than_claimed() -> None:
    """There selection hardly matters, and honesty does not cost width."""
    assert coverage_given_shown(THRESHOLD + 5000, RATE, ALPHA) < 0.96


@pytest.mark.parametrize(("sigmas_below", "covered"), [(1, 0.81), (1.5, 0.61), (2, 0.20)])
def test_plain_intervals_would_not_cover(sigmas_below: float, covered: float) -> None:
    """Ignoring the selection covers only this much of a count so many standard deviations below the threshold."""
    count = round(THRESHOLD - sigmas_below * SIGMA)
    assert coverage_given_shown(count, RATE, ALPHA, plain=True) == pytest.approx(covered, abs=0.02)


def accepted_counts(value: int, rate: float, alpha: float) -> list[int]:
    """Return the counts near the threshold for which both tails exceed alpha / 2, by direct evaluation."""
    q = math.exp(-rate)

    def tail(n: int) -> float:
        return q**n / (1 + q) if n >= 1 else 1 - q ** (1 - n) / (1 + q)

    candidates = range(THRESHOLD - 3, THRESHOLD + 1500)
    at_least = {h: tail(value - h) / tail(THRESHOLD - h) for h in candidates}
    at_most = {h: 1 - tail(value + 1 - h) / tail(THRESHOLD - h) for h in candidates}
    return [h for h in candidates if min(at_least[h], at_most[h]) > alpha / 2]


@pytest.mark.parametrize("excess", [1, 5, 30, 48, 49, 50, 51, 80, 200])
def test_the_closed_form_inverts_the_law(excess: int) -> None:
    """The interval is exactly the set of counts that neither tail rejects; below the threshold it is open."""
    value = np.array([THRESHOLD + excess], dtype=np.int64)
    interval = thresholded_interval(value, np.array([THRESHOLD]), RATE, alpha=ALPHA, minimum=0)
    accepted = accepted_counts(THRESHOLD + excess, float(RATE), float(ALPHA))
    lower = 0 if accepted[0] < THRESHOLD else accepted[0]
    assert (lower, accepted[-1]) == (interval.lower[0], interval.upper[0])


def test_a_count_just_above_the_threshold_may_be_anything_below() -> None:
    """The noise has no memory, so the lower end is the least count that a shown element can have."""
    value = np.array([THRESHOLD + 1], dtype=np.int64)
    interval = thresholded_interval(value, np.array([THRESHOLD]), RATE, alpha=ALPHA, minimum=1)
    assert interval.lower.tolist() == [1]


def test_a_fresh_noise_interval_is_the_quantile_of_the_noise() -> None:
    """Its half width is the smallest whose outside has probability at most alpha, and it stops at the minimum."""
    width = noise_half_width(RATE, ALPHA)
    mass = relative_mass(np.arange(-2000, 2001), float(RATE))
    centre = 2000
    assert 2 * math.fsum(mass[centre + width + 1 :]) <= 0.05 < 2 * math.fsum(mass[centre + width :])
    interval = fresh_noise_interval(np.array([500, 3, -90], dtype=np.int64), RATE, alpha=ALPHA, minimum=1)
    assert interval.lower.tolist() == [500 - width, 1, 1]
    assert interval.upper.tolist() == [500 + width, 3 + width, 1]


def selection(indices: list[int], noisy_counts: list[int], bottom: int | None) -> Selection:
    """Return a release that is ranked by its own noisy counts."""
    return Selection(np.array(indices), np.array(noisy_counts), bottom is not None, bottom)


def test_a_cut_release_is_selected_by_the_first_element_that_was_cut_off() -> None:
    """A shown element had to reach it, or to exceed it where it would have lost the tie."""
    ranked = selection([4, 0, 9, 3, 1], [50, 40, 30, 30, 20], bottom=None)
    assert thresholds_of(ranked, 4) == [21, 20, 21, 21]
    assert thresholds_of(selection([4, 0, 3, 9], [50, 40, 30, 30], bottom=None), 3) == [30, 30, 30]


def test_bottom_selects_what_exceeds_it() -> None:
    """Without a cut the threshold is bottom + 1; with one it is the larger of the two."""
    ranked = selection([4, 0, 9], [50, 40, 30], bottom=25)
    assert thresholds_of(ranked, 3) == [26, 26, 26]
    assert thresholds_of(ranked, 9) == [26, 26, 26]
    assert thresholds_of(ranked, 1) == [40 + 1]


def test_a_whole_known_domain_is_not_selected_at_all() -> None:
    """No bottom and no cut: there is nothing to condition on."""
    assert selection_thresholds(selection([1, 0], [5, 4], bottom=None), 2) is None


def thresholds_of(release: Selection, shown: int) -> list[int]:
    """Return the thresholds as a list."""
    thresholds = selection_thresholds(release, shown)
    assert thresholds is not None
    return [int(threshold) for threshold in thresholds]


def test_ninety_thousand_intervals_are_vectorised() -> None:
    """Shapes carry through, and every interval is in order."""
    values = np.arange(THRESHOLD, THRESHOLD + 90_000)
    intervals = thresholded_interval(values, np.full_like(values, THRESHOLD), RATE, alpha=ALPHA, minimum=1)
    assert values.shape == intervals.lower.shape == intervals.upper.shape
    assert bool(np.all(intervals.lower <= intervals.upper))


def test_what_cannot_have_been_shown_is_refused() -> None:
    """A value below its threshold, another number of thresholds, a negative minimum."""
    values, lower = np.array([5, 6]), np.array([6, 6])
    with pytest.raises(ValueError, match="noisy_counts must not be below their thresholds"):
        thresholded_interval(values, lower, RATE, alpha=ALPHA, minimum=0)
    with pytest.raises(ValueError, match="thresholds must have one entry for each noisy count"):
        thresholded_interval(values, lower[:1], RATE, alpha=ALPHA, minimum=0)
    with pytest.raises(ValueError, match="minimum must not be negative"):
        thresholded_interval(values, values, RATE, alpha=ALPHA, minimum=-1)


def test_thresholds_need_counts_and_a_sensible_cut() -> None:
    """A release without counts was not selected by them, and a negative cut shows nothing."""
    with pytest.raises(ValueError, match="selection must have noisy counts"):
        selection_thresholds(Selection(np.array([0]), None, ended_in_bottom=False), 1)
    with pytest.raises(ValueError, match="shown must not be negative"):
        selection_thresholds(selection([0], [1], None), -1)
