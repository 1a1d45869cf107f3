"""Every method keeps its promise on all small data sets, exactly; wrong forms of it do not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.bounding.contributions import Contributions
from dp_service.partitions import Method, Parameters, rounds, schedule, weighting
from dp_service.partitions.grid import WeightGrid
from dp_service.partitions.schedule import Grids

from .data import Member, neighbours
from .enumeration import EPSILONS, hockey_stick, output_law, promised, tail, worst_excess

GRIDS = Grids(WeightGrid(8), WeightGrid(128, adaptive_pairs=8))
"""Coarse, so that rounding and the discrete tail matter as much as they can."""

ROOMY = Grids(WeightGrid(8), WeightGrid(128, adaptive_pairs=24))
"""The same with room for more pairs."""

ROUNDING_ERROR = 1e-12
"""Of sums of floats; far below every delta here."""

# Noise of a few units around weights of a few members, and noise that hardly hides anything.
BUDGETS = [(Fraction(1, 4), Fraction(1, 50)), (Fraction(2), Fraction(1, 20))]
CASES = [
    Parameters(method, rho, delta, typical, 2)
    for method in Method
    for rho, delta in BUDGETS
    for typical in (1, 2)
]


def excess(parameters: Parameters, element_count: int = 2, most_members: int = 3) -> float:
    """Return by how much the promise is broken over all pairs of neighbours."""
    laws: dict[tuple[Member, ...], dict[tuple[tuple[int, ...], ...], float]] = {}

    def law(members: list[Member]) -> dict[tuple[tuple[int, ...], ...], float]:
        key = tuple(members)
        if key not in laws:
            laws[key] = dict(output_law(members, element_count, parameters, GRIDS))
        return laws[key]

    return max(
        worst_excess(law(before), law(after), parameters)
        for before, after in neighbours(element_count, most_members)
    )


@pytest.mark.slow
@pytest.mark.parametrize("parameters", CASES, ids=str)
def test_all_neighbours_are_as_close_as_promised(parameters: Parameters) -> None:
    """At every epsilon the hockey-stick divergence of the exact laws is at most that of corollary 9."""
    assert excess(parameters) <= ROUNDING_ERROR


@pytest.mark.parametrize("method", [Method.WEIGHTED_GAUSSIAN, Method.GREEDY, Method.MAD], ids=str)
def test_three_elements_are_as_close_as_promised(method: Method) -> None:
    """The same with sets of up to three elements, of which two count."""
    parameters = Parameters(method, Fraction(1, 4), Fraction(1, 50), 2)
    assert excess(parameters, element_count=3, most_members=2) <= ROUNDING_ERROR


@pytest.mark.slow
@pytest.mark.parametrize("method", list(Method), ids=str)
def test_heavy_elements_are_as_close_as_promised(method: Method) -> None:
    """Around and far above the threshold, where noise alone protects, one more member of any set changes little."""
    parameters = Parameters(method, Fraction(2), Fraction(1, 20), 2, 2)
    for heavy in (3, 9):
        members = [(0, 1)] * 3 + [(0,)] * heavy
        law = output_law(members, 3, parameters, ROOMY)
        for more in ((0,), (1,), (0, 1), (1, 2), (0, 1, 2)):
            changed = output_law([*members, more], 3, parameters, ROOMY)
            assert worst_excess(law, changed, parameters) <= ROUNDING_ERROR


def test_weights_rounded_up_break_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coarse grid shows it: three novel elements weigh more than the threshold allows for."""
    parameters = Parameters(Method.WEIGHTED_GAUSSIAN, Fraction(1, 100), Fraction(1, 50), 3)
    assert excess(parameters, 3, 1) <= ROUNDING_ERROR

    def rounded_up(bounded: Contributions, grid: WeightGrid) -> NDArray[np.int64]:
        sizes = bounded.sizes
        of_pairs = np.repeat(np.ceil(grid.units / np.sqrt(np.maximum(sizes, 1))), sizes)
        return np.bincount(bounded.elements, of_pairs, bounded.element_count).astype(np.int64)

    monkeypatch.setattr(weighting, "equal_weights", rounded_up)
    assert excess(parameters, 3, 1) > 1e-4


