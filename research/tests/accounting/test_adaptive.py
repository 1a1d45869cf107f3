"""The tables of the adaptive bound hold what is true between them: trees, formulas, exact arithmetic, known numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, pairwise, product
from typing import Any, TypeAlias

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.typing import NDArray

from dp_service.accounting.bounds import Portion, rho_of
from dp_service.accounting.zcdp import epsilon_of_zcdp
from research.accounting.adaptive import LowerTable, UpperTable, lower_tables, upper_tables
from research.accounting.optimal import fixed_batch_delta, fixed_batch_epsilon
from tests.support.some import some

Law: TypeAlias = NDArray[np.float64]

E = Fraction(7, 10)


def upper(units: int, *, epsilon_per: Fraction = E, resolution: int = 64) -> UpperTable:
    """Return the bounds from above for so many units."""
    return next(islice(upper_tables(epsilon_per, resolution=resolution), units, None))


def lower(units: int, *, epsilon_per: Fraction = E, resolution: int = 64) -> LowerTable:
    """Return the bounds from below for so many units."""
    return next(islice(lower_tables(epsilon_per, resolution=resolution), units, None))


def response(e: float, t: float) -> tuple[Law, Law]:
    """Return the laws of the unit with ratios exp(-t) and exp(e - t), under either neighbour; both have mass 1."""
    # Pr[first] and Pr[second] solve first + second = 1 and first exp(-t) + second exp(e - t) = 1.
    first, second = np.linalg.solve(np.array([[1, 1], [math.exp(-t), math.exp(e - t)]]), np.ones(2))
    return np.array([first, second]), np.array([first * math.exp(-t), second * math.exp(e - t)])


def excess(one: Law, other: Law, epsilon: float) -> float:
    """Return the delta that two laws of whole histories have at an epsilon, by its definition."""
    return float(np.maximum(0, one - math.exp(epsilon) * other).sum())


def histories_of_trees(e: float, choices: list[float], trees: NDArray[np.int64]) -> tuple[Law, Law]:
    """Return the laws of all histories of full binary trees, shape (trees, histories): node i of a tree uses
    t = choices[trees[:, i]], and t = 0 wastes a unit, as stopping does.
    """
    laws = [response(e, t) for t in choices]
    p, q = np.array([law[0] for law in laws]), np.array([law[1] for law in laws])
    one, other = np.ones((len(trees), 1)), np.ones((len(trees), 1))
    node, size = 0, trees.shape[1]
    while node < size:
        steps = trees[:, node : node + one.shape[1]]
        node += one.shape[1]
        one = (one[:, :, None] * p[steps]).reshape(len(trees), -1)
        other = (other[:, :, None] * q[steps]).reshape(len(trees), -1)
    return one, other


@pytest.mark.parametrize(("units", "menu"), [(1, 8), (2, 6), (3, 4), (4, 2)])
def test_no_decision_tree_is_worse_and_the_worst_tree_is_reached(units: int, menu: int) -> None:
    """All trees of so many units, with every t of a menu at every node, stopping included, at several epsilons."""
    e = float(E)
    choices = [e * share / menu for share in range(menu)]
    trees = np.array(list(product(range(menu), repeat=2**units - 1)))
    one, other = histories_of_trees(e, choices, trees)
    above, restricted = upper(units), lower(units, resolution=menu)
    for position in range(units * menu):
        # A hair below the points of the table, so that rounding does not decide which one is used.
        epsilon = position * e / menu * (1 - 1e-12)
        worst = max(
            np.maximum(0, one - math.exp(epsilon) * other).sum(axis=1).max(),
            np.maximum(0, other - math.exp(epsilon) * one).sum(axis=1).max(),
        )
        assert worst <= above.delta(epsilon)
        # With the same menu, the table is the maximum over the trees.
        assert restricted.delta(epsilon) == pytest.approx(worst, rel=1e-9, abs=1e-12)


def worst_excess(x: Law, units: int, e: float, menu: list[float]) -> Law:
    """Return the largest delta from each point x = exp(epsilon) times the ratio so far, over every choice at every
    history: nothing is kept on a grid, and no history is taken for another.
    """
    if not units:
        return np.maximum(0, 1 - x)
    best = worst_excess(x, 0, e, menu)
    for t in menu:
        p, _ = response(e, t)
        further = worst_excess(np.concatenate([x * math.exp(-t), x * math.exp(e - t)]), units - 1, e, menu)
        best = np.maximum(best, p[0] * further[: x.size] + p[1] * further[x.size :])
    return best


def test_six_units_keep_between_the_tables_without_a_grid() -> None:
    """All strategies of six units on a coarse menu, from points that lie between those of the grid."""
    e, menu = float(E), [float(E) * share for share in (0.25, 0.45, 0.55, 0.8)]
    epsilons = np.array([0.0, 0.111, 0.5, 1.0, 1.777, 2.5, 3.3, 3.9])
    worst = worst_excess(np.exp(epsilons), 6, e, menu)
    above, below = upper(6), lower(6)
    for epsilon, found in some(zip(epsilons, worst, strict=True)):
        assert found <= above.delta(epsilon)
        # A coarse menu is nearly as bad as any, where delta is not small.
        assert found >= 0.9 * below.delta(epsilon) or found < 3e-2


def test_no_strategy_is_worse_at_the_low_end() -> None:
    """There steps lead below the grid, where V_k may be more than 1 - x."""
    above = upper(6, epsilon_per=Fraction(3), resolution=16)
    x = np.exp(above.grid.logs(0, 3))
    found = worst_excess(x, 6, 3.0, [1.0, 1.5, 2.0, 2.5])
    assert (found > 1 - x + 5e-5).all()
    assert (found <= above.values[:3]).all()


def random_unit(e: float, draws: np.random.Generator) -> tuple[Law, Law]:
    """Return the laws of a random bounded-range mechanism of two to five outcomes, some of them unlikely."""
    outcomes = int(draws.integers(2, 6))
    one = draws.dirichlet(np.full(outcomes, 0.5)) + 1e-12
    # Many outcomes at the ends: these are the worst.
    logs = e * np.clip(draws.uniform(-0.5, 1.5, outcomes), 0, 1)
    return one / one.sum(), (weights := one * np.exp(logs)) / weights.sum()


def random_histories(units: int, e: float, draws: np.random.Generator) -> Iterator[tuple[float, float]]:
    """Yield the probabilities of all histories of a random strategy, which may stop at any of them."""
    if not units or draws.random() < 0.1:
        yield 1.0, 1.0
        return
    one, other = random_unit(e, draws)
    for p, q in zip(one, other, strict=True):
        for p_after, q_after in random_histories(units - 1, e, draws):
            yield p * p_after, q * q_after


@pytest.mark.parametrize("units", [1, 2, 4, 6])
def test_random_mechanisms_of_several_outcomes_stay_below(units: int) -> None:
    """Random strategies with random units and random stops, both orders of neighbours."""
    draws = np.random.default_rng(units)
    above = upper(units)
    for _ in range(20):
        one, other = np.array(list(random_histories(units, float(E), draws))).T
        for epsilon in (0.0, 0.3, 0.9, 2.0):
            assert max(excess(one, other, epsilon), excess(other, one, epsilon)) <= above.delta(epsilon)


@pytest.mark.parametrize(("e", "resolution"), [("0.7", 1), ("0.7", 2), ("3", 1), ("3", 3), ("0.01", 2)])
@pytest.mark.parametrize("units", [0, 1, 3, 6])
def test_a_coarse_table_is_above_a_fine_one(e: str, resolution: int, units: int) -> None:
    """However few points a table has, it bounds what a fine table of strategies reaches."""
    coarse = upper(units, epsilon_per=Fraction(e), resolution=resolution)
    fine = lower(units, epsilon_per=Fraction(e), resolution=96)
    for share in np.linspace(0, 1, 40):
        epsilon = share * units * float(e)
        assert fine.delta(epsilon) <= coarse.delta(epsilon)


@pytest.mark.parametrize("resolution", [1, 2])
@pytest.mark.parametrize("units", [1, 6, 20])
def test_an_epsilon_between_two_points_is_enough(units: int, resolution: int) -> None:
    """The epsilon of a coarse table keeps the slack that was asked for, by a fine table."""
    coarse = upper(units, epsilon_per=Fraction(3), resolution=resolution)
    fine = lower(units, epsilon_per=Fraction(3), resolution=96)
    for slack in ("0.99", "0.9", "0.7", "0.55", "0.45", "0.35", "0.2", "0.05", "1e-3", "1e-6"):
        found = coarse.epsilon(Fraction(slack))
        assert fine.delta(found * (1 + 1e-12)) <= float(slack)


@pytest.mark.parametrize("units", [1, 5, 60])
def test_the_tables_meet(units: int) -> None:
    """From above and from below differ by less than a twentieth, where delta is not negligible."""
    above, below = upper(units), lower(units)
    for position in range(1, 64 * min(units, 6)):
        epsilon = position * float(E) / 64 * (1 - 1e-12)
        if below.delta(epsilon) > 1e-3:
            assert below.delta(epsilon) <= above.delta(epsilon) <= 1.05 * below.delta(epsilon)


def exact_step(table: UpperTable, position: int) -> Any:
    """Return, to fifty digits, the best value of one more unit at a point over many t, from a table as it is."""
    step, unit, values = mpf(table.grid.step), table.grid.unit, table.values
    e = step * unit

    def linear(place: Any) -> Any:
        start = int(mp.floor(place + mpf("1e-30")))
        assert start >= 0
        ends = [mpf(float(values[i]) if i < len(values) else table.rest) for i in (start, start + 1)]
        return ends[0] + (ends[1] - ends[0]) * mp.expm1((place - start) * step) / mp.expm1(step)

    best = mpf(0)
    for share in range(unit * 25 + 1):
        back = mpf(share) / 25
        p = (mp.exp(e) - mp.exp(back * step)) / (mp.exp(e) - 1)
        best = max(best, p * linear(position - back) + (1 - p) * linear(position - back + unit))
    return best


@pytest.mark.parametrize("e", ["0.15", "1.3", "0.001"])
def test_rounding_errors_are_covered(e: str) -> None:
    """Every value of a new table is at least what fifty digits give from the old one, and hardly more."""
    tables = list(islice(upper_tables(Fraction(e), resolution=4), 7))
    with mp.workdps(50):
        for old, new in some(pairwise(tables)):
            for position in range(-old.grid.first - 8, -old.grid.first + 4 * len(tables), 3):
                exact = exact_step(old, position)
                found = mpf(float(new.values[position]) if position < len(new.values) else new.rest)
                assert exact <= found
                assert found <= exact * mpf("1.002") + mpf("1e-9")


@pytest.mark.parametrize("e", ["0.15", "0.1", "0.7", "1.3", "0.001", "10"])
@pytest.mark.parametrize("resolution", [3, 10, 64])
def test_e_is_rounded_to_the_safe_side(e: str, resolution: int) -> None:
    """From above, a grid spans at least e; from below, at most; and both nearly."""
    below = next(lower_tables(Fraction(e), resolution=resolution)).grid
    above = next(upper_tables(Fraction(e), resolution=resolution)).grid
    spans = [Fraction(grid.step) * resolution for grid in (below, above)]
    assert spans[0] <= Fraction(e) <= spans[1]
    assert spans[1] - spans[0] <= Fraction(e) / 10**15


@pytest.mark.parametrize("units", [1, 6, 20])
def test_the_tables_are_in_order_down_to_their_low_end(units: int) -> None:
    """What lies below the grid pulls no value down: 1 - x, then what a strategy reaches, then the bound."""
    above, below = (make(units, epsilon_per=Fraction(3), resolution=8) for make in (upper, lower))
    shared = slice(min(above.values.size, below.values.size))
    least = -np.expm1(below.grid.logs(0, below.values.size))
    assert (least * (1 - 1e-12) <= below.values).all()
    assert (below.values[shared] * (1 - 1e-12) <= above.values[shared]).all()


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_one_unit_is_a_batch_of_one(share: float) -> None:
    """With nothing to adapt to, the bound is the known formula for fixed batches."""
    epsilon = share * float(E)
    expected = fixed_batch_delta(Portion(E, 1), epsilon)
    assert lower(1, resolution=400).delta(epsilon) <= expected * (1 + 1e-9)
    assert expected <= upper(1, resolution=400).delta(epsilon) * (1 + 1e-9)
    assert upper(1, resolution=400).delta(epsilon) == pytest.approx(expected, rel=1e-2, abs=1e-5)


@pytest.mark.parametrize("units", [2, 10, 100])
def test_the_bound_lies_between_fixed_batches_and_concentrated_privacy(units: int) -> None:
    """Who adapts reaches more than any fixed batch, and never more than the looser bound allows."""
    portion, delta = Portion(Fraction(1, 10), units), Fraction("1e-6")
    tables = [make(units, epsilon_per=portion.epsilon_per) for make in (lower, upper)]
    below, above = (table.epsilon(delta) for table in tables)
    batch, concentrated = fixed_batch_epsilon(portion, delta), epsilon_of_zcdp(rho_of(portion), delta).value
    assert batch <= above <= concentrated
    assert below <= above <= below + 0.004
    if units == 100:
        # The gain of adapting is real: 2.250 or more against 2.246.
        assert below > batch + 0.003


@pytest.mark.parametrize(
    ("e", "units", "delta", "expected"),
    [("0.15", 100, "1e-9", 4.479), ("0.1", 100, "1e-6", 2.252), ("0.15", 300, "1e-9", 8.246)],
)
def test_known_numbers_come_out(e: str, units: int, delta: str, expected: float) -> None:
    """A second implementation, on a coarser grid, found these from above."""
    below, above = (make(units, epsilon_per=Fraction(e)).epsilon(Fraction(delta)) for make in (lower, upper))
    assert below <= above <= expected
    assert above >= expected - 0.006


def test_the_default_budget_comes_out() -> None:
    """3000 units at 0.15: 32.46 with a slack of 1e-9 and 31.51 with 4e-9, from below 32.43 and 31.48."""
    e = Fraction("0.15")
    above, below = (make(3000, epsilon_per=e, resolution=32) for make in (upper, lower))
    for slack, most, least in (("1e-9", 32.46, 32.43), ("4e-9", 31.51, 31.48)):
        assert most == math.ceil(100 * above.epsilon(Fraction(slack))) / 100
        assert least == math.floor(100 * below.epsilon(Fraction(slack))) / 100


def test_ranges_that_are_not_units_are_worse() -> None:
    """One release of range 8 e, or of range e sqrt(8), reaches more than eight units may: it does not take part."""
    most = upper(8, epsilon_per=Fraction("0.15")).delta(0.0)
    assert 0.088 == round(most, 3)
    for e, reached in ((8 * 0.15, 0.291), (math.sqrt(8) * 0.15, 0.106)):
        one, other = response(e, e / 2)
        assert reached == round(excess(one, other, 0.0), 3)
        assert reached > most


def test_no_epsilon_is_zero_or_infinite_without_need() -> None:
    """A delta that is reached without any epsilon costs none; one below what the table holds gets no number."""
    table = upper(3)
    assert 0.0 == table.epsilon(Fraction(99, 100))
    assert math.inf == table.epsilon(Fraction(1, 10**40))
    assert 0.0 == lower(3).epsilon(Fraction(99, 100))
    assert table.epsilon(Fraction(1, 10**9)) < 3 * float(E) + 1e-9


@pytest.mark.parametrize("make", [upper_tables, lower_tables])
def test_arguments_are_named(make: Any) -> None:
    """What is out of range is refused by name."""
    with pytest.raises(ValueError, match=r"^epsilon_per must be"):
        next(make(Fraction(0)))
    with pytest.raises(ValueError, match=r"^epsilon_per must be"):
        next(make(0.15))
    with pytest.raises(ValueError, match=r"^resolution must be"):
        next(make(E, resolution=0))
    with pytest.raises(ValueError, match=r"^slack must be"):
        next(make(E)).epsilon(Fraction(0))
