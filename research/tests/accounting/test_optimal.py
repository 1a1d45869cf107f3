"""Optimal composition: published numbers, brute force over all outcomes, and Google's privacy loss distributions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from dp_service.accounting.bounds import Portion, rho_of
from dp_service.accounting.zcdp import epsilon_of_zcdp
from research.accounting.optimal import (
    MAX_BATCH,
    fixed_batch_delta,
    fixed_batch_epsilon,
    optimal_composition,
)

TENTH = Fraction("0.1")


def delta_by_enumeration(pairs: list[tuple[float, float]], epsilon: float) -> float:
    """Return the delta of independent two-outcome mechanisms, given by Pr[first] under either neighbour."""
    total = 0.0
    for outcome in product((0, 1), repeat=len(pairs)):
        one = math.prod((p, 1 - p)[each] for (p, _), each in zip(pairs, outcome, strict=True))
        other = math.prod((q, 1 - q)[each] for (_, q), each in zip(pairs, outcome, strict=True))
        total += max(0.0, one - math.exp(epsilon) * other)
    return total


def response(loss: float, e: float) -> tuple[float, float]:
    """Return Pr[first] of the e-bounded-range mechanism with privacy losses `loss` and `loss` - e."""
    first = math.expm1(loss - e) / math.expm1(-e)
    return first, first * math.exp(-loss)


@pytest.mark.parametrize(("count", "expected"), [(100, 2.246), (1000, 8.301)])
def test_the_known_optima_of_fixed_batches_come_out(count: int, expected: float) -> None:
    """At e = 0.1 and delta 1e-6."""
    assert expected == round(fixed_batch_epsilon(Portion(TENTH, count), Fraction("1e-6")), 3)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("share", [0.05, 0.4, 0.8])
def test_no_batch_of_responses_is_worse_than_the_bound(count: int, share: float) -> None:
    """Hundreds of random batches of unequal losses stay below, and the best of equal ones reaches it."""
    e = 0.7
    epsilon = share * count * e
    bound = fixed_batch_delta(Portion(Fraction(7, 10), count), epsilon)
    losses = np.random.default_rng(count).uniform(0.01, e - 0.01, size=(300, count))
    unequal = max(delta_by_enumeration([response(t, e) for t in batch], epsilon) for batch in losses)
    equal = max(
        delta_by_enumeration([response(t, e)] * count, epsilon) for t in np.linspace(0.001, e - 0.001, 3000)
    )
    assert unequal <= bound * (1 + 1e-9)
    assert math.isclose(equal, bound, rel_tol=1e-4)


def test_googles_distributions_agree_on_a_fixed_batch() -> None:
    """100 equal responses, composed by convolution: at the optimal epsilon the worst loss has delta 1e-6."""
    # Here alone: it takes two seconds to import, which every worker of a run would spend.
    from dp_accounting.pld import privacy_loss_distribution as pld  # noqa: PLC0415

    e, count, epsilon = 0.1, 100, fixed_batch_epsilon(Portion(TENTH, 100), Fraction("1e-6"))
    deltas = []
    # Their grid of losses is 1e-5 wide, and every loss on it is rounded up once.
    for loss in (0.056, 0.057, 0.058, 0.059):
        p, q = response(loss, e)
        one = pld.from_two_probability_mass_functions(
            {0: math.log(q), 1: math.log1p(-q)},
            {0: math.log(p), 1: math.log1p(-p)},
            value_discretization_interval=1e-5,
            symmetric=False,
        )
        deltas.append(one.self_compose(count).get_delta_for_epsilon(epsilon))
    assert max(deltas) == pytest.approx(1e-6, rel=2e-2)


@pytest.mark.parametrize(
    ("e", "count", "delta"),
    [("0.5", 1, "1e-3"), ("0.5", 8, "1e-3"), ("0.1", 200, "1e-3"), ("0.1", 50, "1e-6")],
)
def test_general_composition_is_that_of_randomized_responses(e: str, count: int, delta: str) -> None:
    """Its delta is the exact one of so many randomized responses, found here by adding up a binomial."""
    found = optimal_composition(Fraction(e), count, Fraction(delta))
    truth = math.exp(float(e)) / (1 + math.exp(float(e)))
    exact = sum(
        math.comb(count, lies)
        * max(
            0.0,
            truth ** (count - lies) * (1 - truth) ** lies
            - math.exp(found.epsilon) * truth**lies * (1 - truth) ** (count - lies),
        )
        for lies in range(count + 1)
    )
    assert found.delta == pytest.approx(exact, rel=1e-6, abs=1e-14)
    assert found.delta <= float(delta)


def test_general_composition_takes_the_smallest_epsilon_of_its_grid() -> None:
    """Two steps of e less would cost more delta than allowed."""
    found = optimal_composition(TENTH, 1000, Fraction("1e-6"))
    tighter = optimal_composition(TENTH, 1000, Fraction("2e-6"))
    assert Fraction("19.4") == found.epsilon
    assert tighter.epsilon < found.epsilon
    assert tighter.delta > 1e-6


def test_one_mechanism_alone_keeps_its_epsilon() -> None:
    """With less delta than one step costs, nothing is gained."""
    found = optimal_composition(Fraction(1), 2, Fraction("1e-6"))
    assert Fraction(2) == found.epsilon
    assert 0 == found.delta


@pytest.mark.parametrize("count", [1, 10, 300])
def test_bounds_are_in_order(count: int) -> None:
    """A fixed batch composes no worse than adaptive zCDP, and bounded range no worse than epsilon-DP."""
    portion, delta = Portion(TENTH, count), Fraction("1e-6")
    batch = fixed_batch_epsilon(portion, delta)
    assert batch <= epsilon_of_zcdp(rho_of(portion), delta).value
    assert batch <= optimal_composition(TENTH, count, delta).epsilon


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: optimal_composition(Fraction(0), 1, Fraction(1, 2)), "epsilon"),
        (lambda: optimal_composition(TENTH, 0, Fraction(1, 2)), "count"),
        (lambda: optimal_composition(TENTH, 1, Fraction(0)), "delta"),
        (lambda: fixed_batch_epsilon(Portion(TENTH, 0), Fraction(1, 2)), "information"),
        (lambda: fixed_batch_epsilon(Portion(TENTH, MAX_BATCH + 1), Fraction(1, 2)), "information"),
        (lambda: fixed_batch_epsilon(Portion(TENTH, 1), Fraction(1)), "delta"),
    ],
)
def test_arguments_are_named(call: Any, named: str) -> None:
    """What is out of range is refused by name."""
    with pytest.raises(ValueError, match=rf"^{named} must be"):
        call()
