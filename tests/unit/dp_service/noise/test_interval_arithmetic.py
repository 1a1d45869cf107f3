"""Interval arithmetic."""

from fractions import Fraction
from itertools import islice

import pytest

from dp_service.noise.interval_arithmetic import (
    UncertainError,
    certain_floor,
    certainly_below,
    enclose,
    geometric_bounds,
    interval_context,
    scaled_bounds,
    with_enough_precision,
)
from tests.support.some import some

CONTEXT = interval_context(64)


def test_intervals_that_overlap_are_not_certainly_ordered() -> None:
    """Doubt is never an exception and never a yes."""
    first, second = CONTEXT.mpf([1, 3]), CONTEXT.mpf([2, 4])
    assert not certainly_below(first, second)
    assert not certainly_below(second, first)


def test_an_unbounded_interval_is_not_certainly_ordered() -> None:
    """A key of which nothing is known neither wins nor loses."""
    anything, one = CONTEXT.mpf(["-inf", "inf"]), CONTEXT.mpf(1)
    assert not certainly_below(anything, one)
    assert not certainly_below(one, anything)


def test_intervals_apart_are_ordered() -> None:
    """Order holds in one direction only."""
    assert certainly_below(CONTEXT.mpf([1, 2]), CONTEXT.mpf([3, 4]))
    assert not certainly_below(CONTEXT.mpf([3, 4]), CONTEXT.mpf([1, 2]))


def test_a_rational_is_enclosed_from_both_sides() -> None:
    """One third lies strictly inside its enclosure, which is as narrow as the precision."""
    third = enclose(CONTEXT, Fraction(1, 3))
    finer = enclose(interval_context(256), Fraction(1, 3))
    assert certainly_below(third.a, finer)
    assert certainly_below(finer, third.b)
    assert third.delta < 2**-63


def test_a_floor_that_needs_more_precision_gets_it() -> None:
    """exp(2^-600) is 1 to 600 bits: only after doubling the precision is the floor known."""
    tiny = Fraction(1, 2**600)

    def floor(bits: int) -> int:
        context = interval_context(bits + 600)
        return certain_floor(scaled_bounds(context.exp(enclose(context, tiny)), bits + 600), bits)

    assert with_enough_precision(floor) == 2**600 + 1


def test_bounds_with_different_floors_are_uncertain() -> None:
    """exp(-2^-600) is just below 1; with 192 bits nobody can say so."""
    context = interval_context(192)
    bounds = scaled_bounds(context.exp(-enclose(context, Fraction(1, 2**600))), 192)
    with pytest.raises(UncertainError):
        certain_floor(bounds, 128)


def test_bounds_of_a_geometric_sequence_enclose_it_closely() -> None:
    """After 2000 steps each bound is off by no more than the steps taken."""
    third = scaled_bounds(enclose(interval_context(300), Fraction(1, 3)), 200)
    one = (2**200, 2**200)
    for n, (low, high) in some(enumerate(islice(geometric_bounds(one, third, 200), 2000))):
        assert low * 3**n <= 2**200 <= high * 3**n
        assert high - low <= 2 * n + 2
