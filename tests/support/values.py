"""How a value of a row is rounded and clamped: the reference for what engines compute."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from dp_service.values.bounds import Clamp, ValueBounds
from dp_service.values.quantum import Quantum, Value


def is_usable(value: Value) -> bool:
    """Return whether a row with this value counts: NULL, NaN and infinities do not."""
    if isinstance(value, Decimal):
        return value.is_finite()
    return value is not None and (isinstance(value, int) or math.isfinite(value))


def bounds_of(
    quantum: Fraction, rows: tuple[Fraction, Fraction], totals: tuple[Fraction, Fraction]
) -> ValueBounds:
    """Return bounds that are given as values of the column."""
    step = Quantum(quantum)
    ends = [(step.exact_steps(low), step.exact_steps(high)) for low, high in (rows, totals)]
    return ValueBounds(step, Clamp(*ends[0]), Clamp(*ends[1]))


def steps_of(quantum: Quantum, value: int | float | Decimal) -> int:
    """Return the step that a usable value is rounded to; bring a float between its clamps first."""
    if not isinstance(value, float):
        return math.floor(Fraction(value) / quantum.size + Fraction(1, 2))
    parts, size = quantum.size.denominator, quantum.size.numerator
    return math.floor((value * parts if size == 1 else value / size) + 0.5)


def row_steps(bounds: ValueBounds, value: Value) -> int | None:
    """Return the clamped steps of a row's value, None if the row does not count."""
    if value is None or not is_usable(value):
        return None
    if isinstance(value, float):
        low, high = (float(bounds.quantum.value_of(end)) for end in (bounds.rows.low, bounds.rows.high))
        value = min(max(value, low), high)
    return bounds.rows(steps_of(bounds.quantum, value))


def centred(clamp: Clamp, steps: int) -> int:
    """Return 2 x - (low + high) of the clamped x."""
    return 2 * clamp(steps) - clamp.centre
