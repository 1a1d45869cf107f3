"""Exact weights."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.noise import LogWeights
from dp_service.noise.interval_arithmetic import enclose, interval_context

MULTIPLES = np.array([2, 0], dtype=np.int64)
DIVISORS = np.array([3, 5], dtype=np.int64)
ONE = Fraction(1)


def test_the_bounds_of_a_key_enclose_its_exact_value() -> None:
    """unit * multiple + ln(odds) - ln(E) to 200 bits agrees with the same number in interval arithmetic."""
    context = interval_context(300)
    weights = LogWeights(Fraction(1, 2), MULTIPLES, DIVISORS, last_odds=Fraction(7, 2))
    without_odds = LogWeights(Fraction(1, 2), MULTIPLES)
    for exponential in (Fraction(11), Fraction(1, 3), Fraction(1, 2**100)):
        steps = exponential * 2**200
        bounds = int(steps), int(steps) + 1
        for index, odds in ((0, Fraction(1, 3)), (1, Fraction(7, 10))):
            for each, factor in ((weights, odds), (without_odds, ONE)):
                exact = context.mpf(1 - index) - context.log(enclose(context, exponential / factor))
                low, high = (int(bound) for bound in each.key_bounds(index, bounds, 200))
                assert low <= exact.a * 2**200
                assert exact.b * 2**200 <= high
                # Of the smallest E the first 100 bits are known.
                assert high - low <= 8 + 2 / exponential


def test_the_bounds_of_a_key_hold_wherever_e_lies_between_its_own() -> None:
    """Also where these are far apart: the largest E makes the smallest key, and one logarithm serves both."""
    context, weights = interval_context(300), LogWeights(ONE, MULTIPLES, DIVISORS)
    for least, most in ((1, 2), (1, 2**40), (2**200, 3 * 2**200)):
        low, high = (int(bound) for bound in weights.key_bounds(1, (least, most), 200))
        for steps in (least, most):
            exact = -context.log(enclose(context, Fraction(5 * steps, 2**200)))
            assert low <= exact.a * 2**200
            assert exact.b * 2**200 <= high


def test_a_key_of_which_nothing_is_known_is_unbounded() -> None:
    """Below where E may be anything, above where it may be 0."""
    weights = LogWeights(Fraction(1, 2), MULTIPLES)
    assert weights.key_bounds(0, (2**200, None), 200)[0] == -math.inf
    assert weights.key_bounds(0, (0, 2**200), 200)[1] == math.inf


def test_odds_are_one_unless_given() -> None:
    """Divisors and the odds of the last entry may be left out."""
    assert ONE == LogWeights(ONE, MULTIPLES).odds(1)
    assert Fraction(1, 5) == LogWeights(ONE, MULTIPLES, DIVISORS).odds(1)
    assert Fraction(1, 3) == LogWeights(ONE, MULTIPLES, DIVISORS, Fraction(7)).odds(0)
    assert Fraction(7, 5) == LogWeights(ONE, MULTIPLES, DIVISORS, Fraction(7)).odds(1)


def test_everything_is_eligible_unless_said_otherwise() -> None:
    """Entries are in the running."""
    assert LogWeights(ONE, MULTIPLES).is_eligible(0)
    assert not LogWeights(ONE, MULTIPLES, eligible=np.array([False, True])).is_eligible(0)


@pytest.mark.parametrize("unit", [Fraction(0), Fraction(-1), Fraction(1, 10**13), Fraction(10**13)])
def test_a_unit_out_of_range_is_refused(unit: Fraction) -> None:
    """The error names the argument."""
    with pytest.raises(ValueError, match="unit must be from"):
        LogWeights(unit, MULTIPLES)


@pytest.mark.parametrize("multiples", [MULTIPLES.astype(np.float64), MULTIPLES.reshape(1, 2)])
def test_multiples_of_another_type_or_shape_are_refused(multiples: NDArray[np.int64]) -> None:
    """Only a line of int64 is exact."""
    with pytest.raises(ValueError, match="multiples must be a one-dimensional int64 array"):
        LogWeights(ONE, multiples)


@pytest.mark.parametrize("multiple", [2**54 + 1, -(2**54) - 1, -(2**63)])
def test_multiples_beyond_their_range_are_refused(multiple: int) -> None:
    """Beyond 2^54 the differences of keys could wrap."""
    with pytest.raises(ValueError, match="multiples must lie within"):
        LogWeights(ONE, np.array([multiple], dtype=np.int64))


@pytest.mark.parametrize("divisor", [0, -1])
def test_divisors_that_are_not_positive_are_refused(divisor: int) -> None:
    """They have no logarithm."""
    with pytest.raises(ValueError, match="divisors must be positive"):
        LogWeights(ONE, MULTIPLES, np.array([1, divisor]))


@pytest.mark.parametrize("odds", [Fraction(0), Fraction(-1), Fraction(2**1001), Fraction(1, 2**1001)])
def test_odds_out_of_range_are_refused(odds: Fraction) -> None:
    """Zero odds have no logarithm, and larger terms do not fit a float."""
    with pytest.raises(ValueError, match="last_odds must be positive with terms of at most"):
        LogWeights(ONE, MULTIPLES, last_odds=odds)


@pytest.mark.parametrize("array", [np.array([1]), np.array([[1, 1]]), np.array([1.0, 1.0])])
def test_divisors_and_eligibility_of_another_shape_or_type_are_refused(array: NDArray[np.int64]) -> None:
    """One entry for each multiple, of the one type that is meant."""
    with pytest.raises(ValueError, match="divisors must be an array of int64 with one entry per multiple"):
        LogWeights(ONE, MULTIPLES, array)
    with pytest.raises(ValueError, match="eligible must be an array of bool with one entry per multiple"):
        LogWeights(ONE, MULTIPLES, eligible=array.astype(np.int64).astype(bool)[:1])
