"""Every variant keeps its promise over all small member-level data sets, exactly."""

from __future__ import annotations

import pytest

from dp_service.noise.gaussian_price import DISCRETENESS

from .laws import ROUNDING_ERROR
from .promises import FAST, OneLook, Promise


@pytest.mark.slow
@pytest.mark.parametrize("promise", FAST, ids=str)
def test_all_neighbours_are_as_close_as_promised(promise: Promise) -> None:
    """Hockey-sticks, and Renyi divergences given that no newcomer is shown; the campaign `bounded` has more of them."""
    worst = promise.worst()
    assert worst.excess <= ROUNDING_ERROR
    assert worst.relative_rho <= 1 + ROUNDING_ERROR


def test_the_promise_is_nearly_reached() -> None:
    """Far above the threshold one look costs its rho but for the 1/11: to find much less would prove nothing."""
    far_above = next(each for each in FAST if "base=(40, 41)" in str(each))
    assert isinstance(far_above, OneLook)
    worst = far_above.worst().relative_rho
    assert worst == pytest.approx(1 - float(DISCRETENESS / far_above.look.variance))
