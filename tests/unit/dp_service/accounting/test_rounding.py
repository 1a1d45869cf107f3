"""Intervals and the floats at their ends."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dp_service.accounting.rounding import INTERVALS, fraction_up, interval, real, rounded_up


@given(st.fractions())
def test_floats_enclose_a_fraction_as_narrowly_as_they_can(number: Fraction) -> None:
    """The float above is not below, and the next one down is not above."""
    above, below = fraction_up(number), -fraction_up(-number)
    assert Fraction(math.nextafter(above, -math.inf)) < number <= Fraction(above)
    assert Fraction(below) <= number < Fraction(math.nextafter(below, math.inf))


@given(st.floats(min_value=-1e300, max_value=1e300))
def test_a_float_stays_what_it_is(number: float) -> None:
    """Nothing is added to what needs no rounding."""
    assert number == fraction_up(Fraction(number))


@given(st.fractions(Fraction(1, 10**40), 10**6))
def test_functions_of_intervals_hold_the_true_value(number: Fraction) -> None:
    """A logarithm and its exponential enclose the number that they began with, to forty digits."""
    back = INTERVALS.exp(INTERVALS.log(interval(number)))
    assert back.a <= interval(number).b
    assert interval(number).a <= back.b
    assert rounded_up(back.delta) <= float(number) * 1e-40


def test_the_smallest_floats_are_rounded_up_too() -> None:
    """What underflows to zero is no zero, and what overflows is infinite."""
    assert 5e-324 == fraction_up(Fraction(1, 10**400))
    assert math.inf == fraction_up(Fraction(10**400))


def test_reals_are_close() -> None:
    """Sixty digits of a third."""
    assert abs(real(Fraction(1, 3)) * 3 - 1) < 1e-58
