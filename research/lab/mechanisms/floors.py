"""Exact floors of real numbers."""

from __future__ import annotations

from collections.abc import Callable

from dp_service.noise.interval_arithmetic import (
    Interval,
    IntervalContext,
    certain_floor,
    interval_context,
    scaled_bounds,
    with_enough_precision,
)


def scaled_floor(evaluate: Callable[[IntervalContext], Interval], scale_bits: int) -> int:
    """Return floor(x * 2^scale_bits) for a positive irrational x, exactly.

    `evaluate` gives an interval around x in the arithmetic it is handed.
    """

    def floor(bits: int) -> int:
        value = evaluate(interval_context(bits + scale_bits))
        return certain_floor(scaled_bounds(value, bits + scale_bits), bits)

    return with_enough_precision(floor)
