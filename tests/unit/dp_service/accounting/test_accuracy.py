"""What is expected before asking agrees with what the mechanisms do."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dp_service.accounting.accuracy import (
    Found,
    GumbelThreshold,
    LaplaceThreshold,
    found_of_equals,
    mean_laplace_error,
)
from dp_service.mechanisms import Currency, Histogram, UnkGumb, UnkLap
from dp_service.mechanisms.unk_lap import threshold_shift
from dp_service.noise import KeyedNoise, KeyedStream

CURRENCY = Currency(Fraction("0.5"), Fraction("1e-3"))
RUNS = 1000
# Five standard deviations: with a fresh seed a test would fail by chance less often than once in 10^6 runs.
DEVIATIONS = 5.0
HALF, MOSTLY = Fraction(1, 2), Fraction("0.95")


def found_in(mechanism: UnkGumb | UnkLap, count: int, rest: int) -> float:
    """Return how often a single large element is found above d_bar equal ones, in runs with fixed seeds."""
    histogram = Histogram.from_element_order([count] + [rest] * mechanism.d_bar)
    runs = (KeyedNoise(KeyedStream(seed.to_bytes(32, "big"))) for seed in range(RUNS))
    return sum(0 in mechanism.run(histogram, noise).indices for noise in runs) / RUNS


@pytest.mark.slow
@pytest.mark.parametrize("tau", [1, 3])
@pytest.mark.parametrize("probability", [HALF, MOSTLY])
def test_an_element_of_the_needed_count_is_found_as_often_by_unk_gumb(
    tau: int, probability: Fraction
) -> None:
    """With k = d_bar the threshold index has no choice, so the law is the closed form's."""
    mechanism = UnkGumb(CURRENCY, k=4, d_bar=4, tau=tau)
    threshold = GumbelThreshold(CURRENCY.epsilon_per, CURRENCY.delta, tau, 4)
    above = threshold.needed(probability)
    expected = threshold.chance(above)
    assert threshold.chance(above - 1) < probability <= expected
    tolerance = DEVIATIONS * math.sqrt(expected * (1 - expected) / RUNS)
    assert found_in(mechanism, 7 + above, 7) == pytest.approx(expected, abs=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("delta_l0", [1, 2])
@pytest.mark.parametrize("probability", [HALF, MOSTLY])
def test_an_element_of_the_needed_count_is_found_as_often_by_unk_lap(
    delta_l0: int, probability: Fraction
) -> None:
    """The threshold is noisy and so is the count."""
    mechanism = UnkLap(CURRENCY, delta_l0=delta_l0, d_bar=4, tau=1)
    threshold = LaplaceThreshold(mechanism.count_inverse_scale, threshold_shift(mechanism))
    above = threshold.needed(probability)
    expected = threshold.chance(above)
    assert threshold.chance(above - 1) < probability <= expected
    tolerance = DEVIATIONS * math.sqrt(expected * (1 - expected) / RUNS)
    assert found_in(mechanism, 7 + above, 7) == pytest.approx(expected, abs=tolerance)


def test_the_height_for_the_default_parameters() -> None:
    """1 + ln(1000 / 1e-10) / 0.15 = 200.6 above the 1001st count."""
    threshold = GumbelThreshold(Fraction("0.15"), Fraction("1e-10"), 1, 1000)
    assert 200.6 == round(threshold.height, 1)
    assert 201 == threshold.needed(HALF)
    # ln(19) / 0.15 = 19.6 more for 95 %.
    assert 221 == threshold.needed(MOSTLY)


def test_an_element_that_is_no_candidate_is_never_found() -> None:
    """Strictly above the count at the threshold index, or not at all."""
    threshold = GumbelThreshold(Fraction(10), Fraction("0.5"), 1, 1)
    assert 0 == threshold.chance(0)
    assert threshold.chance(1) > 0


def test_lemma_8_1_follows_from_the_chance() -> None:
    """k elements at the lemma's height are all above bottom with probability 1 - beta: each misses it by beta / k."""
    k, beta, d_bar = 10, Fraction("0.05"), 1000
    threshold = GumbelThreshold(Fraction("0.15"), Fraction("1e-10"), 1, d_bar)
    lemma = 1 + math.log(d_bar / 1e-10) / 0.15 + math.log(k / beta) / 0.15
    assert 1 - threshold.chance(math.ceil(lemma)) <= beta / k
    assert threshold.needed(1 - beta / k) <= math.ceil(lemma)


@pytest.mark.parametrize("above", [-3, 0, 1, 40, 400])
def test_the_chance_of_unk_lap_is_a_difference_of_two_draws(above: int) -> None:
    """By adding up pairs of draws of the discrete Laplace law."""
    rate = Fraction("0.25")
    values = np.arange(-400, 401)
    mass = math.tanh(0.125) * np.exp(-0.25 * np.abs(values))
    difference = np.convolve(mass, mass[::-1])
    expected = difference[np.arange(-800, 801) > 30 - above].sum()
    assert LaplaceThreshold(rate, 30).chance(above) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"epsilon_per": Fraction(0)}, "epsilon_per"),
        ({"delta": Fraction(1)}, "delta"),
        ({"tau": 0}, "tau"),
        ({"index": 0}, "index"),
    ],
)
def test_arguments_are_named(changes: dict[str, Any], named: str) -> None:
    """What is out of range is refused by name."""
    good: dict[str, Any] = {"epsilon_per": Fraction(1), "delta": Fraction(1, 2), "tau": 1, "index": 1}
    with pytest.raises(ValueError, match=rf"^{named} must be"):
        GumbelThreshold(**(good | changes))


