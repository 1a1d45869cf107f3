"""The law of the noise of a part of a sum of draws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms.aggregates.shares import tail
from tests.unit.dp_service.mechanisms.bounded.laws import masses


@pytest.mark.parametrize("variance", [1, 3, 4, 9])
@pytest.mark.parametrize("number", [2, 7, 40])
def test_no_tail_of_equal_draws_is_below_that_of_their_law(variance: int, number: int) -> None:
    """From 4 on they add up to one draw of their variances together; below, to no more than the bound."""
    law = masses(Fraction(variance))
    added = law
    for _ in range(number - 1):
        added = np.convolve(added, law)
    tails = np.cumsum(added[::-1])[::-1]
    middle = added.size // 2
    for x in range(math.ceil(5 * math.sqrt(variance * number))):
        exact = tails[middle + x]
        assert exact > 0.2 or exact <= tail(((1, float(variance), number),), x) * (1 + 1e-6)
