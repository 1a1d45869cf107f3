"""Every method keeps its promise on all small data sets, exactly; wrong forms of it do not."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import pytest

from dp_service.bounding.contributions import Contributions
from dp_service.partitions import Method, Parameters, rounds, schedule
from dp_service.partitions.grid import Grid
from dp_service.partitions.schedule import Grids

from .data import Member, neighbours
from .enumeration import output_law, promised, tail, worst_excess

GRIDS = Grids(Grid(8), Grid(128, adaptive_pairs=8))
"""Coarse, so that rounding and the discrete tail matter as much as they can."""

ROUNDING_ERROR = 1e-12
"""Of sums of floats; far below every delta here."""

# Noise of a few units around weights of a few members, and noise that hardly hides anything.
BUDGETS = [(Fraction(1, 4), Fraction(1, 50)), (Fraction(2), Fraction(1, 20))]
CASES = [
    Parameters(method, rho, delta, delta_0, 2)
    for method in Method
    for rho, delta in BUDGETS
    for delta_0 in (1, 2)
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


@pytest.mark.parametrize("parameters", CASES, ids=str)
def test_all_neighbours_are_as_close_as_promised(parameters: Parameters) -> None:
    """At every epsilon the hockey-stick divergence of the exact laws is at most that of corollary 9."""
    assert excess(parameters) <= ROUNDING_ERROR