def test_certainty_is_not_to_be_had() -> None:
    """A probability of one would need an endless count."""
    with pytest.raises(ValueError, match=r"^probability must be"):
        LaplaceThreshold(Fraction(1), 10).needed(Fraction(1))


@pytest.mark.slow
@pytest.mark.parametrize(("k", "above"), [(3, 66), (5, 75), (1, 60)])
def test_what_is_found_of_equal_counts_is_what_the_mechanism_finds(k: int, above: int) -> None:
    """With d_bar = k the threshold's index is fixed; 1500 runs lie within six standard deviations of both numbers."""
    currency = Currency(Fraction(1, 5), Fraction(1, 10**5))
    mechanism = UnkGumb(currency, k, k, 1, with_counts=False)
    histogram = Histogram.from_element_order([above] * k + [0])
    expected = found_of_equals(GumbelThreshold(currency.epsilon_per, currency.delta, 1, k), k, above)
    trials = 1500
    runs = (KeyedNoise(KeyedStream(seed.to_bytes(32, "big"))) for seed in range(trials))
    sizes = [mechanism.run(histogram, noise).indices.size for noise in runs]
    assert sum(sizes) / trials == pytest.approx(expected.elements, abs=6 * k / (2 * trials**0.5))
    all_found = sum(size == k for size in sizes) / trials
    assert all_found == pytest.approx(expected.all_of_them, abs=6 / (2 * trials**0.5))
    assert 0.05 < expected.all_of_them < 0.95


def test_what_lies_at_the_cut_is_not_found() -> None:
    """Candidates lie strictly above it."""
    threshold = GumbelThreshold(Fraction(1, 5), Fraction(1, 10**5), 1, 10)
    assert found_of_equals(threshold, 10, 0) == Found(0.0, 0.0)


@pytest.mark.parametrize("scale", [0.7, 4.0, 13.333])
def test_the_mean_error_of_laplace_noise_is_the_sum_over_its_law(scale: float) -> None:
    """E|Z| of Pr[Z = z] proportional to exp(-|z| / scale)."""
    weights = {z: math.exp(-abs(z) / scale) for z in range(-1000, 1001)}
    mean = sum(abs(z) * weight for z, weight in weights.items()) / sum(weights.values())
    assert mean_laplace_error(scale) == pytest.approx(mean, rel=1e-9)
