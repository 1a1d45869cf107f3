"""Every mechanism keeps its promise: exact enumeration over all tiny histograms and all their neighbours.

The currency is generous so that thresholds are within reach of counts from 0 to 3. For Laplace mechanisms
the mass beyond the radius enters as an upper bound; it stays below 2e-4 where a delta is promised and below
1e-7 elsewhere.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms import Currency, KnownGumb, KnownLap, Mechanism, UnkGumb, UnkLap
from dp_service.mechanisms.unk_gumb import choose_threshold_index
from tests.support.some import some

from .enumeration import Law, Outcome, hockey_stick, output_law
from .neighbours import (
    Counts,
    Release,
    all_histograms,
    laws_over,
    laws_over_unknown_domain,
    neighbouring_pairs,
    over_known_domain,
)

DELTA = Fraction(1, 20)
TRUNCATION = 1e-7
"""What a promise of delta = 0 may miss for the mass beyond the radius."""


def currency(epsilon_per: int) -> Currency:
    """Return a generous currency."""
    return Currency(Fraction(epsilon_per), DELTA)


def known_laws(
    mechanism: Mechanism, histograms: list[Counts], *, radius: int = 12
) -> dict[Counts, Law[Release]]:
    """Return the laws of a mechanism over a known domain."""
    return laws_over(histograms, lambda counts: over_known_domain(mechanism, counts), radius=radius)


def unknown_laws(
    mechanism: UnkLap | UnkGumb, histograms: list[Counts], *, radius: int
) -> dict[Counts, Law[Release]]:
    """Return the laws of a mechanism over an unknown domain."""
    return laws_over_unknown_domain(mechanism, histograms, d_bar=mechanism.d_bar, radius=radius)


def worst_delta(
    laws: dict[Counts, Law[Release]], pairs: Iterable[tuple[Counts, Counts]], epsilon: float
) -> float:
    """Return the largest hockey-stick divergence over all pairs."""
    return max(hockey_stick(laws[first], laws[second], epsilon) for first, second in pairs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon_per", "delta_l0", "tau", "largest"), [(3, 1, 1, 2), (3, 2, 1, 2), (6, 1, 2, 3)]
)
def test_known_lap_is_half_delta_epsilon_dp(epsilon_per: int, delta_l0: int, tau: int, largest: int) -> None:
    """The whole list of noisy counts is (Delta e / 2)-DP, ties and order included."""
    histograms = all_histograms(2, largest)
    laws = known_laws(KnownLap(currency(epsilon_per), delta_l0, tau), histograms)
    pairs = neighbouring_pairs(histograms, tau=tau, delta_l0=delta_l0)
    assert worst_delta(laws, pairs, delta_l0 * epsilon_per / 2) < TRUNCATION


@pytest.mark.parametrize(("k", "tau"), [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2)])
def test_known_gumb_selection_is_k_epsilon_dp(k: int, tau: int) -> None:
    """The order of k elements without counts costs e for each."""
    histograms = all_histograms(3, 3)
    laws = known_laws(KnownGumb(currency(1), k, tau, with_counts=False), histograms)
    pairs = neighbouring_pairs(histograms, tau=tau, delta_l0=3)
    assert worst_delta(laws, pairs, k * 1.0) < TRUNCATION


@pytest.mark.parametrize("tau", [1, 2])
def test_known_gumb_of_one_element_is_bounded_range(tau: int) -> None:
    """All log-ratios between two neighbours lie in a range of length e, which is more than e-DP says."""
    histograms = all_histograms(3, 3)
    laws = known_laws(KnownGumb(currency(1), 1, tau, with_counts=False), histograms)
    for first, second in some(neighbouring_pairs(histograms, tau=tau, delta_l0=3)):
        assert log_ratio_range(laws[first], laws[second]) <= 1 + 1e-9


def test_known_gumb_with_counts_is_private_as_two_choices_per_element() -> None:
    """Selection and count of one element are (e + e/2)-DP, within the 2e that they are charged."""
    histograms = all_histograms(3, 2)
    laws = known_laws(KnownGumb(currency(3), 1, 1), histograms)
    pairs = neighbouring_pairs(histograms, tau=1, delta_l0=3)
    assert worst_delta(laws, pairs, 1.5 * 3) < TRUNCATION


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "largest", "radius"),
    [
        (UnkLap(currency(3), delta_l0=1, d_bar=2, tau=1), 2, 6),
        (UnkLap(currency(6), delta_l0=2, d_bar=2, tau=1), 2, 6),
        (UnkLap(currency(3), delta_l0=1, d_bar=1, tau=1), 3, 12),
        (UnkLap(currency(6), delta_l0=2, d_bar=1, tau=1), 3, 12),
        (UnkLap(currency(6), delta_l0=1, d_bar=1, tau=2), 3, 12),
    ],
)
def test_unk_lap_is_half_epsilon_dp_up_to_delta(mechanism: UnkLap, largest: int, radius: int) -> None:
    """Elements, counts and threshold together are (e / 2, delta)-DP, also where the cut falls in a tie."""
    histograms = all_histograms(3, largest)
    laws = unknown_laws(mechanism, histograms, radius=radius)
    pairs = neighbouring_pairs(histograms, tau=mechanism.tau, delta_l0=mechanism.delta_l0)
    assert worst_delta(laws, pairs, float(mechanism.currency.epsilon_per / 2)) <= DELTA


@pytest.mark.parametrize(
    ("k", "d_bar", "tau"), [(1, 1, 1), (1, 3, 1), (2, 2, 1), (2, 3, 1), (1, 3, 2), (2, 2, 2)]
)
def test_unk_gumb_selection_is_k_plus_one_epsilon_dp_up_to_delta(k: int, d_bar: int, tau: int) -> None:
    """Threshold index and k choices cost e each, four elements against a limit of at most four rows."""
    histograms = all_histograms(4, 2)
    laws = unknown_laws(UnkGumb(currency(1), k, d_bar, tau, with_counts=False), histograms, radius=0)
    pairs = neighbouring_pairs(histograms, tau=tau, delta_l0=4)
    assert worst_delta(laws, pairs, k + 1.0) <= DELTA


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "radius"),
    [
        (UnkGumb(currency(1), k=1, d_bar=3, tau=1), 25),
        (UnkGumb(currency(3), k=2, d_bar=2, tau=1), 6),
        (UnkGumb(currency(6), k=1, d_bar=2, tau=2), 8),
    ],
)
def test_unk_gumb_with_counts_keeps_its_worst_case_promise(mechanism: UnkGumb, radius: int) -> None:
    """With fresh counts the release is (information * e, delta)-DP at the information that is reserved."""
    histograms = all_histograms(3, 2)
    laws = unknown_laws(mechanism, histograms, radius=radius)
    pairs = neighbouring_pairs(histograms, tau=mechanism.tau, delta_l0=3)
    epsilon = mechanism.worst_case_cost().information * mechanism.currency.epsilon_per
    assert worst_delta(laws, pairs, float(epsilon)) <= DELTA


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "with_counts", "radius"), [(1, False, 0), (2, False, 0), (3, False, 0), (1, True, 25)]
)
def test_unk_gumb_keeps_its_promise_at_the_cost_of_each_outcome(
    k: int, with_counts: bool, radius: int
) -> None:
    """A short answer is charged less: the delta is kept with each outcome's own cost in place of the worst."""
    mechanism = UnkGumb(currency(1), k, d_bar=3, tau=1, with_counts=with_counts)
    histograms = all_histograms(3, 2)
    laws = unknown_laws(mechanism, histograms, radius=radius)
    for first, second in some(neighbouring_pairs(histograms, tau=1, delta_l0=3)):
        excess = laws[first].lost
        for outcome, probability in laws[first].mass.items():
            cost = mechanism.cost(len(outcome.elements), outcome.ended_in_bottom)
            excess += max(0.0, probability - math.exp(cost.information) * laws[second].mass.get(outcome, 0.0))
        assert excess <= DELTA


@pytest.mark.parametrize("tau", [1, 2])
def test_the_threshold_index_is_chosen_by_a_bounded_range_mechanism(tau: int) -> None:
    """Over four candidates the log-ratios of all indices lie in a range of length e; two could not show an error."""
    mechanism = UnkGumb(currency(1), 1, 4, tau)
    histograms = [counts for counts in all_histograms(4, 4) if list(counts) == sorted(counts, reverse=True)]
    laws = {
        counts: output_law(
            lambda noise, counts=counts: choose_threshold_index(  # type: ignore[misc]
                mechanism, np.array([9, *counts], dtype=np.int64), np.arange(1, 5), noise
            ),
            radius=0,
        )
        for counts in histograms
    }
    for first, second in some(neighbouring_pairs(histograms, tau=tau, delta_l0=4)):
        assert log_ratio_range(laws[first], laws[second]) <= 1 + 1e-9


def log_ratio_range(first: Law[Outcome], second: Law[Outcome]) -> float:
    """Return the length of the range of ln(P / Q) over all outcomes."""
    ratios = [math.log(first.mass[outcome] / second.mass[outcome]) for outcome in first.mass]
    return max(ratios) - min(ratios)