def test_a_threshold_by_the_continuous_tail_breaks_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sigma is a few units, the normal law says that less passes T than does."""
    parameters = Parameters(Method.WEIGHTED_GAUSSIAN, Fraction(2), Fraction(24, 1000), 1)

    def continuous(
        turn: schedule.Weighting, grid: WeightGrid, variance: Fraction, delta: Fraction, typical: int
    ) -> int:
        assert turn is schedule.Weighting.EQUAL
        quantiles = (NormalDist().inv_cdf(float(1 - delta) ** (1 / t)) for t in range(1, typical + 1))
        weights = (grid.units / math.sqrt(t) for t in range(1, typical + 1))
        return int(max(w + math.sqrt(variance) * q for w, q in zip(weights, quantiles, strict=True)))

    monkeypatch.setattr(schedule, "_threshold", continuous)
    schedule.rounds.cache_clear()
    try:
        assert excess(parameters) > 1e-4
    finally:
        schedule.rounds.cache_clear()


def test_members_without_a_bound_break_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A threshold for one novel element does not hide three."""
    parameters = Parameters(Method.WEIGHTED_GAUSSIAN, Fraction(1, 100), Fraction(1, 50), 1)
    assert excess(parameters, 3, 1) <= ROUNDING_ERROR
    monkeypatch.setattr(Contributions, "bounded", lambda self, _typical, _removed=None: self)
    assert excess(parameters, 3, 1) > 1e-2


def test_a_whole_budget_in_every_round_breaks_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds add up: three of them with all of rho and delta each spend three times as much."""
    parameters = Parameters(Method.SIPS, Fraction(1, 4), Fraction(1, 50), 2, 3)
    monkeypatch.setattr(schedule, "geometric_shares", lambda iterations: (Fraction(1),) * iterations)
    schedule.rounds.cache_clear()
    try:
        assert excess(parameters, 1, 1) > 1e-2
    finally:
        schedule.rounds.cache_clear()


def law_of_one_element(counts: Sequence[int], parameters: Parameters, *, is_reused: bool) -> dict[int, float]:
    """Return how likely an element with counts[i] members in round i is first released in each round; -1: never.

    With `is_reused` the number that decides is the same in all rounds.
    """
    released, left, below = {}, 1.0, 0.0
    for turn, count in zip(rounds(parameters, GRIDS), counts, strict=True):
        passing = tail(turn.variance, turn.threshold + 1 - count * turn.grid.units)
        released[turn.number] = max(0.0, passing - below) if is_reused else left * passing
        below = max(below, passing)
        left *= 1 - passing
    return {**released, -1: 1 - sum(released.values())}


@pytest.mark.parametrize(("is_reused", "is_kept"), [(False, True), (True, False)])
def test_noise_reused_between_rounds_breaks_the_promise(
    monkeypatch: pytest.MonkeyPatch, is_reused: bool, is_kept: bool
) -> None:
    """One member more may count for an element in the second round only, when its first element is released.

    With one number for both rounds of equal budgets, an element that appears in the second only gives that away.
    """
    parameters = Parameters(Method.SIPS, Fraction(1, 4), Fraction(1, 50), 1, 2)
    monkeypatch.setattr(
        schedule, "geometric_shares", lambda iterations: (Fraction(1, iterations),) * iterations
    )
    schedule.rounds.cache_clear()
    try:
        worst = max(
            hockey_stick(left, right, epsilon) - promised(parameters, epsilon)
            for count in range(1, 12)
            for epsilon in EPSILONS
            for left, right in permutations(
                [
                    law_of_one_element((count, count + more), parameters, is_reused=is_reused)
                    for more in (0, 1)
                ],
                2,
            )
        )
    finally:
        schedule.rounds.cache_clear()
    assert (worst <= ROUNDING_ERROR) is is_kept
