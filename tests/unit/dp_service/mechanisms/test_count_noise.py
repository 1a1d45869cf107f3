"""Gaussian counts: the same zCDP as Laplace ones at less noise, and no more than that."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms import CountNoise, Currency, KnownGumb, count_noise
from dp_service.mechanisms.count_noise import gaussian_variance
from dp_service.mechanisms.intervals import gaussian_half_width, gaussian_noise_interval
from dp_service.noise.gaussian_price import DISCRETENESS
from tests.support.examples import long_but

from .enumeration import certain_hockey_stick, output_law
from .neighbours import over_known_domain
from .zcdp import DELTA, KNOWN, SLACKS, SMALL, UNKNOWN, GaussianPromise, far_above, known_gumb


@pytest.mark.slow
@pytest.mark.parametrize("promise", long_but(lambda promise: promise.mechanism.k == 1, KNOWN), ids=str)
def test_gaussian_counts_cost_their_units_of_zcdp(promise: GaussianPromise) -> None:
    """Elements with their counts cost e^2 / 8 for each unit charged, around zero and far above, in both directions."""
    assert promise.worst_rho() <= promise.rho * (1 + 1e-9)


@pytest.mark.slow
def test_laplace_counts_cost_no_more_zcdp() -> None:
    """The other law at the same price."""
    for histograms in (SMALL, far_above(1)):
        promise = GaussianPromise(known_gumb(1, 1, 1, CountNoise.LAPLACE), tuple(histograms), radius=60)
        assert promise.worst_rho() <= promise.rho * (1 + 1e-9)


def test_half_the_variance_would_break_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same test finds Gaussian noise of half its variance."""
    monkeypatch.setattr(count_noise, "gaussian_variance", lambda inverse_scale: 1 / inverse_scale**2 / 2)
    promise = GaussianPromise(known_gumb(1, 1, 1), tuple(far_above(1)), radius=60)
    assert promise.worst_rho() > promise.rho * 1.05


def test_gaussian_counts_are_not_dp_at_the_price_of_their_units() -> None:
    """Two units of e-DP are promised without a delta; Laplace counts leave none, Gaussian ones do."""
    pair = (20, 0), (21, 0)
    laws = [output_law(over_known_domain(known_gumb(1, 1, 1), counts), radius=30) for counts in pair]
    assert certain_hockey_stick(laws[1], laws[0], 2.0) > 1e-6
    laplace = [
        output_law(over_known_domain(known_gumb(1, 1, 1, CountNoise.LAPLACE), counts), radius=60)
        for counts in pair
    ]
    assert certain_hockey_stick(laplace[1], laplace[0], 2.0) <= 0


@pytest.mark.slow
@pytest.mark.parametrize("promise", long_but(lambda promise: promise.mechanism.k == 1, UNKNOWN), ids=str)
def test_unk_gumb_with_gaussian_counts_keeps_its_zcdp_and_delta(promise: GaussianPromise) -> None:
    """Converted to (epsilon, delta)-DP, around the threshold and far above it."""
    assert promise.worst_excess(SLACKS) <= DELTA


@pytest.mark.parametrize(("epsilon_per", "tau"), [("0.15", 1), ("1", 3)])
def test_gaussian_counts_have_71_percent_of_the_noise(epsilon_per: str, tau: int) -> None:
    """sigma = 2 tau / e but for the 1/11, where the Laplace law of the same zCDP has sqrt(2) times as much."""
    mechanism = KnownGumb(Currency(Fraction(epsilon_per), DELTA), 1, tau)
    variance = gaussian_variance(mechanism.count_inverse_scale)
    assert variance == 4 * tau**2 / Fraction(epsilon_per) ** 2 + DISCRETENESS
    assert math.sqrt(variance) / (math.sqrt(2) / mechanism.count_inverse_scale) == pytest.approx(
        0.7071, abs=1e-3
    )


def test_the_law_of_counts_does_not_touch_the_selection() -> None:
    """Which element comes out has the same probability under both."""
    chosen = []
    for law in CountNoise:
        whole = output_law(over_known_domain(known_gumb(1, 1, 1, law), (3, 1, 0)), radius=60)
        chosen.append(
            [
                math.fsum(mass for outcome, mass in whole.mass.items() if outcome.elements == (element,))
                for element in range(3)
            ]
        )
    assert chosen[0] == pytest.approx(chosen[1], abs=1e-9)


@pytest.mark.slow
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
