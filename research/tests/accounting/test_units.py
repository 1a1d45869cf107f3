"""What mechanisms answer is worth the units that it costs, by the smallest bound: all answers are enumerated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import pytest

from dp_service.mechanisms import Currency, KnownGumb, KnownLap, UnkGumb, UnkLap
from research.accounting.adaptive import upper_tables
from tests.unit.dp_service.accounting.calls import COMPOSITIONS, Calls, composed_delta
from tests.unit.dp_service.mechanisms.enumeration import hockey_stick
from tests.unit.dp_service.mechanisms.neighbours import (
    all_histograms,
    laws_over,
    laws_over_unknown_domain,
    neighbouring_pairs,
    over_known_domain,
)

CURRENCY = Currency(Fraction(1), Fraction("0.05"))
DELTA = float(CURRENCY.delta)


@dataclass(frozen=True)
class Question:
    """A mechanism with the tiny world in which all its answers are enumerated."""

    mechanism: KnownLap | KnownGumb | UnkGumb | UnkLap
    elements: int
    largest: int
    delta_l0: int
    radius: int = 0


QUESTIONS = [
    Question(KnownLap(CURRENCY, delta_l0=2, tau=1), elements=2, largest=1, delta_l0=2, radius=16),
    Question(KnownGumb(CURRENCY, k=1, tau=1), elements=3, largest=1, delta_l0=3, radius=24),
    Question(KnownGumb(CURRENCY, k=2, tau=1, with_counts=False), elements=3, largest=2, delta_l0=3),
    Question(UnkGumb(CURRENCY, k=1, d_bar=2, tau=1), elements=3, largest=2, delta_l0=3, radius=24),
    Question(UnkGumb(CURRENCY, k=2, d_bar=2, tau=1, with_counts=False), elements=3, largest=2, delta_l0=3),
    Question(UnkLap(CURRENCY, delta_l0=1, d_bar=1, tau=1), elements=2, largest=1, delta_l0=1, radius=24),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.mechanism.name.value)
def test_an_answer_is_worth_the_units_that_it_costs(question: Question) -> None:
    """By the adaptive bound for the price of the dearest answer, delta once for a call, at every epsilon."""
    mechanism = question.mechanism
    cost = mechanism.worst_case_cost()
    histograms, radius = all_histograms(question.elements, question.largest), question.radius
    if isinstance(mechanism, UnkGumb | UnkLap):
        laws = laws_over_unknown_domain(mechanism, histograms, d_bar=mechanism.d_bar, radius=radius)
    else:
        laws = laws_over(histograms, lambda counts: over_known_domain(mechanism, counts), radius=radius)
    table = next(islice(upper_tables(CURRENCY.epsilon_per), cost.information, None))
    factor = cost.information * math.log1p(DELTA) * cost.calls
    for share in (0.0, 0.2, 0.4, 0.6, 0.8):
        epsilon = share * cost.information
        worst = max(
            hockey_stick(laws[one], laws[other], epsilon + factor)
            for one, other in neighbouring_pairs(histograms, tau=1, delta_l0=question.delta_l0)
        )
        assert worst <= table.delta(epsilon) + cost.calls * DELTA


@pytest.mark.parametrize(("first", "second"), COMPOSITIONS)
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_two_calls_keep_twice_delta(
    first: Callable[[], Calls], second: Callable[[], Calls], share: float
) -> None:
    """Beside what the smallest bound says of their units."""
    units = first().information + second().information
    epsilon = share * units
    slack = next(islice(upper_tables(CURRENCY.epsilon_per), units, None)).delta(epsilon)
    assert composed_delta(first(), second(), epsilon + units * math.log1p(DELTA)) <= 2 * DELTA + slack
