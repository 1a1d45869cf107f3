"""Gaussian counts: the same zCDP as Laplace ones at less noise, and no more than that."""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms import CountNoise, Currency, KnownGumb, UnkGumb, count_noise
from dp_service.mechanisms.count_noise import gaussian_variance
from dp_service.mechanisms.intervals import gaussian_half_width, gaussian_noise_interval

from .enumeration import Law, certain_hockey_stick, hockey_stick, output_law
from .neighbours import (
    Counts,
    Release,
    all_histograms,
    laws_over,
    neighbouring_pairs,
    over_known_domain,
    over_unknown_domain,
)

DELTA = Fraction(1, 20)
ORDERS = (1.01, 1.5, 2, 4, 16)
FAR_ABOVE: list[Counts] = [(a, b, c) for a in (20, 21) for b in (9, 10) for c in (0, 1)]


def known_gumb(epsilon_per: int, tau: int, law: CountNoise = CountNoise.GAUSSIAN) -> KnownGumb:
    """Return a top one with counts."""
    return KnownGumb(Currency(Fraction(epsilon_per), DELTA), 1, tau, count_noise=law)


def worst_zcdp(laws: dict[Counts, Law[Release]], pairs: Iterable[tuple[Counts, Counts]]) -> float:
    """Return the largest Renyi divergence of order alpha divided by alpha: the rho of zCDP, over all pairs."""
    return max(
        renyi_divergence(laws[first], laws[second], order) / order
        for first, second in pairs
        for order in ORDERS
    )


def renyi_divergence(first: Law[Release], second: Law[Release], order: float) -> float:
    """Return the divergence of one order, over the outcomes within the radius."""
    total = math.fsum(
        math.exp(order * math.log(mass) + (1 - order) * math.log(second.mass[outcome]))
        for outcome, mass in first.mass.items()
        # What is rarer than the smallest float has no part in any sum.
        if mass > 0 and second.mass.get(outcome, 0.0) > 0
    )
    return math.log(total) / (order - 1)


@pytest.mark.parametrize("law", CountNoise)
@pytest.mark.parametrize(("epsilon_per", "tau"), [(1, 1), (3, 1), (2, 2)])
def test_either_law_costs_two_units_of_zcdp(law: CountNoise, epsilon_per: int, tau: int) -> None:
    """One element with its count is (2 e^2 / 8)-zCDP, at small counts and far above them, in both directions."""
    mechanism = known_gumb(epsilon_per, tau, law)
    promised = 2 * epsilon_per**2 / 8
    for histograms in (all_histograms(3, 2), FAR_ABOVE):
        laws = laws_over(histograms, lambda counts: over_known_domain(mechanism, counts), radius=60)
        pairs = neighbouring_pairs(histograms, tau=tau, delta_l0=3)
        assert worst_zcdp(laws, pairs) <= promised * (1 + 1e-9)


