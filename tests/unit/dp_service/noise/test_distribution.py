"""Closed forms of the discrete Laplace law."""

from fractions import Fraction

import mpmath
import pytest

from dp_service.noise.distribution import (
    exact_bound,
    gaussian_tail,
    laplace_difference_tail,
    laplace_tail,
    smallest_with_tail_at_most,
)
from dp_service.noise.interval_arithmetic import Interval
from tests.support.masses import gaussian_mass, laplace_difference_mass, laplace_mass

HALF = Fraction(1, 2)
REACH = 300
"""Beyond it the law at inverse scale 1/2 has less than 1e-60."""


def close(first: Interval, second: Interval) -> bool:
    """Say whether two enclosed numbers agree to 1e-50."""
    return abs(float((first - second).mid)) < 1e-50


def test_the_masses_sum_to_one() -> None:
    """All of the law is there, up to what lies beyond the reach."""
    assert close(exact_bound(Fraction(1)), sum(laplace_mass(HALF, z) for z in range(-REACH, REACH + 1)))


@pytest.mark.parametrize("n", [-7, -1, 0, 1, 2, 30])
def test_the_tail_is_the_sum_of_the_masses(n: int) -> None:
    """The closed form of Pr[Z >= n] agrees with summation on both sides of zero."""
    assert close(laplace_tail(HALF, n), sum(laplace_mass(HALF, z) for z in range(n, REACH)))


@pytest.mark.slow
@pytest.mark.parametrize("n", [-4, 0, 1, 9])
def test_the_mass_of_a_difference_is_the_convolution(n: int) -> None:
    """Pr[Z1 - Z2 = n] agrees with the sum over all pairs."""
    pairs = sum(laplace_mass(HALF, z + n) * laplace_mass(HALF, z) for z in range(-REACH, REACH + 1))
    assert close(laplace_difference_mass(HALF, n), pairs)


@pytest.mark.slow
@pytest.mark.parametrize("n", [-5, 0, 1, 2, 40])
def test_the_tail_of_a_difference_is_the_sum_of_its_masses(n: int) -> None:
    """The closed form of Pr[Z1 - Z2 >= n] agrees with summation on both sides of zero."""
    assert close(
        laplace_difference_tail(HALF, n), sum(laplace_difference_mass(HALF, m) for m in range(n, 2 * REACH))
    )


def test_enclosures_are_narrow_even_for_wide_noise() -> None:
    """At inverse scale 1e-9, 1 - q cancels nearly everything, and 60 digits are still right."""
    assert float(laplace_mass(Fraction(1, 10**9), 5).delta) < 1e-60


def test_a_search_finds_the_first_number_that_suffices() -> None:
    """The tail is at most the bound there, and not one step before."""
    bound = exact_bound(Fraction(1, 10**6))
    found = smallest_with_tail_at_most(lambda n: laplace_tail(HALF, n), bound)
    assert laplace_tail(HALF, found) <= bound < laplace_tail(HALF, found - 1)


def test_a_search_may_end_at_zero() -> None:
    """A bound that the whole law satisfies needs no shift."""
    assert smallest_with_tail_at_most(lambda n: laplace_tail(HALF, n), exact_bound(Fraction(1))) == 0


@pytest.mark.parametrize("first", [0, 1, 27])
@pytest.mark.parametrize("guess", [0, 1, 2, 22, 26, 27, 28, 29, 35, 400])
def test_a_search_finds_the_same_wherever_it_begins(first: int, guess: int) -> None:
    """Below, above and at the number; where the guess is right, at most two tails tell."""
    tried: list[int] = []

    def tail(n: int) -> Interval:
        tried.append(n)
        return exact_bound(Fraction(1 if n < first else 0))

    assert smallest_with_tail_at_most(tail, exact_bound(Fraction(1, 2)), guess=guess) == first
    assert min(tried) >= 0
    assert guess != first or len(tried) <= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "variance", [Fraction(1, 10**6), Fraction(1, 7), Fraction(3), Fraction(178), Fraction(1000)]
)
def test_a_gaussian_tail_is_right_in_proportion(variance: Fraction) -> None:
    """Both ways of summing all integers are right: directly and by Poisson's formula."""
    masses = sum(gaussian_mass(variance, z) for z in range(1, 901))
    assert close(exact_bound(Fraction(1)), gaussian_tail(variance, 1) / masses)


@pytest.mark.parametrize("n", [-7, 0, 1, 2, 30, 200])
def test_a_gaussian_tail_is_the_sum_of_the_masses(n: int) -> None:
    """Summation agrees on both sides of zero and far out."""
    variance = Fraction(178)
    assert close(gaussian_tail(variance, n), sum(gaussian_mass(variance, z) for z in range(n, 900)))


@pytest.mark.slow
@pytest.mark.parametrize("n", [-40, 1, 20, 33, 34, 60, 200, 900, 1500])
def test_a_tail_by_the_euler_maclaurin_formula_encloses_the_sum(n: int) -> None:
    """Just above v = 1024 the sum over 3000 masses at 400 bits lies within the enclosure, which has 45 digits."""
    variance = Fraction(4099, 4)
    with mpmath.workprec(400):
        masses = [mpmath.exp(mpmath.mpf(-z * z) / (2 * mpmath.mpf(4099) / 4)) for z in range(-3000, 3001)]
        exact = mpmath.fsum(masses[3000 + n :]) / mpmath.fsum(masses)
    found = gaussian_tail(variance, n)
    assert found.a <= exact <= found.b
    if n < 40 * 32:
        assert float((found.delta / found.b).b) < 1e-45


def test_a_gaussian_threshold_errs_upwards_at_any_width() -> None:
    """At sigma = 10^6 the smallest n with a tail of 10^-9 is 5.9978 sigma, found without summing a million terms."""
    bound = exact_bound(Fraction(1, 10**9))
    found = smallest_with_tail_at_most(lambda n: gaussian_tail(Fraction(10**12), n), bound)
    assert found / 10**6 == pytest.approx(5.99781, abs=1e-5)
    assert gaussian_tail(Fraction(10**12), found).b <= bound
