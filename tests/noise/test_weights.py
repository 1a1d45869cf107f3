"""Exact weights."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.noise import LogWeights
from dp_service.noise.exact import interval_context

MULTIPLES = np.array([2, 0], dtype=np.int64)
ODDS = np.array([3, 5], dtype=object)


def test_a_log_weight_encloses_its_exact_value() -> None:
    """unit * multiple + ln(odds) at 200 bits agrees with the same number written out."""
    context = interval_context(200)
    weight = LogWeights(Fraction(1, 2), MULTIPLES, numerators=ODDS).log_weight(0, context)
    assert (context.log(3 * context.exp(1)) - weight).delta < 1e-55
    assert 0 in context.log(3 * context.exp(1)) - weight


def test_odds_are_one_unless_given() -> None:
    """Numerators and denominators may be left out."""
    assert Fraction(1) == LogWeights(Fraction(1), MULTIPLES).odds(1)
    assert Fraction(1, 5) == LogWeights(Fraction(1), MULTIPLES, denominators=ODDS).odds(1)


@pytest.mark.parametrize("unit", [Fraction(0), Fraction(-1), Fraction(1, 10**13), Fraction(10**13)])
def test_a_unit_out_of_range_is_refused(unit: Fraction) -> None:
    """The error names the argument."""
    with pytest.raises(ValueError, match="unit must be from"):
        LogWeights(unit, MULTIPLES)


@pytest.mark.parametrize("multiples", [MULTIPLES.astype(np.float64), MULTIPLES.reshape(1, 2)])
def test_multiples_of_another_type_or_shape_are_refused(multiples: NDArray[np.int64]) -> None:
    """Only a line of int64 is exact."""
    with pytest.raises(ValueError, match="multiples must be a one-dimensional int64 array"):
        LogWeights(Fraction(1), multiples)


def test_multiples_beyond_their_range_are_refused() -> None:
    """Beyond 2^54 the differences of keys could wrap."""
    with pytest.raises(ValueError, match="multiples must lie within"):
        LogWeights(Fraction(1), np.array([2**54 + 1], dtype=np.int64))


@pytest.mark.parametrize("odds", [np.array([1, 0], dtype=object), np.array([1, 2**1001], dtype=object)])
def test_odds_out_of_range_are_refused(odds: NDArray[np.object_]) -> None:
    """Zero odds have no logarithm, and larger ones do not fit a float."""
    with pytest.raises(ValueError, match="denominators must be integers from 1"):
        LogWeights(Fraction(1), MULTIPLES, denominators=odds)


@pytest.mark.parametrize("odds", [np.array([1], dtype=object), np.array([1, 1], dtype=np.int64)])
def test_odds_of_another_shape_or_type_are_refused(odds: NDArray[np.object_]) -> None:
    """Fixed-width integers would overflow silently."""
    with pytest.raises(ValueError, match="numerators must be an object array"):
        LogWeights(Fraction(1), MULTIPLES, numerators=odds)
