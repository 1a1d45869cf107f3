"""The attacks of Rogers et al. 2020, section 8.3: its numbers, and each probability a second time by another way."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp

from dp_service.mechanisms import Currency, UnkGumb, UnkLap
from dp_service.mechanisms.unk_gumb import are_candidates, selection_weights
from dp_service.mechanisms.unk_lap import threshold_shift
from dp_service.noise.distribution import laplace_difference_tail
from gris_cli.plan.attack_chances import averaging, differencing, unique_member
from tests.support.masses import laplace_mass

DEFAULT = Fraction("0.15")
CURRENCY = Currency(DEFAULT, Fraction("1e-10"))


def test_thirty_days_of_averaging() -> None:
    """11.55 % by the paper's normal approximation, 11.69 % for continuous noise, 11.31 % or 12.08 % for whole noise."""
    found = averaging(DEFAULT, 30)
    assert 11.55 == round(100 * found.normal, 2)
    assert 11.69 == round(100 * found.continuous, 2)
    assert 11.31 == round(100 * found.discrete, 2)
    assert 12.08 == round(100 * found.discrete_with_ties, 2)


@pytest.mark.slow
@pytest.mark.parametrize("answers", [1, 2, 7, 30])
@pytest.mark.parametrize("epsilon_per", ["0.15", "1", "6"])
def test_continuous_averaging_is_the_inverse_fourier_transform(answers: int, epsilon_per: str) -> None:
    """Gil-Pelaez: Pr[|S| < c] is an integral over the characteristic function (1 + u^2)^-n, u in units of the scale."""
    bound = float(epsilon_per) * answers / 4
    integral = mp.quad(
        lambda u: bound * mp.sinc(bound * u) * (1 + u * u) ** -answers, [*range(0, 10), *range(10, 210, 10)]
    )
    found = averaging(Fraction(epsilon_per), answers).continuous
    # Beyond 200 the integrand is below u^-3, and for more than one answer below u^-5.
    assert found == pytest.approx(float(2 * integral / mp.pi), abs=1e-5 if answers == 1 else 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("answers", [1, 2, 3, 30])
@pytest.mark.parametrize("epsilon_per", ["0.15", "1", "6"])
def test_discrete_averaging_is_a_convolution(answers: int, epsilon_per: str) -> None:
    """The law of the sum, convolved term by term from the masses that the sampler is built on."""
    e = Fraction(epsilon_per)
    reach = math.ceil(80 / float(e))
    single = np.array([float(laplace_mass(e / 2, z).mid) for z in range(-reach, reach + 1)])
    total = np.ones(1)
    for _ in range(answers):
        total = np.convolve(total, single)
    middle = answers * reach
    found = averaging(e, answers)
    strictly, at_most = math.ceil(answers / 2) - 1, answers // 2
    assert found.discrete == pytest.approx(total[middle - strictly : middle + strictly + 1].sum(), rel=1e-9)
    assert found.discrete_with_ties == pytest.approx(
        total[middle - at_most : middle + at_most + 1].sum(), rel=1e-9
    )


def test_differencing_with_the_papers_noise() -> None:
    """p = 0.0368, 738 elements, and 4 * 738 + 2 units, about the 3000 of the default budget."""
    found = differencing(DEFAULT, whole_noise=False)
    assert 0.0368 == round(found.exact_count, 4)
    assert (738, 2954) == (found.elements, found.information)


def test_differencing_with_the_noise_that_is_built() -> None:
    """Pr[Z = 0] = 0.0375, so 711 elements; the mass is the sampler's own."""
    found = differencing(DEFAULT, whole_noise=True)
    assert 0.0375 == round(found.exact_count, 4)
    assert found.exact_count == pytest.approx(float(laplace_mass(DEFAULT / 2, 0).mid), rel=1e-12)
    assert (711, 2846) == (found.elements, found.information)


@pytest.mark.parametrize("whole_noise", [False, True])
@pytest.mark.parametrize("epsilon_per", ["0.01", "0.15", "2", "10"])
def test_the_expected_overlap_stays_below_one(epsilon_per: str, whole_noise: bool) -> None:
    """k p^2 < 1 for the limit and not for one element more."""
    found = differencing(Fraction(epsilon_per), whole_noise=whole_noise)
    assert found.elements * found.exact_count**2 < 1 <= (found.elements + 1) * found.exact_count**2


def test_a_unique_members_element_by_both_formulas() -> None:
    """The paper's l delta exp(-e) is 1 in 387 million; what holds, l delta, is 1 in 333 million."""
    found = unique_member(DEFAULT, Fraction("1e-10"), calls=30, d_bar=1000)
    assert 387 == round(1 / found.paper / 1e6)
    assert 333 == round(1 / found.unk_gumb / 1e6)
    assert found.unk_gumb_few == pytest.approx(30e-10 / (1 + 1e-10), rel=1e-15)
    assert found.paper < found.unk_gumb_few < found.unk_gumb


def test_a_bound_on_a_probability_is_at_most_one() -> None:
    """Adding up over a thousand elements and calls would say 240,000."""
    assert 1 == unique_member(DEFAULT, Fraction(1, 2), calls=1000, d_bar=1000).unk_lap


@pytest.mark.parametrize("index", [5, 40, 100])
def test_the_bound_for_unk_gumb_is_reached_by_the_mechanism(index: int) -> None:
    """As many unique elements as the threshold counts on: bottom is beaten with probability delta / (1 + delta)."""
    mechanism = UnkGumb(Currency(DEFAULT, Fraction("1e-2")), k=5, d_bar=100, tau=1)
    counts = np.zeros(101, dtype=np.int64)
    counts[:index] = 1
    weights = selection_weights(mechanism, counts, index, cut=0)
    odds = [
        math.exp(float(weights.unit) * int(weights.multiples[i])) * float(weights.odds(i))
        for i in range(len(weights))
        if weights.is_eligible(i)
    ]
    shown = sum(odds[:-1]) / sum(odds)
    few = unique_member(DEFAULT, Fraction("1e-2"), calls=1, d_bar=100).unk_gumb_few
    assert shown == pytest.approx(few, rel=1e-12)


def test_unique_elements_that_fill_the_table_are_never_candidates() -> None:
    """With d_bar + 1 of them none is strictly above the threshold's count, the case that the paper calls the worst."""
    counts = np.ones(101, dtype=np.int64)
    assert not any(are_candidates(counts, int(counts[index])).any() for index in range(5, 101))


@pytest.mark.parametrize("delta_l0", [1, 3])
def test_the_bound_for_unk_lap_holds_for_its_own_threshold(delta_l0: int) -> None:
    """Each of d_bar unique elements passes with Pr[Z1 - Z2 > C - 1]; the union is within, and it is no loose bound."""
    mechanism = UnkLap(CURRENCY, delta_l0=delta_l0, d_bar=1000, tau=1)
    passes = float(laplace_difference_tail(mechanism.count_inverse_scale, threshold_shift(mechanism)).mid)
    bound = unique_member(DEFAULT, Fraction("1e-10"), calls=30, d_bar=1000, delta_l0=delta_l0).unk_lap
    assert 0.8 * bound < 30 * 1000 * passes <= bound


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: averaging(Fraction(0), 30), "epsilon_per"),
        (lambda: averaging(DEFAULT, 0), "answers"),
        (lambda: averaging(DEFAULT, 1001), "answers"),
        (lambda: differencing(Fraction(11), whole_noise=True), "epsilon_per"),
        (lambda: unique_member(DEFAULT, Fraction(1), calls=1, d_bar=1), "delta"),
        (lambda: unique_member(DEFAULT, Fraction(1, 2), calls=-1, d_bar=1), "calls"),
        (lambda: unique_member(DEFAULT, Fraction(1, 2), calls=1, d_bar=0), "d_bar"),
        (lambda: unique_member(DEFAULT, Fraction(1, 2), calls=1, d_bar=1, delta_l0=0), "delta_l0"),
    ],
)
def test_arguments_are_named(call: Any, named: str) -> None:
    """What is out of range is refused by name."""
    with pytest.raises(ValueError, match=rf"^{named} must be"):
        call()
