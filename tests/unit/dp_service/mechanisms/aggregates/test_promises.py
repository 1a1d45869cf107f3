"""Every aggregate keeps its promise over all small member-level data sets, exactly."""

from __future__ import annotations

import pytest

from tests.unit.dp_service.mechanisms.bounded.laws import ROUNDING_ERROR

from .promises import FAST, Moments


@pytest.mark.slow
@pytest.mark.parametrize("promise", FAST, ids=str)
def test_all_neighbours_are_as_close_as_promised(promise: Moments) -> None:
    """Hockey-sticks of keys, counts and sums together, and Renyi divergences given that no newcomer is shown."""
    worst = promise.worst()
    assert worst.excess <= ROUNDING_ERROR
    assert worst.relative_rho <= 1 + ROUNDING_ERROR


def test_the_promise_is_nearly_reached() -> None:
    """Far above the threshold a release costs its rho but for the 1/11: to find much less would prove nothing."""
    far_above = next(each for each in FAST if "base=((30, -9),)" in str(each))
    assert far_above.worst().relative_rho > 0.94
