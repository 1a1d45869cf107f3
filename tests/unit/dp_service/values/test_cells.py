"""Grids are made of public numbers, and every member has one value and one cell."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dp_service.values.cells import MAX_CELLS, Grid
from tests.support.cells import cell_of, counts_of
from tests.support.some import some
from tests.support.values import bounds_of

BOUNDS = bounds_of(Fraction(1), (Fraction(-5), Fraction(100)), (Fraction(0), Fraction(150)))


@pytest.mark.parametrize(
    "grid",
    [
        Grid.linear(-7, 90, 13),
        Grid.geometric(1, 10**6, 60),
        Grid.geometric(100, 300_000, 500),
    ],
)
def test_every_value_has_one_cell(grid: Grid) -> None:
    """Cells are next to one another; what is beyond the ends is in the first and the last one."""
    for cell, (low, high) in some(enumerate(pairwise(grid.edges))):
        assert grid.bounds_of(cell) == (low, high)
        assert cell_of(grid, low) == cell_of(grid, high - 1) == cell
    assert cell_of(grid, grid.edges[0] - 9) == 0
    assert cell_of(grid, grid.edges[-1]) == cell_of(grid, 10**30) == len(grid) - 1
    values = [grid.edges[0] - 1, *grid.edges, grid.edges[-1] + 1]
    cells = [cell_of(grid, value) for value in values]
    assert list(counts_of(grid, values)) == np.bincount(cells, minlength=len(grid)).tolist()


def test_geometric_cells_grow_by_one_factor() -> None:
    """And powers that are whole numbers are met exactly."""
    assert Grid.geometric(1, 2**40, 40).edges == tuple(2**power for power in range(41))
    edges = Grid.geometric(1000, 10**6, 300).edges
    ratios = [high / low for low, high in pairwise(edges)]
    assert len(edges) == 301
    assert max(ratios) - min(ratios) < 0.003
    assert len(Grid.geometric(1, 100, 200)) < 100


def test_the_largest_grid_is_made_and_used_at_once() -> None:
    """100,000 cells."""
    grid = Grid.geometric(10**6, 10**12, MAX_CELLS)
    assert len(grid) == MAX_CELLS
    assert sum(counts_of(grid, range(10**6, 10**12, 10**8))) == 10**4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Grid.linear(0, 10, 1), "from 2 to 100000 cells"),
        (lambda: Grid.linear(0, 10**7, 10**6), "from 2 to 100000 cells"),
        (lambda: Grid.linear(0, 10, 11), "10 steps cannot have 11"),
        (lambda: Grid.linear(5, 5, 2), "end above 5"),
        (lambda: Grid.geometric(0, 10, 2), "positive"),
        (lambda: Grid.geometric(1, 10, 10**6), "from 2 to 100000 cells"),
        (lambda: Grid((0, 2, 2)), "ascend"),
        (lambda: Grid((0,)), "from 2"),
        (lambda: Grid((0, 1, 2**63)), "2\\^62"),
    ],
)
def test_grids_that_make_no_sense_are_refused_by_name(make: Callable[[], object], message: str) -> None:
    """One cell, too many cells, and edges that do not ascend."""
    with pytest.raises(ValueError, match=message):
        make()
