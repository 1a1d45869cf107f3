"""What goes wrong where the mechanisms or their use are changed: each change breaks a promise that is kept without it.

Thresholds are patched in the code; what surrounds a mechanism (how members are bounded, what n counts, whose noise is
used) is changed in the data that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import accumulate, product

import numpy as np
import pytest

from dp_service.mechanisms import Histogram
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound, Counted, TwoLooks, bound_gauss
from dp_service.mechanisms.bounded.threshold import hiding_threshold
from dp_service.mechanisms.rows import Rows
from dp_service.noise import KeyedNoise, KeyedStream, NoiseSource
from dp_service.noise.gaussian_price import DISCRETENESS
from tests.mechanisms.enumeration import certain_hockey_stick, output_law

from .laws import ROUNDING_ERROR, Floats, masses, reach, worst_excess
from .member_data import Counts, DataSet, distinct_counts, histogram
from .promises import (
    BothLooks,
    DistinctLook,
    OneLook,
    Promise,
    Shifted,
    everyone,
    one_look,
    shift,
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
        ("Delta_0", OneLook(one_look(3, 1), 3, 1)),
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
            case "Delta_0":
                return hiding_threshold(replace(bound, delta_0=1), variance, delta, min_count)
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


@pytest.mark.slow
def test_a_sharpening_that_does_not_bound_or_is_not_paid_breaks_its_price() -> None:
    """Its members are bounded within the names as those of the second look, and its units are added to all others."""
    more = one_look(1, None, units=2)
    promise = BothLooks(
        two_looks(1, 1, 4), 4, 1, base=everyone(4, 20), added=[tuple_of_all(4)], sharpened=(more,)
    )
    assert is_kept(promise)

    # Rho is 1 of the names and 12 of counts, of 4 that are paid.
    assert replace(promise, counts_of=not_bounded).worst().relative_rho > 2.5
    unpaid = replace(promise, sharpened=())
    assert promise.worst().relative_rho * float(promise.rho) > 1.5 * float(unpaid.rho)


@pytest.mark.parametrize("is_reused", [False, True])
def test_a_sharpening_with_the_randomness_of_an_earlier_look_breaks_its_price(is_reused: bool) -> None:
    """Two counts of different noise from the same uniform number: their difference gives the true count away."""
    looks = [one_look(1, None, units=1), one_look(1, None, units=2)]
    laws = []
    for count in (5, 6):
        law: dict[tuple[int, int], float] = {}
        for first, second, mass in paired_noise(looks[0].variance, looks[1].variance, is_reused=is_reused):
            key = (count + first, count + second)
            law[key] = law.get(key, 0.0) + mass
        laws.append(law)
    keys = sorted(set(laws[0]) | set(laws[1]))
    first_law, second_law = (np.array([law.get(key, 0.0) for key in keys]) for law in laws)
    excess = worst_excess(first_law, second_law, looks[0].rho + looks[1].rho, Fraction(0))
    assert (excess > 0.05) is is_reused


def paired_noise(first: Fraction, second: Fraction, *, is_reused: bool) -> list[tuple[int, int, float]]:
    """Return pairs of draws with their probability: independent, or both by inversion of one uniform number."""
    values = [range(-reach(variance), reach(variance) + 1) for variance in (first, second)]
    if not is_reused:
        return [
            (one, other, float(p * q))
            for one, p in zip(values[0], masses(first), strict=True)
            for other, q in zip(values[1], masses(second), strict=True)
        ]
    ends = [list(accumulate(map(float, masses(variance)))) for variance in (first, second)]
    found, start, places = [], 0.0, [0, 0]
    while all(place < len(each) for place, each in zip(places, ends, strict=True)):
        end = min(ends[0][places[0]], ends[1][places[1]])
        found.append((values[0][places[0]], values[1][places[1]], end - start))
        start = end
        places = [place + (each[place] <= end) for place, each in zip(places, ends, strict=True)]
    return found


def test_one_source_of_noise_cannot_serve_two_looks() -> None:
    """The labels of the first look are used up: an error, and no answer."""
    looks = two_looks(1, 1, 2)
    noise = KeyedNoise(KeyedStream(bytes(32)))
    looks.draw_names(Histogram.from_element_order([9, 8]), noise)
    with pytest.raises(ValueError, match="drawn from already"):
        looks.draw_counts(Histogram.from_element_order([9, 8]), noise)


def test_a_total_without_noise_breaks_the_shift() -> None:
    """n alone says whether a member is there."""
    promise = Shifted(shift(1, 1), 2)
    assert is_kept(promise)
    assert replace(promise, hides_total=False).worst().excess > 0.5


@pytest.mark.parametrize(
    ("total_of", "relative_rho"),
    [
        (lambda data: 7, 2.2),
        (lambda data: histogram(data, ContributionBound(2), 2)[0], 1.1),
    ],
    ids=["of another version of the data", "of the first element alone"],
)
def test_a_total_of_other_members_breaks_the_shift(
    total_of: Callable[[DataSet], int], relative_rho: float
) -> None:
    """Who counts in an element but not in n moves it by 2, which is four times the price."""
    promise = Shifted(shift(2, 2), 2)
    assert is_kept(promise)
    wrong = replace(promise, total_of=total_of).worst()
    assert wrong.relative_rho > relative_rho
    assert wrong.excess > ROUNDING_ERROR


def test_breaking_ties_by_true_rank_breaks_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal noisy counts in the order of the true counts reveal that order."""
    look = one_look(1, None)

    def delta_between(first: Counts, second: Counts) -> float:
        laws = [output_law(partial(order_of, look, counts), radius=9) for counts in (first, second)]
        return certain_hockey_stick(laws[0], laws[1], 12)

    assert delta_between((1, 2), (2, 2)) < 1e-4
    monkeypatch.setattr(Rows, "descending", lambda rows, noisy: np.lexsort((-rows.counts, -noisy)))
    assert delta_between((1, 2), (2, 2)) > 0.05


def order_of(look: BoundGauss, counts: Counts, noise: NoiseSource) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what a look releases: elements and noisy counts."""
    selection = look.run(Histogram.from_element_order(counts), noise)
    assert selection.noisy_counts is not None
    return tuple(selection.indices.tolist()), tuple(selection.noisy_counts.tolist())
