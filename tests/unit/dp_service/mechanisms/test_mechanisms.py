"""What mechanisms return, refuse and cost."""

import math
from fractions import Fraction

import pytest

from dp_service.mechanisms import (
    Cost,
    Currency,
    Histogram,
    KnownGumb,
    KnownLap,
    Mechanism,
    Selection,
    UnkGumb,
    UnkLap,
)
from dp_service.mechanisms.unk_lap import threshold_shift
from dp_service.noise import KeyedNoise, KeyedStream
from dp_service.noise.distribution import laplace_difference_tail

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))
SHARP = Currency(Fraction(500), Fraction("1e-10"))
"""Noise so narrow that results can be read off; nothing of it is private."""


def keyed(seed: int = 0) -> KeyedNoise:
    """Return a fresh source of noise."""
    return KeyedNoise(KeyedStream(seed.to_bytes(32, "big")))


def histogram(*counts: int) -> Histogram:
    """Return counts of elements 0, 1, 2 and so on."""
    return Histogram.from_element_order(counts)


def released(selection: Selection) -> tuple[list[int], list[int] | None, bool]:
    """Return a selection as plain values."""
    counts = None if selection.noisy_counts is None else selection.noisy_counts.tolist()
    return selection.indices.tolist(), counts, selection.ended_in_bottom


def test_known_lap_returns_the_whole_domain_in_order() -> None:
    """Zeros are part of it, and equal counts stand in the order of the elements."""
    selection = KnownLap(SHARP, 1, 1).run(histogram(0, 7, 3, 7), keyed())
    assert released(selection) == ([1, 3, 2, 0], [7, 7, 3, 0], False)


@pytest.mark.parametrize(("k", "shown"), [(2, [3, 1]), (4, [3, 1, 2, 0])])
def test_known_gumb_returns_the_k_largest_with_counts(k: int, shown: list[int]) -> None:
    """With almost no noise they are the true ones; k may be the size of the domain."""
    counts = [0, 7, 3, 9]
    selection = KnownGumb(SHARP, k, 1).run(histogram(*counts), keyed())
    assert released(selection) == (shown, [counts[element] for element in shown], False)


def test_unk_lap_returns_what_is_above_the_threshold_and_the_threshold() -> None:
    """Next to no noise: the threshold is h_(d_bar+1) + C and only larger counts come out."""
    mechanism = UnkLap(SHARP, 1, 3, 1)
    selection = mechanism.run(histogram(1, 90, 1, 80), keyed())
    assert released(selection) == ([1, 3], [90, 80], True)
    assert selection.bottom == 1 + threshold_shift(mechanism)


@pytest.mark.parametrize(("above_shift", "shown"), [(0, []), (1, [0])])
def test_unk_lap_shows_only_what_exceeds_the_threshold(above_shift: int, shown: list[int]) -> None:
    """A noisy count that equals bottom is not shown: the probability of C is one of strict excess."""
    mechanism = UnkLap(SHARP, 1, 1, 1)
    count = 1 + threshold_shift(mechanism) + above_shift
    assert shown == mechanism.run(histogram(count, 1), keyed()).indices.tolist()


def test_unk_gumb_ends_in_bottom_when_nothing_else_beats_it() -> None:
    """Two elements are far above the rest, so a top-3 has two of them and bottom."""
    selection = UnkGumb(SHARP, 3, 3, 1).run(histogram(1, 90, 1, 80), keyed())
    assert released(selection) == ([1, 3], [90, 80], True)


def test_unk_gumb_stops_at_k() -> None:
    """With enough elements above the threshold bottom is never met."""
    selection = UnkGumb(SHARP, 1, 3, 1).run(histogram(1, 90, 1, 80), keyed())
    assert released(selection) == ([1], [90], False)


@pytest.mark.parametrize("mechanism", [KnownGumb(SHARP, 1, 1, False), UnkGumb(SHARP, 1, 3, 1, False)])
def test_counts_may_be_omitted(mechanism: Mechanism) -> None:
    """The selection then carries None in place of noisy counts."""
    assert released(mechanism.run(histogram(1, 90, 2), keyed())) == ([1], None, False)


@pytest.mark.parametrize("mechanism", [UnkLap(CURRENCY, 1, 5, 1), UnkGumb(CURRENCY, 2, 5, 1)])
@pytest.mark.parametrize("counts", [(), (0,), (0, 0, 0, 0, 0, 0)])
def test_an_unknown_domain_without_members_releases_only_bottom(
    mechanism: Mechanism, counts: tuple[int, ...]
) -> None:
    """Zeros and missing rows are never elements, whatever the noise."""
    for seed in range(50):
        selection = mechanism.run(histogram(*counts), keyed(seed))
        assert (selection.indices.tolist(), selection.ended_in_bottom) == ([], True)


