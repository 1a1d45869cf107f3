"""Calls add l delta: exact enumeration of composed real mechanisms, and the numbers that follow.

The second question is chosen by the answer to the first, in the worst way for each answer, and so are both pairs of
neighbours, among all tiny histograms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dp_service.accounting.composition import guarantee
from tests.support.zcdp import delta_of_zcdp
from tests.unit.dp_service.accounting.calls import COMPOSITIONS, CURRENCY, Calls, composed_delta, gumbel

DELTA = float(CURRENCY.delta)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), COMPOSITIONS)
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 1.0])
def test_two_calls_keep_twice_delta_at_every_epsilon(
    first: Callable[[], Calls], second: Callable[[], Calls], share: float
) -> None:
    """The delta of zCDP for the units, and delta once for each call."""
    units = first().information + second().information
    epsilon = share * units
    slack = delta_of_zcdp(Fraction(units, 8), Fraction(epsilon)).value
    found = composed_delta(first(), second(), epsilon + units * math.log1p(DELTA))
    assert found <= 2 * DELTA + slack


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), COMPOSITIONS)
def test_two_calls_keep_twice_delta_by_adding_up(
    first: Callable[[], Calls], second: Callable[[], Calls]
) -> None:
    """Without any slack, at the sum of all epsilons; and each UnkGumb reaches delta / (1 + delta) of it."""
    units = first().information + second().information
    found = composed_delta(first(), second(), units * (1 + math.log1p(DELTA)))
    assert found <= 2 * DELTA
    reached = DELTA / (1 + DELTA) * sum(each is gumbel for each in (first, second))
    assert found >= 0.85 * reached


def test_common_answers_differ_by_the_units_and_the_factor() -> None:
    """Where both neighbours can give an answer, (1) and (2) bound the ratio by e + ln(1 + delta) for each unit."""
    calls = gumbel()
    common = (calls.first > 0) & (calls.second > 0)
    ratios = np.log(calls.first[common] / calls.second[common])
    assert 0.5 < ratios.max() <= calls.information * (1 + math.log1p(DELTA))


@pytest.mark.parametrize("gaussian", [False, True])
def test_the_price_in_epsilon_is_paid(gaussian: bool) -> None:
    """3000 ln(1 + 1e-10) = 3e-7 more; nothing without calls."""
    with_calls, without = (
        guarantee(
            Fraction("0.15"),
            Fraction("1e-10"),
            information=3000,
            calls=calls,
            slack=Fraction("1e-9"),
            gaussian=gaussian,
        )
        for calls in (30, 0)
    )
    assert with_calls.epsilon - without.epsilon == pytest.approx(3e-7, rel=1e-3)
    assert with_calls.delta - without.delta == pytest.approx(6e-9)
