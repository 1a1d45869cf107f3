"""Closed forms of the discrete Laplace law."""

from fractions import Fraction

import pytest

from dp_service.noise.distribution import (
    exact_bound,
    laplace_difference_mass,
    laplace_difference_tail,
    laplace_mass,
    laplace_tail,
    smallest_with_tail_at_most,
)
from dp_service.noise.exact import Interval

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


@pytest.mark.parametrize("n", [-4, 0, 1, 9])
def test_the_mass_of_a_difference_is_the_convolution(n: int) -> None:
    """Pr[Z1 - Z2 = n] agrees with the sum over all pairs."""
    pairs = sum(laplace_mass(HALF, z + n) * laplace_mass(HALF, z) for z in range(-REACH, REACH + 1))
    assert close(laplace_difference_mass(HALF, n), pairs)


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