@pytest.mark.parametrize("mechanism", [UnkLap(Currency(Fraction(1, 10), Fraction(9, 10)), 1, 5, 1)])
def test_zero_counts_never_come_out_even_under_a_low_threshold(mechanism: UnkLap) -> None:
    """With delta 0.9 and wide noise nearly everything passes, but an element that nobody has does not."""
    emitted = {
        i for seed in range(200) for i in mechanism.run(histogram(0, 5, 0), keyed(seed)).indices.tolist()
    }
    assert emitted == {1}


@pytest.mark.parametrize(
    ("mechanism", "worst"),
    [
        (KnownLap(CURRENCY, 4, 1), Cost(4, 0)),
        (KnownGumb(CURRENCY, 7, 1), Cost(14, 0)),
        (KnownGumb(CURRENCY, 7, 1, with_counts=False), Cost(7, 0)),
        (UnkLap(CURRENCY, 4, 9, 1), Cost(1, 1)),
        (UnkGumb(CURRENCY, 7, 9, 1), Cost(15, 1)),
        (UnkGumb(CURRENCY, 7, 9, 1, with_counts=False), Cost(8, 1)),
    ],
)
def test_worst_cases_are_those_of_the_table(mechanism: Mechanism, worst: Cost) -> None:
    """What has to be reserved, for each mechanism with and without counts."""
    assert worst == mechanism.worst_case_cost()


@pytest.mark.parametrize(
    ("with_counts", "found", "ended_in_bottom", "information"),
    [
        (True, 0, True, 2),
        (True, 6, True, 14),
        (True, 7, False, 15),
        (False, 6, True, 8),
        (False, 7, False, 8),
    ],
)
def test_unk_gumb_costs_what_was_released(
    with_counts: bool, found: int, ended_in_bottom: bool, information: int
) -> None:
    """2j + 2 or 2k + 1 with counts, j + 2 or k + 1 without."""
    mechanism = UnkGumb(CURRENCY, 7, 9, 1, with_counts)
    assert Cost(information, calls=1) == mechanism.cost(found, ended_in_bottom)


@pytest.mark.parametrize(
    ("epsilon", "delta_l0", "d_bar", "tau"), [("0.15", 1, 1000, 1), ("0.15", 5, 1000, 3), ("2", 3, 2, 1)]
)
def test_the_shift_of_unk_lap_is_the_smallest_that_keeps_delta(
    epsilon: str, delta_l0: int, d_bar: int, tau: int
) -> None:
    """(e^(e/2) + 1) min(Delta, d_bar) Pr[Z1 - Z2 > C - tau] is at most delta at C, and above it at C - 1."""
    mechanism = UnkLap(Currency(Fraction(epsilon), Fraction("1e-10")), delta_l0, d_bar, tau)
    shift = threshold_shift(mechanism)

    def excess_delta(candidate: int) -> float:
        tail = laplace_difference_tail(mechanism.count_inverse_scale, candidate - tau + 1)
        return (math.exp(float(epsilon) / 2) + 1) * min(delta_l0, d_bar) * float(tail.mid)

    assert excess_delta(shift) <= 1e-10 < excess_delta(shift - 1)


@pytest.mark.parametrize(
    ("epsilon", "delta_l0", "tau"), [("0.15", 1, 1), ("0.15", 5, 3), ("0.01", 2, 1), ("1", 1, 4)]
)
def test_the_papers_closed_form_bounds_the_shift_from_above(epsilon: str, delta_l0: int, tau: int) -> None:
    """C <= ceil(tau (1 + 2 Delta ln(Delta / delta_hat) / e)) with the paper's delta_hat, and not far below."""
    shift = threshold_shift(UnkLap(Currency(Fraction(epsilon), Fraction("1e-10")), delta_l0, 1000, tau))
    closed = tau * (1 + 2 * delta_l0 * papers_log_ratio(float(epsilon), 1e-10, delta_l0) / float(epsilon))
    assert 0.98 * closed <= shift <= math.ceil(closed)


def papers_log_ratio(epsilon_per: float, delta: float, delta_l0: int) -> float:
    """Solve delta = delta_hat / 4 (e^(e/2) + 1) (3 + ln(Delta / delta_hat)) for ln(Delta / delta_hat) by bisection."""
    low, high = 0.0, 200.0
    for _ in range(200):
        middle = (low + high) / 2
        at_middle = delta_l0 * math.exp(-middle) / 4 * (math.exp(epsilon_per / 2) + 1) * (3 + middle)
        low, high = (middle, high) if at_middle > delta else (low, middle)
    return high


def test_the_largest_count_is_accepted() -> None:
    """2^53 is a count, and noise on it does not wrap."""
    noisy = KnownLap(CURRENCY, 1, 1).run(histogram(2**53), keyed()).noisy_counts
    assert noisy is not None
    assert abs(int(noisy[0]) - 2**53) < 1000