def test_half_the_variance_would_break_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same test finds Gaussian noise of half its variance."""
    monkeypatch.setattr(count_noise, "gaussian_variance", lambda inverse_scale: 1 / inverse_scale**2 / 2)
    laws = laws_over(FAR_ABOVE, lambda counts: over_known_domain(known_gumb(1, 1), counts), radius=60)
    assert worst_zcdp(laws, neighbouring_pairs(FAR_ABOVE, tau=1, delta_l0=3)) > 0.25 * 1.05


def test_gaussian_counts_are_not_dp_at_the_price_of_their_units() -> None:
    """Two units of e-DP are promised without a delta; Laplace counts leave none, Gaussian ones do."""
    pair = (20, 0), (21, 0)
    laws = [output_law(over_known_domain(known_gumb(1, 1), counts), radius=30) for counts in pair]
    assert certain_hockey_stick(laws[1], laws[0], 2.0) > 1e-6
    laplace = [
        output_law(over_known_domain(known_gumb(1, 1, CountNoise.LAPLACE), counts), radius=60)
        for counts in pair
    ]
    assert certain_hockey_stick(laplace[1], laplace[0], 2.0) <= 0


@pytest.mark.parametrize("slack", [0.05, 1e-3])
@pytest.mark.parametrize(("k", "d_bar"), [(1, 2), (1, 3)])
def test_unk_gumb_with_gaussian_counts_keeps_its_zcdp_and_delta(k: int, d_bar: int, slack: float) -> None:
    """Converted to (epsilon, delta)-DP (Bun and Steinke, lemma 3.5), around the threshold and far above it."""
    mechanism = UnkGumb(Currency(Fraction(2), DELTA), k, d_bar, 1, count_noise=CountNoise.GAUSSIAN)
    rho = mechanism.worst_case_cost().information * 2**2 / 8
    epsilon = rho + 2 * math.sqrt(rho * math.log(1 / slack))
    for histograms in (all_histograms(3, 2), FAR_ABOVE):
        laws = laws_over(
            histograms, lambda counts: over_unknown_domain(mechanism, counts, d_bar=d_bar), radius=20
        )
        for first, second in neighbouring_pairs(histograms, tau=1, delta_l0=3):
            assert hockey_stick(laws[first], laws[second], epsilon) <= DELTA + slack


@pytest.mark.parametrize(("epsilon_per", "tau"), [("0.15", 1), ("1", 3)])
def test_gaussian_counts_have_71_percent_of_the_noise(epsilon_per: str, tau: int) -> None:
    """sigma = 2 tau / e, where the Laplace law of the same zCDP has sqrt(2) times as much."""
    mechanism = KnownGumb(Currency(Fraction(epsilon_per), DELTA), 1, tau)
    variance = gaussian_variance(mechanism.count_inverse_scale)
    assert variance == 4 * tau**2 / Fraction(epsilon_per) ** 2
    assert math.sqrt(variance) / (math.sqrt(2) / mechanism.count_inverse_scale) == pytest.approx(
        0.7071, abs=1e-4
    )


def test_the_law_of_counts_does_not_touch_the_selection() -> None:
    """Which element comes out has the same probability under both."""
    chosen = []
    for law in CountNoise:
        whole = output_law(over_known_domain(known_gumb(1, 1, law), (3, 1, 0)), radius=60)
        chosen.append(
            [
                math.fsum(mass for outcome, mass in whole.mass.items() if outcome.elements == (element,))
                for element in range(3)
            ]
        )
    assert chosen[0] == pytest.approx(chosen[1], abs=1e-9)


@pytest.mark.parametrize("alpha", [Fraction(1, 3), Fraction(1, 20), Fraction(1, 10**6)])
@pytest.mark.parametrize(
    "variance", [Fraction(1, 9), Fraction(1), Fraction(4, 9), Fraction(1600, 9), Fraction(10**6)]
)
def test_gaussian_intervals_cover(variance: Fraction, alpha: Fraction) -> None:
    """Exact summation: at least 1 - alpha, and two less in width would not do."""
    width = gaussian_half_width(variance, alpha)
    z = np.arange(-math.ceil(40 * math.sqrt(variance)) - 2, math.ceil(40 * math.sqrt(variance)) + 3)
    mass = np.exp(-(z.astype(np.float64) ** 2) / (2 * float(variance)))
    outside = math.fsum(mass[np.abs(z) > width]) / math.fsum(mass)
    assert outside <= alpha
    assert width < 2 or math.fsum(mass[np.abs(z) > width - 2]) / math.fsum(mass) > alpha
    interval = gaussian_noise_interval(np.array([500, -(10**9)]), variance, alpha=alpha, minimum=1)
    assert interval.upper.tolist() == [500 + width, 1]
    assert interval.lower.tolist() == [max(1, 500 - width), 1]


def test_an_interval_needs_a_variance() -> None:
    """Zero and less are refused by name."""
    with pytest.raises(ValueError, match="variance must be positive"):
        gaussian_half_width(Fraction(0), Fraction(1, 20))
