"""The exact discrete Gaussian sampler."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.noise import KeyedStream
from dp_service.noise.discrete_gaussian import (
    acceptance,
    discrete_gaussian,
    laplace_scale,
    rejection_exponent,
)
from dp_service.noise.distribution import gaussian_tail
from tests.support.masses import gaussian_mass, laplace_mass
from tests.support.some import some

from .scripts import ScriptedUniforms
from .statistics import chi_squared_p_value

VARIANCES = [Fraction(1, 4), Fraction(1), Fraction(1600, 9), Fraction(10**6), Fraction(10**12)]
SIZE = 100_000
LEVEL = 1e-6
"""A right sampler fails a chi-squared test with this probability, over all seeds; the seed here is fixed."""


def draws(variance: Fraction, size: int, **blocks: int) -> NDArray[np.int64]:
    """Return draws from a fixed seed."""
    return discrete_gaussian(KeyedStream(bytes(range(32))), ("counts",), variance, size, **blocks)


def p_value_against(variance: Fraction, sample: NDArray[np.int64]) -> float:
    """Compare a sample with the closed form in cells of about a quarter of sigma, out to three sigma."""
    sigma = math.sqrt(variance)
    width = max(1, round(sigma / 4))
    reach = max(1, round(3 * sigma / width))
    edges = [width * step for step in range(-reach, reach + 1)]
    tails = [float(gaussian_tail(variance, edge).mid) for edge in edges]
    masses = [1 - tails[0], *(tails[i] - tails[i + 1] for i in range(2 * reach)), tails[-1]]
    cells = np.bincount(np.searchsorted(edges, sample, side="right"), minlength=len(masses))
    return chi_squared_p_value(cells.tolist(), masses)


@pytest.mark.slow
@pytest.mark.parametrize("variance", VARIANCES)
def test_a_sample_fits_the_closed_form(variance: Fraction) -> None:
    """100 000 draws pass chi-squared at level 1e-6; the seed is fixed, so the test never flickers."""
    assert p_value_against(variance, draws(variance, SIZE)) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("factor", [Fraction(100, 169), Fraction(169, 100)])
def test_the_same_test_rejects_a_scale_that_is_30_percent_off(variance: Fraction, factor: Fraction) -> None:
    """The test has power: a wrong sigma falls below the same level."""
    assert p_value_against(variance, draws(factor * variance, SIZE)) < LEVEL


@pytest.mark.parametrize("variance", [Fraction(1, 7), Fraction(3), Fraction(1600, 9)])
def test_candidates_times_acceptance_are_the_law(variance: Fraction) -> None:
    """Pr[candidate y] exp(-x) is Pr[Z = y] times one constant for all y, to 60 digits: the algorithm is exact."""
    inverse_scale = Fraction(1, laplace_scale(variance))
    with mpmath.workprec(220):
        constants = []
        for y in range(-30, 31):
            x = rejection_exponent(variance, y)
            candidate = laplace_mass(inverse_scale, y).mid
            accepted = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
            constants.append(mpmath.mpf(candidate) * accepted / mpmath.mpf(gaussian_mass(variance, y).mid))
        assert all(abs(constant / constants[0] - 1) < mpmath.mpf(10) ** -55 for constant in some(constants))


def spelled(probability: mpmath.mpf, words: int) -> list[int]:
    """Return the first words of a number below 1."""
    digits = int(mpmath.floor(probability * 2 ** (64 * words)))
    return [digits >> 64 * (words - 1 - i) & 2**64 - 1 for i in range(words)]


@pytest.mark.parametrize("candidate", [0, 3, -9, 40, 150])
def test_acceptance_is_decided_at_any_depth(candidate: int) -> None:
    """A number that agrees with exp(-x) in 5 words is accepted or not by the sixth, and no earlier."""
    variance = Fraction(1600, 9)
    x = rejection_exponent(variance, candidate)
    with mpmath.workprec(1000):
        words = spelled(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator), 6)
    assert 0 < words[5] < 2**64 - 1
    below, above = [*words[1:5], words[5] - 1], [*words[1:5], words[5] + 1]
    scripted = ScriptedUniforms([words[0]] * 2, {0: below, 1: above})
    assert acceptance(variance, np.array([candidate] * 2), scripted).tolist() == [True, False]
    assert {0, 1} == scripted.extended


def test_words_away_from_the_probability_need_no_more_bits() -> None:
    """A part in 10^12 to either side is settled by floats, and rightly so."""
    variance, size = Fraction(1600, 9), 60
    candidates = np.arange(size)
    exponents = [rejection_exponent(variance, y) for y in range(size)]
    words = [int(math.exp(-x) * 2**64) for x in exponents]
    margins = [word // 10**12 + 2**4 for word in words]
    below = ScriptedUniforms([word - margin for word, margin in zip(words, margins, strict=True)])
    above = ScriptedUniforms(
        [min(word + margin, 2**64 - 1) for word, margin in zip(words, margins, strict=True)]
    )
    assert acceptance(variance, candidates, below).all()
    assert not acceptance(variance, candidates, above).any()
    assert set() == below.extended | above.extended


def test_a_candidate_at_the_peak_is_always_accepted() -> None:
    """x = 0 where |y| = sigma^2 / t; then exp(-x) is 1, and no number below 1 is too large."""
    # sigma^2 = 6, t = 3, |y| = 2.
    highest = ScriptedUniforms([2**64 - 1] * 2, {i: [2**64 - 1] * 100 for i in range(2)})
    assert acceptance(Fraction(6), np.array([2, -2]), highest).tolist() == [True, True]


def test_noise_much_narrower_than_one_step_is_zero() -> None:
    """At sigma = 10^-3 another value than 0 has probability e^-500000."""
    assert draws(Fraction(1, 10**6), 100).tolist() == [0] * 100


@pytest.mark.parametrize("variance", [Fraction(1600, 9), Fraction(10**16)])
def test_noise_has_mean_0_and_the_stated_variance(variance: Fraction) -> None:
    """Within five standard errors of 100 000 draws; from sigma = 1 on the parameter is the variance to 8 digits."""
    sample = draws(variance, SIZE).astype(np.float64)
    assert abs(sample.mean()) < 5 * math.sqrt(variance / SIZE)
    assert abs(sample.var() / float(variance) - 1) < 5 * math.sqrt(2 / SIZE)


@pytest.mark.slow
@pytest.mark.parametrize("at_a_time", [1, 7, 999, 1000, 1024])
@pytest.mark.parametrize("variance", [Fraction(1600, 9), Fraction(10**8)])
def test_draws_do_not_depend_on_how_they_are_cut_into_blocks(variance: Fraction, at_a_time: int) -> None:
    """The rounds of a block go on where those of the block before ended, with candidates of one digit or three."""
    assert draws(variance, 1000).tolist() == draws(variance, 1000, at_a_time=at_a_time).tolist()


def test_no_draws_are_an_empty_array() -> None:
    """A release without elements needs no noise."""
    assert draws(Fraction(1), 0).shape == (0,)


@pytest.mark.parametrize(
    "variance", [Fraction(0), Fraction(-1), Fraction(1, 2 * 10**6), Fraction(10**16 + 1)]
)
def test_a_variance_that_cannot_be_drawn_is_refused(variance: Fraction) -> None:
    """The error names the argument and its range."""
    with pytest.raises(ValueError, match="variance must be from"):
        draws(variance, 1)


def test_a_negative_size_is_refused() -> None:
    """The error names the argument."""
    with pytest.raises(ValueError, match="size must not be negative"):
        draws(Fraction(1), -1)
