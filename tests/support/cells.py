"""In which cells of a grid values are: what every engine's answer is compared with."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from dp_service.values.cells import Grid


def cell_of(grid: Grid, value: int) -> int:
    """Return the cell that a value is in; the first or the last one beyond the edges."""
    return min(max(bisect_right(grid.edges, value) - 1, 0), len(grid) - 1)


def counts_of(grid: Grid, values: Iterable[int]) -> tuple[int, ...]:
    """Return how many values are in each cell."""
    found = Counter(cell_of(grid, value) for value in values)
    return tuple(found[cell] for cell in range(len(grid)))
