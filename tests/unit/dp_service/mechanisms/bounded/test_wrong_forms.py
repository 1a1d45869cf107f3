"""What goes wrong where the mechanisms or their use are changed: each change breaks a promise that is kept without it.

Thresholds are patched in the code; what surrounds a mechanism (how members are bounded, what n counts, whose noise is
used) is changed in the data that it is given.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dp_service.mechanisms.bounded import ContributionBound, Counted, TwoLooks, bound_gauss
from dp_service.mechanisms.bounded.threshold import hiding_threshold
from dp_service.noise.gaussian_price import DISCRETENESS

from .laws import ROUNDING_ERROR, Floats, masses, reach, worst_excess
from .member_data import Counts, DataSet, distinct_counts, histogram
from .promises import (
    BothLooks,
    DistinctLook,
    OneLook,
    Promise,
    everyone,
    one_look,
    two_looks,
)

CLEARLY = 1e-3
AT_MOST = float(1 - DISCRETENESS / (1 + DISCRETENESS))
"""What a look of variance 1 costs of its zCDP: the 1/11 more makes it less."""


def is_kept(promise: Promise) -> bool:
    """Return whether a promise is kept."""
    worst = promise.worst()
    return worst.excess <= ROUNDING_ERROR and worst.relative_rho <= 1 + ROUNDING_ERROR


def unbounded(elements: int) -> ContributionBound:
    """Return a bound that bounds nothing."""
    return ContributionBound(elements)


@pytest.mark.parametrize("min_count", [1, None])
def test_members_that_are_not_bounded_break_one_look(min_count: int | None) -> None:
    """A member's second element is noise for one only."""
    promise = OneLook(one_look(1, min_count), 2, 2)
    assert is_kept(promise)
    wrong = replace(promise, counted=lambda data: histogram(data, unbounded(2), 2)).worst()
    assert wrong.relative_rho > 1.8
    if min_count is None:
        assert wrong.excess > CLEARLY


def test_members_that_keep_all_their_values_break_a_look_at_distinct_values() -> None:
    """A member's third value is noise for two only, and brings an element above a threshold for two."""
    every = ContributionBound(1, 3, 1, Counted.EVENTS)
    for min_count in (1, None):
        promise = DistinctLook(one_look(1, min_count, tau=2, events=True), 1, 2, values=3)
        assert is_kept(promise)
        wrong = replace(promise, united=lambda data: distinct_counts(data, every, 1)).worst()
        assert wrong.excess > CLEARLY
        assert min_count or wrong.relative_rho > 2


def test_noise_as_of_members_breaks_a_look_at_distinct_values() -> None:
    """A member changes a count by c, not by 1: the price is c squared."""
    counts = distinct_counts((((0, (0, 1)),),), ContributionBound(1, 2, 1, Counted.EVENTS), 1)
    as_members = OneLook(one_look(1, None), 1, 1).divergences((0,), counts)
    assert as_members.relative_rho == pytest.approx(4 * AT_MOST)


def test_copies_that_are_bounded_in_each_period_break_a_look_that_forgets_periods() -> None:
    """Over two periods a member has twice as many elements."""
    assert is_kept(OneLook(one_look(1, None, periods=2), 2, 1))
    member = (((0, 1),), ((1, 1),))
    counts = histogram((member,), ContributionBound(1, periods=2), 2)
    assert counts == (1, 1)
    assert OneLook(one_look(1, None), 2, 1).divergences((0, 0), counts).relative_rho == pytest.approx(
        2 * AT_MOST
    )


def test_events_of_several_periods_break_a_look_that_counts_elements_only() -> None:
    """In one element a member has P tau events, not tau in P elements: P^2 tau^2, not P tau^2."""
    bound = ContributionBound(1, 2, 2, Counted.EVENTS)
    assert (
        OneLook(replace(one_look(1, None), bound=bound), 1, 1).divergences((0,), (4,)).relative_rho <= 1.001
    )
    as_members = replace(one_look(1, None), bound=ContributionBound(2, 2, 1, Counted.EVENTS))
    assert OneLook(as_members, 1, 1).divergences((0,), (4,)).relative_rho == pytest.approx(2, abs=0.03)


