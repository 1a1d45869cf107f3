"""Calls add l delta: exact enumeration of composed real mechanisms, and the numbers that follow.

The second question is chosen by the answer to the first, in the worst way for each answer, and so are both pairs of
neighbours, among all tiny histograms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.accounting.adaptive import upper_tables
from dp_service.accounting.calls import CallRule
from dp_service.accounting.composition import Bound, Guarantee, guarantee, guarantees
from dp_service.accounting.zcdp import delta_of_zcdp
from dp_service.mechanisms import Currency, KnownGumb, KnownLap, UnkGumb, UnkLap
from tests.mechanisms.enumeration import hockey_stick
from tests.mechanisms.neighbours import (
    all_histograms,
    laws_over,
    laws_over_unknown_domain,
    neighbouring_pairs,
    over_known_domain,
)
from tests.support.some import some

CURRENCY = Currency(Fraction(1), Fraction("0.05"))
DELTA = float(CURRENCY.delta)


@dataclass(frozen=True)
class Calls:
    """Every pair of neighbours of one mechanism: the laws of its answers, shape (pairs, answers), what was cut off of
    them at most, and the information of one question at most.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    lost: float
    information: int


def calls_of(
    mechanism: UnkGumb | UnkLap, *, elements: int, largest: int, delta_l0: int, radius: int
) -> Calls:
    """Return the exact laws of a mechanism for all histograms of so many elements and counts."""
    histograms = all_histograms(elements, largest)
    laws = laws_over_unknown_domain(mechanism, histograms, d_bar=mechanism.d_bar, radius=radius)
    answers = sorted({answer for law in laws.values() for answer in law.mass}, key=repr)
    rows = {
        counts: np.array([law.mass.get(answer, 0.0) for answer in answers]) for counts, law in laws.items()
    }
    pairs = list(neighbouring_pairs(histograms, tau=1, delta_l0=delta_l0))
    return Calls(
        np.array([rows[one] for one, _ in pairs]),
        np.array([rows[other] for _, other in pairs]),
        max(law.lost for law in laws.values()),
        mechanism.worst_case_cost().information,
    )


# Computed when the first test needs it, not while tests are collected.
@cache
def gumbel() -> Calls:
    """Return what two calls of UnkGumb are composed of."""
    mechanism = UnkGumb(CURRENCY, k=2, d_bar=3, tau=1, with_counts=False)
    return calls_of(mechanism, elements=4, largest=1, delta_l0=4, radius=0)


@cache
def laplace() -> Calls:
    """Return what two calls of UnkLap are composed of."""
    mechanism = UnkLap(CURRENCY, delta_l0=1, d_bar=1, tau=1)
    return calls_of(mechanism, elements=2, largest=2, delta_l0=1, radius=24)


COMPOSITIONS = [(gumbel, gumbel), (gumbel, laplace), (laplace, gumbel)]


def worst_excess(one: NDArray[np.float64], other: NDArray[np.float64], calls: Calls, epsilon: float) -> float:
    """Return the largest hockey-stick divergence that a further call leads to, from the masses of where it starts."""
    ahead = one[:, None, None] * calls.first - math.exp(epsilon) * other[:, None, None] * calls.second
    return float(np.maximum(0, ahead).sum(axis=2).max(axis=1).sum())


def composed_delta(first: Calls, second: Calls, epsilon: float) -> float:
    """Return the largest delta of two calls at an epsilon; what the enumeration cuts off counts in full."""
    pairs = zip(first.first, first.second, strict=True)
    # Answers that the first neighbour cannot give lead nowhere.
    return (
        first.lost
        + second.lost
        + max(worst_excess(one[one > 0], other[one > 0], second, epsilon) for one, other in pairs)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), COMPOSITIONS)
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 1.0])
def test_two_calls_keep_twice_delta_at_every_epsilon(
    first: Callable[[], Calls], second: Callable[[], Calls], share: float
) -> None:
    """The delta of zCDP for the units, or the smaller one of the adaptive bound, and delta once for each call."""
    units = first().information + second().information
    epsilon = share * units
    adaptive = next(islice(upper_tables(CURRENCY.epsilon_per), units, None)).delta(epsilon)
    slack = min(adaptive, delta_of_zcdp(Fraction(units, 8), Fraction(epsilon)).value)
    assert slack == adaptive
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


@pytest.mark.slow
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


def test_common_answers_differ_by_the_units_and_the_factor() -> None:
    """Where both neighbours can give an answer, (1) and (2) bound the ratio by e + ln(1 + delta) for each unit."""
    calls = gumbel()
    common = (calls.first > 0) & (calls.second > 0)
    ratios = np.log(calls.first[common] / calls.second[common])
    assert 0.5 < ratios.max() <= calls.information * (1 + math.log1p(DELTA))


def of(rule: CallRule, slack: str) -> Guarantee:
    """Return the guarantee of the default budget by a rule."""
    return guarantee(
        Fraction("0.15"), Fraction("1e-10"), information=3000, calls=30, slack=Fraction(slack), call_rule=rule
    )


def test_the_defaults_gain_delta_or_epsilon() -> None:
    """(33.78, 4e-9) with the same slack, or (32.86, 7e-9) with the slack that fills the same delta."""
    same_slack, same_delta = of(CallRule.ONCE, "1e-9"), of(CallRule.ONCE, "4e-9")
    assert (33.78, 4e-9) == (round(same_slack.epsilon, 2), round(same_slack.delta, 15))
    assert (32.86, 7e-9) == (round(same_delta.epsilon, 2), round(same_delta.delta, 15))


def test_the_price_in_epsilon_is_paid() -> None:
    """3000 ln(1 + 1e-10) = 3e-7 more, by every bound and either rule; nothing without calls."""
    arguments = {"information": 3000, "slack": Fraction("1e-9")}

    def by_bound(rule: CallRule, calls: int) -> dict[Bound, float]:
        found = guarantees(
            Fraction("0.15"),
            Fraction("1e-10"),
            calls=calls,
            call_rule=rule,
            **arguments,  # type: ignore[arg-type]
        )
        return {each.bound: each.epsilon for each in found}

    once, twice = by_bound(CallRule.ONCE, 30), by_bound(CallRule.TWICE, 30)
    without = by_bound(CallRule.ONCE, 0)
    for bound in some(once):
        assert once[bound] - without[bound] == pytest.approx(3e-7, rel=1e-3)
    assert once == twice
    assert without == by_bound(CallRule.TWICE, 0)
