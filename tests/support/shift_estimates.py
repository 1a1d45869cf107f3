"""The estimates of the shift, of which what is sent are numerators."""

from __future__ import annotations

from fractions import Fraction

from dp_service.mechanisms.bounded.shift import ShiftedCounts


def estimates(released: ShiftedCounts) -> list[Fraction]:
    """Return x_i = (A_i + a M) / b of every element."""
    a, b = released.shift.factors
    return [Fraction(moved + a * released.total, b) for moved in released.moved.tolist()]
