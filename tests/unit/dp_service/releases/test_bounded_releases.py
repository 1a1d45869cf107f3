"""Releases of bounded contributions: what is drawn, shown, and sent."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms.bounded import BoundGauss, ContributionBound, Counted
from dp_service.mechanisms.bounded.selected_intervals import selected_gaussian_interval
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.intervals import gaussian_noise_interval
from dp_service.mechanisms.selection import selection_thresholds
from dp_service.noise.source import KeyedNoise
from dp_service.noise.stream import KeyedStream
from dp_service.releases.histogram import TypedHistogram, checked_histogram
from dp_service.releases.kinds import UnusableParametersError, kind_of
from dp_service.releases.kinds.views import IntervalKind
from dp_service.releases.plan import sign_plan, verify_plan
from dp_service.releases.release_ids import release_seed
from dp_service.releases.releasing import release
from dp_service.terms import ColumnType
from tests.unit.dp_service.bounded_plans import CURRENCY, NAMES, STATED, plan_of
from tests.unit.dp_service.identities import KEY

COUNTS = [900, 870, 820, 790, 88, 85, 3, 1]


def histogram() -> TypedHistogram:
    """Return what an engine answered, two elements below the smallest count that is considered among it."""
    return checked_histogram((ColumnType.STRING,), [NAMES], COUNTS, row_limit=100)


def test_a_release_is_what_the_mechanism_draws_from_the_elements_with_enough_count() -> None:
    """Bound, tau, units and smallest count of the plan are those of the draw."""
    plan, look = plan_of(), BoundGauss(CURRENCY, Fraction(5), ContributionBound(3, 2, 1, Counted.EVENTS), 4)
    assert look == kind_of(plan.parameters).mechanism
    whole = histogram().with_count(4)
    assert len(whole.elements) == 6
    seed = release_seed(KEY, plan.specification, plan.data_version, whole.digest(), plan.fresh)
    drawn = look.run(Histogram.from_element_order(COUNTS[:6]), KeyedNoise(KeyedStream(seed)))
    found = release(plan, histogram(), KEY, confidence=0.9)
    assert [(NAMES[i],) for i in drawn.indices] == found.elements
    assert (found.bottom, found.ended_in_bottom) == (look.threshold, False)
    assert (found.cost.information, found.cost.calls) == (5, 1)
    assert drawn.noisy_counts is not None
    assert found.intervals is not None
    thresholds = selection_thresholds(drawn, len(found.elements))
    assert thresholds is not None
    expected = selected_gaussian_interval(
        drawn.noisy_counts, thresholds, look.variance, alpha=Fraction(1, 10), minimum=4
    )
    assert np.array_equal(expected.lower, found.intervals.lower)
    assert np.array_equal(expected.upper, found.intervals.upper)
    assert IntervalKind.GIVEN_SHOWN is found.interval_kind


def test_nothing_that_is_shown_counts_less_than_the_smallest_count() -> None:
    """However wide an interval is, it begins there."""
    found = release(plan_of(), histogram(), KEY, confidence=1 - 1e-12)
    assert found.intervals is not None
    assert found.intervals.lower.min() == 4


def test_rows_below_the_smallest_count_change_nothing() -> None:
    """An engine that leaves them out and one that does not make the same release, noise and id."""
    full = release(plan_of(), histogram(), KEY, confidence=0.9)
    short = checked_histogram((ColumnType.STRING,), [NAMES[:6]], COUNTS[:6], row_limit=100)
    left_out = release(plan_of(), short, KEY, confidence=0.9)
    assert (full.release_id, full.elements) == (left_out.release_id, left_out.elements)


def test_a_smaller_k_is_a_part_of_the_same_release_with_intervals_of_its_own() -> None:
    """Each count had to beat the first that was cut off."""
    whole, part = (release(plan_of(k=k), histogram(), KEY, confidence=0.9) for k in (None, 2))
    assert whole.elements[:2] == part.elements
    assert whole.release_id == part.release_id
    assert whole.cost == part.cost
    assert whole.intervals is not None
    assert part.intervals is not None
    assert (whole.intervals.lower[:2] != part.intervals.lower).any()


def test_every_element_of_a_known_domain_is_released_with_plain_intervals() -> None:
    """No threshold and no smallest count: absent elements are counted as 0, and nothing selects."""
    found = release(plan_of(known=True), histogram(), KEY, confidence=0.9)
    assert {*found.elements} == {(name,) for name in [*NAMES, "nobody"]}
    assert (found.bottom, found.cost.calls) == (None, 0)
    assert found.noisy_counts is not None
    assert found.intervals is not None
    variance = Fraction(3 * 4) / (2 * Fraction(5, 8 * 16))
    expected = gaussian_noise_interval(found.noisy_counts, variance, alpha=Fraction(1, 10), minimum=0)
    assert np.array_equal(expected.lower, found.intervals.lower)
    assert IntervalKind.PLAIN is found.interval_kind
    cut = release(plan_of(known=True, k=3), histogram(), KEY, confidence=0.9)
    assert IntervalKind.GIVEN_SHOWN is cut.interval_kind


@pytest.mark.slow
def test_a_million_elements_are_released_as_ten_are() -> None:
    """How many there are decides nothing: no d_bar, no refusal."""
    names = [f"e{i:07}" for i in range(1_000_000)]
    counts = [500_000 - i // 2 for i in range(1_000_000)]
    many = checked_histogram((ColumnType.STRING,), [names], counts, row_limit=100_000_000)
    found = release(plan_of(), many, KEY, confidence=0.95, whole=True)
    threshold = kind_of(plan_of().parameters).mechanism
    assert isinstance(threshold, BoundGauss)
    assert threshold.threshold is not None
    # All but those whose count is close to the threshold or below it.
    assert abs(len(found.elements) - (1_000_000 - 2 * threshold.threshold)) < 1000


def test_a_plan_carries_the_bound() -> None:
    """From translation to noise, on whichever replica."""
    plan = dataclasses.replace(plan_of(), specification=b"s")
    assert plan == verify_plan(sign_plan(plan, KEY), KEY, now=plan.issued_at)


@pytest.mark.parametrize("periods", [10**9])
def test_noise_that_cannot_be_drawn_is_refused(periods: int) -> None:
    """A calendar can give more periods than any noise hides."""
    with pytest.raises(UnusableParametersError):
        plan_of(dataclasses.replace(STATED, periods=periods))
