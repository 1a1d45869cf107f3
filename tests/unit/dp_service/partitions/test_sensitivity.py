"""One more member moves the weights by no more than the noise is made for, and its own elements by no more than T."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dp_service.noise.gaussian_price import variance_for
from dp_service.partitions import Method, Parameters, Round, adaptive, rounds
from dp_service.partitions.grid import WeightGrid
from dp_service.partitions.schedule import Grids
from dp_service.partitions.weighting import weigh
from tests.support.examples import examples
from tests.support.some import some

from .data import Member, contributions

ELEMENTS = 64
FINE = Grids(WeightGrid(2**30), WeightGrid(2**36, adaptive_pairs=2**13))
COARSE = Grids(WeightGrid(64), WeightGrid(2**20, adaptive_pairs=2**13))
NON_ADAPTIVE = {Method.WEIGHTED_GAUSSIAN, Method.GREEDY}


@dataclass(frozen=True)
class Scene:
    """A data set of many equal members of a few kinds, one more member, and where it stands."""

    members: tuple[Member, ...]
    newcomer: Member
    place: int


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Kinds of members of any size, each up to 20 times; drawn from a seed, which is quicker than list by list."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = [
        tuple(random.permutation(ELEMENTS)[: random.integers(0, ELEMENTS + 1)].tolist())
        for _ in range(draw(st.integers(1, 7)))
    ]
    members = tuple(kind for kind in kinds[1:] for _ in range(random.integers(1, 20)))
    return Scene(members, kinds[0], draw(st.integers(0, len(members))))


def weights(members: Sequence[Member], turn: Round) -> NDArray[np.int64]:
    """Return the weights of a round."""
    return weigh(contributions(members, ELEMENTS), turn)


def first_round(method: Method, grids: Grids, enough: float) -> Round:
    """Return the round of a method with weights capped where a few members already reach."""
    turn = rounds(Parameters(method, Fraction(1, 2), Fraction(1, 100), ELEMENTS), grids)[0]
    return replace(turn, enough=int(enough * turn.grid.units))


@pytest.mark.slow
@pytest.mark.parametrize("method", [m for m in Method if m not in (Method.SIPS, Method.MAD2R)], ids=str)
@settings(max_examples=examples(40), deadline=None)
@given(scene=scenes(), grids=st.sampled_from([FINE, COARSE]), enough=st.floats(1, 4, exclude_min=True))
def test_one_more_member_moves_the_weights_by_at_most_the_sensitivity(
    method: Method, scene: Scene, grids: Grids, enough: float
) -> None:
    """For any members, any newcomer, anywhere in the sequence: the l2 distance in units, squared, in integers."""
    turn = first_round(method, grids, enough)
    members, newcomer = list(scene.members), scene.newcomer
    before = weights(members, turn)
    after = weights([*members[: scene.place], newcomer, *members[scene.place :]], turn)
    change = [int(each) for each in after - before]
    assert sum(each**2 for each in change) <= turn.grid.sensitivity**2
    held = {element for member in members for element in member}
    novel = sorted((int(after[element]) for element in set(newcomer) - held), reverse=True)
    bounds = novel_bounds(method, turn.grid, len(novel))
    assert all(weight <= bound for weight, bound in zip(novel, bounds, strict=True))


def novel_bounds(method: Method, grid: WeightGrid, count: int) -> list[int]:
    """Return what the threshold allows for: the most that each of `count` novel elements weighs, heaviest first."""
    if method is Method.GREEDY:
        return [grid.units, *[0] * count][:count]
    return [grid.equal_weight(max(count, 1)) + (0 if method in NON_ADAPTIVE else 2)] * count


def crafted_distance(degree: int, heavy: int) -> float:
    """Return how far a newcomer moves MAD's weights in its worst case, in weights of one.

    So many of its elements are so far beyond what is enough that all it gives to them goes back, almost all to itself.
    """
    turn = first_round(Method.MAD, Grids(adaptive=WeightGrid(2**36, adaptive_pairs=2**18)), 2.0)
    everything = tuple(range(degree))
    members = [(element,) for element in range(heavy) for _ in range(4000)]
    change = weights([*members, everything], turn) - weights(members, turn)
    return math.sqrt(sum(int(each) ** 2 for each in change)) / turn.grid.units


# How much of the newcomer's weight has to go back for the most distance depends on alpha.
HEAVY = [
    (degree, heavy)
    for degree in (4, 20, 50, 64)
    for heavy in sorted({1, degree // 8, degree // 4, degree // 2} - {0})
]


@pytest.mark.slow
@pytest.mark.parametrize(("degree", "heavy"), HEAVY)
def test_the_worst_case_of_rerouting_stays_below_one(degree: int, heavy: int) -> None:
    """With the constant that the sensitivity argument gives, even members made for it move the weights by one."""
    assert crafted_distance(degree, heavy) <= 1


@pytest.mark.parametrize(("rerouting", "heavy", "distance"), [(0, 25, 1.002), (1 / 4, 12, 1.0005)])
def test_rerouting_more_would_move_the_weights_by_more(
    monkeypatch: pytest.MonkeyPatch, rerouting: float, heavy: int, distance: float
) -> None:
    """With alpha = 1, or 1 - 1 / (4 sqrt d), the argument fails, and so does the bound."""
    monkeypatch.setattr(adaptive, "_ALPHA", int(2**16 * (1 - rerouting / math.sqrt(50))))
    assert crafted_distance(50, heavy) > distance


def test_rounding_by_the_weights_of_others_moves_them_by_more_than_one() -> None:
    """On a coarse grid the room for rounding is needed: without it the noise of Policy Gaussian would be too small."""
    turn = first_round(Method.POLICY_GAUSSIAN, Grids(adaptive=WeightGrid(16, adaptive_pairs=13)), 1.5)
    members, newcomer = [(4, 1, 2, 0), (4, 1, 3, 0)], (3, 1, 0, 2, 4)
    change = weights([newcomer, *members], turn) - weights(members, turn)
    squared = sum(int(each) ** 2 for each in change)
    assert turn.grid.units**2 < squared <= turn.grid.sensitivity**2
    assert turn.variance == variance_for(turn.grid.sensitivity**2, turn.rho)


def test_greedy_weights_fill_one_element_after_the_other() -> None:
    """What an element does not need goes to the member's next one, and never more than one weight in all."""
    turn = first_round(Method.GREEDY, COARSE, 1.5)
    units = turn.grid.units
    found = weights([(0, 1), (0, 1), (0, 1, 2)], turn).tolist()
    assert [units * 3 // 2, units * 3 // 2, 0] == found[:3]


def test_weights_are_rounded_down_exactly() -> None:
    """floor(G / sqrt k) in integers: squared it stays within G^2 / k, and one unit more does not."""
    grid = WeightGrid(2**30)
    for size, weight in some(enumerate(grid.equal_weights(200).tolist())):
        if size:
            assert weight**2 * size <= grid.units**2 < (weight + 1) ** 2 * size