@pytest.mark.parametrize(
    ("forgotten", "promise"),
    [
        ("m", OneLook(one_look(1, 3), 2, 3, base=(2, 1))),
        ("tau", OneLook(one_look(1, 1), 2, 3)),
        ("tau", OneLook(one_look(1, 1, tau=2, events=True), 2, 2, most_rows=3)),
        ("tau", DistinctLook(one_look(1, 1, tau=2, events=True), 2, 2, values=2)),
        ("Delta", OneLook(one_look(3, 1), 3, 1)),
        ("s tau", OneLook(one_look(1, 1, periods=2, tau=2, events=True), 2, 1, most_rows=2)),
    ],
    ids=str,
)
def test_a_threshold_that_forgets_something_breaks_one_look(
    monkeypatch: pytest.MonkeyPatch, forgotten: str, promise: OneLook
) -> None:
    """What only one member brings is shown more often than delta."""
    assert is_kept(promise)

    def forgetful(bound: ContributionBound, variance: Fraction, delta: Fraction, min_count: int) -> int:
        match forgotten:
            case "m":
                return hiding_threshold(bound, variance, delta, 1)
            case "tau":
                return hiding_threshold(bound, variance, delta, min_count) - bound.tau
            case "Delta":
                return hiding_threshold(replace(bound, typical=1), variance, delta, min_count)
        return hiding_threshold(replace(bound, periods=1), variance, delta, min_count)

    monkeypatch.setattr(bound_gauss, "hiding_threshold", forgetful)
    assert promise.worst().excess > CLEARLY


def test_a_min_count_from_the_data_breaks_one_look() -> None:
    """With m the smallest count, one more member lifts the threshold, and the least count that is seen tells of it."""
    promise = OneLook(one_look(1, 2), 2, 1, base=(6, 2))
    assert is_kept(promise)
    wrong = replace(promise, looked=lambda counts: replace(promise.look, min_count=min(counts)))
    assert wrong.worst().excess > 0.1


def test_a_number_of_names_from_the_data_breaks_two_looks() -> None:
    """With M the number of elements above 7 members, one more member adds a name."""
    promise = BothLooks(two_looks(1, 1, 2), 2, 1, base=everyone(2, 15))
    assert is_kept(promise)
    bound = promise.looks.names_bound

    def from_the_data(data: DataSet) -> int:
        return sum(count > 7 for count in histogram(data, bound, 2))

    assert replace(promise, most_names_of=from_the_data).worst().excess > 0.1


def not_bounded(data: DataSet, names: tuple[int, ...]) -> Counts:
    """Count four elements with all that members have in them."""
    counts = histogram(data, unbounded(4), 4)
    return tuple(counts[name] for name in names)


@pytest.mark.slow
def test_a_second_look_that_does_not_bound_breaks_two_looks() -> None:
    """Four names, of which a member may keep one: rho is (1 + 4) / 2 of the promise, if no newcomer is shown."""
    promise = BothLooks(two_looks(1, 1, 4), 4, 1, base=everyone(4, 20), added=[tuple_of_all(4)])
    assert is_kept(promise)

    assert replace(promise, counts_of=not_bounded).worst().relative_rho > 2


def test_a_second_look_bounded_before_the_names_keeps_its_promise_too() -> None:
    """As on a copy that was prepared: the filter on the names only takes away."""
    promise = BothLooks(two_looks(1, 1, 2), 2, 2, base=everyone(2, 3))

    def prepared(data: DataSet, names: tuple[int, ...]) -> Counts:
        counts = histogram(data, ContributionBound(1), 2, after=names)
        return tuple(counts[name] for name in names)

    assert is_kept(replace(promise, counts_of=prepared))


def tuple_of_all(elements: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the member who holds every element."""
    return (tuple((element, 1) for element in range(elements)),)


def joint_with_shared_noise(looks: TwoLooks, first: int, second: int, *, is_shared: bool) -> Floats:
    """Return the law of (is the element named, its count) where both looks may use the same noise.

    Both looks have the same variance, as their bounds and units are equal.
    """
    variance, threshold = looks.names_look.variance, looks.names_look.threshold
    assert variance == looks.counts_look.variance
    assert threshold is not None
    law, radius = masses(variance), reach(variance)
    size = 2 * radius + 40
    shown = np.zeros(size)
    values = np.arange(-radius, radius + 1)
    is_named = first + values > threshold
    if is_shared:
        shown[(second + values + radius)[is_named]] = law[is_named]
    else:
        shown[second + values + radius] = law * law[is_named].sum()
    return np.concatenate(([1 - shown.sum()], shown))


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_second_look_with_the_noise_of_the_first_breaks_two_looks(is_shared: bool) -> None:
    """A member counts in the second look but not in the first: the least count that is seen gives it away."""
    looks = two_looks(1, 1, 1)
    worst = max(
        worst_excess(
            joint_with_shared_noise(looks, first, second, is_shared=is_shared),
            joint_with_shared_noise(looks, first + more[0], second + more[1], is_shared=is_shared),
            looks.names_look.rho + looks.counts_look.rho,
            looks.currency.delta,
        )
        for first, second in product(range(1, 9), repeat=2)
        for more in ((0, 1), (1, 0), (1, 1))
    )
    assert (worst > CLEARLY) is is_shared
