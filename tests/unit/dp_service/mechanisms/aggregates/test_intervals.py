"""Intervals of counts, sums and averages cover given that they are shown: the law of the noise is added up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from dp_service.mechanisms import Currency, Histogram
from dp_service.mechanisms.aggregates import BoundMoments, SumShare
from dp_service.mechanisms.aggregates.intervals import (
    ShownRows,
    average_intervals,
    count_intervals,
    shown_by_average,
    shown_by_count,
    shown_by_sum,
    shown_by_value,
    sum_intervals,
)
from dp_service.mechanisms.aggregates.noise_pairs import (
    NoisePair,
    bins_of,
    least_rarely_reached,
    upper_tails,
)
from dp_service.mechanisms.aggregates.released import ReleasedColumn, ReleasedMoments
from dp_service.mechanisms.bounded import ContributionBound
from dp_service.noise import KeyedNoise, KeyedStream
from dp_service.noise.distribution import gaussian_tail
from dp_service.values.bounds import Clamp
from tests.support.examples import long_rows_but
from tests.support.some import some
from tests.unit.dp_service.mechanisms.aggregates.member_rows import column_sums
from tests.unit.dp_service.mechanisms.bounded.laws import masses, reach

ALPHA = Fraction(1, 5)
COUNT_VARIANCE = Fraction(3)


def release(
    counts: list[int],
    sums: list[int],
    clamp: Clamp,
    *,
    threshold: int | None = None,
    minimum: int = 0,
    own_count: bool = False,
    scale: int = 1,
) -> ReleasedMoments:
    """Return what was released of some groups, with noise of parameters 3 and 3 W^2 / 4.

    With a scale counts are in so many steps, and sums are not.
    """
    centred, noisy = np.array(sums, dtype=np.int64), np.array(counts, dtype=np.int64)
    variance = COUNT_VARIANCE * clamp.width**2 / 4 / scale**2
    column = ReleasedColumn(clamp, scale, 1, centred, noisy, variance, COUNT_VARIANCE, own_count)
    return ReleasedMoments(np.arange(noisy.size), noisy, (column,), COUNT_VARIANCE, threshold, minimum, scale)


def released_at(
    count: int,
    beta: int,
    clamp: Clamp,
    errors: list[int],
    *,
    threshold: int | None,
    minimum: int,
    scale: int,
) -> ReleasedMoments:
    """Return a release of groups with one N and with B that are off by these errors."""
    sums = [beta + error for error in errors]
    return release([count] * len(sums), sums, clamp, threshold=threshold, minimum=minimum, scale=scale)


class Coverage:
    """How often the intervals of one group cover, given that they are shown, over every outcome of its noise."""

    def __init__(
        self, n: int, beta: int, clamp: Clamp, threshold: int | None, minimum: int, *, scale: int
    ) -> None:
        self.count = self.sum = self.average = self.average_shown = self.average_outside = 0.0
        self._truth = n, Fraction(scale * beta + clamp.centre * n, 2)
        self._variance = COUNT_VARIANCE * clamp.width**2 / 4 / scale**2
        self._shown = 0.0
        values = range(n - reach(COUNT_VARIANCE), n + reach(COUNT_VARIANCE) + 1)
        for count, mass in zip(values, masses(COUNT_VARIANCE), strict=True):
            if mass > 1e-7 and (threshold is None or count > threshold):
                self._shown += float(mass)
                at = partial(
                    released_at, count, beta, clamp, threshold=threshold, minimum=minimum, scale=scale
                )
                self._add(float(mass), clamp, at)

    def _add(self, mass: float, clamp: Clamp, released: Callable[[list[int]], ReleasedMoments]) -> None:
        """Add all outcomes of B for one N, in one release of which nothing is cut off."""
        spread = math.ceil(5 * math.sqrt(self._variance))
        # A few outcomes of B are tried, each for all that are nearer to it.
        tried = sorted({*range(-spread, spread + 1, max(1, spread // 25)), spread})
        ends = [-spread, *((low + high + 1) // 2 for low, high in pairwise(tried)), spread + 1]
        law = masses(self._variance)
        centre = law.size // 2
        found = released(tried)
        shown = shown_by_count(found)
        n, total = self._truth
        for place, (interval, of_sum, of_average) in enumerate(
            zip(
                count_intervals(found, shown, alpha=ALPHA),
                sum_intervals(found, 0, shown, alpha=ALPHA),
                average_intervals(found, 0, shown, alpha=ALPHA),
                strict=True,
            )
        ):
            own = mass * float(law[centre + ends[place] : centre + ends[place + 1]].sum())
            self.count += own * (interval.lower <= n <= interval.upper)
            self.sum += own * (of_sum.lower <= total <= of_sum.upper)
            if of_average is not None and n > 0:
                self.average_shown += own
                self.average += own * (of_average.lower <= total / n <= of_average.upper)
                value = found.columns[0].average_of(place)
                assert value is not None
                is_inside = of_average.lower <= value <= of_average.upper
                self.average_outside += own * (not is_inside or not clamp.low <= value <= clamp.high)

    def given_shown(self) -> tuple[float, float, float]:
        """Return the coverage of COUNT, SUM and AVG; 1 for an average that is never shown."""
        of_average = self.average / self.average_shown if self.average_shown > 1e-6 else 1.0
        return self.count / self._shown, self.sum / self._shown, of_average


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "share", "clamp", "threshold", "minimum", "scale"),
    long_rows_but(
        lambda n, *_: n in (0, 1, 9, 12),
        [
            (0, 0, Clamp(0, 8), None, 0, 1),
            (2, 1, Clamp(0, 8), None, 0, 1),
            (6, -1, Clamp(0, 8), None, 0, 1),
            (40, 0.5, Clamp(0, 8), None, 0, 1),
            (9, 0.3, Clamp(-6, 2), None, 0, 1),
            (1, 1, Clamp(0, 8), 8, 1, 1),
            (4, -1, Clamp(0, 8), 8, 1, 1),
            (8, 0.5, Clamp(0, 8), 8, 1, 1),
            (12, 1, Clamp(3, 9), 8, 1, 1),
            (30, -0.5, Clamp(-9, -1), 8, 1, 1),
            (5, 0.9, Clamp(-4, 4), 8, 3, 1),
            (9, 0.5, Clamp(0, 8), None, 0, 4),
            (12, 0.7, Clamp(0, 8), 8, 4, 4),
            (25, -0.6, Clamp(-3, 5), None, 0, 3),
            (30, 0.4, Clamp(2, 9), 8, 4, 2),
        ],
    ),
)
def test_intervals_cover_given_that_they_are_shown(
    n: int, share: float, clamp: Clamp, threshold: int | None, minimum: int, *, scale: int
) -> None:
    """Far above the threshold, around and far below it; COUNT at 1 - alpha, SUM and AVG at 1 - alpha / 2 each.

    What is tried of B stands for its neighbours, and what is beyond 5 sigma is left out: 0.01 is allowed for that.
    """
    found = Coverage(n, round(share * clamp.width * n / scale), clamp, threshold, minimum, scale=scale)
    of_count, of_sum, of_average = found.given_shown()
    assert of_count >= 1 - float(ALPHA) - 1e-5
    assert of_sum >= 1 - float(ALPHA) / 2 - 0.01
    assert of_average >= 1 - float(ALPHA) / 2 - 0.01
    # Whatever the noise is, an average is possible, and its interval holds it.
    assert found.average_outside == 0


def test_intervals_of_what_nothing_selected_are_no_wider_than_needed() -> None:
    """SUM by the law of both noises together, not by adding two intervals: 1.645 standard deviations at 90 %."""
    clamp = Clamp(0, 3000)
    found = release([4372], [-6_760_000], clamp)
    (interval,) = sum_intervals(found, 0, shown_by_count(found), alpha=ALPHA)
    deviation = math.sqrt(COUNT_VARIANCE * 3000**2 / 4 + 3000**2 * COUNT_VARIANCE) / 2
    assert interval.upper - interval.lower == pytest.approx(2 * 1.645 * deviation, rel=0.01)
    (average,) = average_intervals(found, 0, shown_by_count(found), alpha=ALPHA)
    assert average is not None
    r = 6_760_000 / 4372
    of_average = math.sqrt(COUNT_VARIANCE * 3000**2 / 4 + r**2 * COUNT_VARIANCE) / 4372 / 2
    assert float(average.upper - average.lower) == pytest.approx(2 * 1.645 * of_average, rel=0.02)
    value = found.columns[0].average_of(0)
    assert value is not None
    assert average.lower < value < average.upper


@pytest.mark.parametrize(
    ("count", "centred", "threshold"), [(40, 900, None), (40, -900, None), (17, 100, 8), (17, -100, 8)]
)
def test_an_average_is_possible_and_its_interval_holds_it(
    count: int, centred: int, threshold: int | None
) -> None:
    """Also where the noise takes it beyond the bounds, and where it is shown because its count came out large."""
    clamp = Clamp(0, 8)
    found = release([count], [centred], clamp, threshold=threshold, minimum=1)
    value = found.columns[0].average_of(0)
    (interval,) = average_intervals(found, 0, shown_by_count(found), alpha=Fraction(9, 10))
    assert value is not None
    assert interval is not None
    assert clamp.low <= value <= clamp.high
    assert interval.lower <= value <= interval.upper


def test_an_average_is_shown_only_where_its_count_is_certain_to_be_positive() -> None:
    """Of plain intervals, where N exceeds their half-width."""
    found = release([4, 3, 2, 0, -5], [0] * 5, Clamp(0, 8))
    shown = shown_by_count(found)
    counts = count_intervals(found, shown, alpha=ALPHA)
    averages = average_intervals(found, 0, shown, alpha=ALPHA)
    assert [interval.lower > 0 for interval in counts] == [True, True, False, False, False]
    assert [average is not None for average in averages] == [True, True, False, False, False]
    assert found.columns[0].average_of(3) is None


def test_a_list_that_is_cut_by_count_selects_by_what_was_cut_off() -> None:
    """The threshold of a row is the N of the first that is cut off, which loses a tie to an earlier group."""
    found = release([50, 12, 12, 12, 9], [0] * 5, Clamp(0, 8), threshold=5, minimum=1)
    assert shown_by_count(found, most=2) == ShownRows((0, 1), (12, 12))
    assert shown_by_count(found, most=0) == ShownRows((), ())
    assert shown_by_count(replace(found, groups=np.array([0, 3, 2, 1, 4])), most=2) == ShownRows(
        (0, 1), (12, 13)
    )
    with pytest.raises(ValueError, match="most"):
        shown_by_count(found, most=-1)


def test_a_list_that_is_cut_by_value_divides_alpha_by_all_released_groups() -> None:
    """Whichever are shown, all of their intervals cover together."""
    found = release([90, 80, 70, 60], [100, -100, 500, 0], Clamp(0, 8), threshold=5, minimum=1)
    assert found.rows_by_sum(0) == [2, 0, 1, 3]
    assert found.rows_by_average(0) == [2, 0, 3, 1]
    chosen = shown_by_value(found, found.rows_by_sum(0)[:2])
    assert chosen == ShownRows((2, 0), (6, 6), 4)
    everything = ShownRows((2, 0), (6, 6))
    for find in (sum_intervals, average_intervals):
        assert find(found, 0, chosen, alpha=ALPHA) == find(found, 0, everything, alpha=ALPHA / 4)
    assert count_intervals(found, chosen, alpha=ALPHA) == count_intervals(found, everything, alpha=ALPHA / 4)


def test_a_list_in_the_order_of_a_value_divides_alpha_only_where_it_is_cut() -> None:
    """Where everything is shown the order selects nothing."""
    found = release([90, 80, 70, 60], [100, -100, 500, 0], Clamp(0, 8), threshold=5, minimum=1)
    assert shown_by_sum(found, 0, most=2) == ShownRows((2, 0), (6, 6), 4)
    assert shown_by_average(found, 0, most=2, alpha=ALPHA) == ShownRows((2, 0), (6, 6), 4)
    for most in (None, 4, 9):
        assert shown_by_sum(found, 0, most=most) == ShownRows((2, 0, 1, 3), (6,) * 4)
        assert shown_by_average(found, 0, most=most, alpha=ALPHA) == ShownRows((2, 0, 3, 1), (6,) * 4)


def test_elements_that_show_no_average_come_last_in_its_order() -> None:
    """However large it would be: nobody could read why they are first."""
    found = release([400, 4, 3, 2, 0], [0, 10, 4, 500, 9], Clamp(0, 8))
    for most in (None, 3):
        chosen = shown_by_average(found, 0, most=most, alpha=ALPHA)
        averages = average_intervals(found, 0, chosen, alpha=ALPHA)
        shows = [average is not None for average in averages]
        assert shows == sorted(shows, reverse=True)
        assert False in shows
    assert found.rows_by_average(0)[0] == 3
    # The smaller alpha is, the larger a count has to be.
    assert shown_by_average(found, 0, alpha=ALPHA).rows == (1, 2, 0, 3, 4)
    assert shown_by_average(found, 0, alpha=ALPHA / 10**6).rows == (0, 1, 2, 3, 4)


def test_a_column_with_a_count_of_its_own_was_not_selected() -> None:
    """Its sums have the interval of a release without a threshold."""
    own, plain = (
        release([9], [3], Clamp(0, 8), threshold=threshold, minimum=1, own_count=True)
        for threshold in (8, None)
    )
    intervals = [sum_intervals(each, 0, shown_by_count(each), alpha=ALPHA) for each in (own, plain)]
    assert intervals[0] == intervals[1]
    selected = replace(own, columns=(replace(own.columns[0], has_own_count=False),))
    assert sum_intervals(selected, 0, shown_by_count(selected), alpha=ALPHA) != intervals[0]


@pytest.mark.parametrize(
    "variance", [Fraction(1, 50), Fraction(3), Fraction(10**6), Fraction(10**8), Fraction(10**15)]
)
def test_tails_are_those_of_the_exact_law(variance: Fraction) -> None:
    """From a table or in closed form, to one in a million from below zero to 7 sigma."""
    sigma = math.sqrt(variance)
    places = [round(times * sigma) for times in (-2, 0, 0.5, 1, 3, 7)]
    found = upper_tails(float(variance), np.array(places, dtype=np.float64))
    for place, tail in zip(places, found, strict=True):
        assert tail == pytest.approx(float(gaussian_tail(variance, place).mid), rel=1e-6)


@pytest.mark.parametrize("at_least", [None, -4, 0, 3, 9])
@pytest.mark.parametrize("k", [-3, 0, 2])
def test_the_law_of_a_pair_is_the_convolution(k: int, at_least: int | None) -> None:
    """Every tail, against the sum over all combinations of draws."""
    variances = Fraction(5), Fraction(4)
    of_sum, of_count = ((reach(v), masses(v)) for v in variances)
    pairs = [
        (b + k * n, float(p * q))
        for b, p in zip(range(-of_sum[0], of_sum[0] + 1), of_sum[1], strict=True)
        for n, q in zip(range(-of_count[0], of_count[0] + 1), of_count[1], strict=True)
        if at_least is None or n >= at_least
    ]
    total = sum(mass for _, mass in pairs)
    for n in (-9, 0, 4, 15):
        wanted = sum(mass for place, mass in pairs if place >= n) / total
        assert NoisePair(5.0, 4.0, k).upper_tail(at_least, n) == pytest.approx(wanted, rel=1e-6)


def test_bins_only_ever_widen_an_interval() -> None:
    """With a sigma of 10^5 the law is taken in bins: by less than 1 % of it."""
    exact = math.sqrt(10**12 + 9 * 10**10) * 1.6449
    found = least_rarely_reached(NoisePair(1e12, 1e10, -3), None, 0.05)
    assert exact * 0.9999 <= found <= exact + 0.01 * 3e5
    assert bins_of(1e10, 10**6).mass.sum() == pytest.approx(1)


def test_a_real_release_is_covered() -> None:
    """At 1 - 10^-6 each: a thousand groups of fixed noise, averages of all that are large enough."""
    half = Fraction(1, 2)
    asked = BoundMoments(
        Currency(Fraction("0.15"), Fraction("1e-10")),
        Fraction(20),
        ContributionBound(2),
        1,
        half,
        (SumShare(Clamp(0, 100), half),),
    )
    n = np.arange(1000) % 200
    sums = n * ((np.arange(1000) * 7) % 201 - 100)
    found = asked.run(
        Histogram.from_element_order(n),
        (column_sums(sums.tolist()),),
        KeyedNoise(KeyedStream(bytes(32))),
    )
    shown = shown_by_count(found, most=40)
    alpha = Fraction(1, 10**6)
    for row, count, of_sum, of_average in some(
        zip(
            shown.rows,
            count_intervals(found, shown, alpha=alpha),
            sum_intervals(found, 0, shown, alpha=alpha),
            average_intervals(found, 0, shown, alpha=alpha),
            strict=True,
        )
    ):
        group = int(found.groups[row])
        total = Fraction(int(sums[group] + 100 * n[group]), 2)
        assert count.lower <= n[group] <= count.upper
        assert of_sum.lower <= total <= of_sum.upper
        assert of_average is not None
        assert of_average.lower <= total / int(n[group]) <= of_average.upper


def test_an_interval_of_sums_has_no_impossible_sign() -> None:
    """Of sums that cannot be negative, 0 alone is left of an interval that lies below it, and the other way round."""
    for clamp, sign in ((Clamp(0, 10), -1), (Clamp(-10, 0), 1)):
        found = release([2, 2], [sign * 4000 - 2 * clamp.centre, 0], clamp)
        ends, others = sum_intervals(found, 0, shown_by_count(found), alpha=ALPHA)
        assert ends == (0, 0)
        assert min(-sign * end for end in others) == 0 < max(-sign * end for end in others)
