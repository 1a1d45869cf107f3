"""Public grids: the cells that a quantile, a largest or a smallest value is chosen from.

Cell i holds the values from edge i to below edge i + 1, in whole steps of the quantum. Values below the first edge are
in the first cell, and values from the last edge on in the last one. A grid comes from the policy or the question and is
never made of the data: of a grid that ends at the data's own largest value, the last edge is somebody's value.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from itertools import pairwise

from dp_service.terms import GridScale, GridSpec

MAX_CELLS = 100_000

_DIGITS = 60
_ROUNDING = Decimal(10) ** -30


@dataclass(frozen=True)
class Grid:
    """Cells between ascending edges.

    Raises:
        ValueError: There are less than 2 cells or more than 100,000, or edges do not ascend or do not fit 64 bits.
    """

    edges: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self) <= MAX_CELLS:
            raise ValueError(f"a grid must have from 2 to {MAX_CELLS} cells, got {len(self)}")
        if any(low >= high for low, high in pairwise(self.edges)):
            raise ValueError("edges of a grid must ascend")
        if not -(2**62) <= self.edges[0] <= self.edges[-1] <= 2**62:
            raise ValueError("edges of a grid must be within +-2^62")

    def __len__(self) -> int:
        return len(self.edges) - 1

    @classmethod
    def of(cls, spec: GridSpec) -> Grid:
        """Return the grid that a policy states.

        Raises:
            ValueError: There is none: as for `linear` and `geometric`.
        """
        return _made(spec)

    @classmethod
    def linear(cls, low: int, high: int, cells: int) -> Grid:
        """Return cells of equal width, up to one step.

        >>> Grid.linear(0, 100, 8).edges
        (0, 12, 25, 37, 50, 62, 75, 87, 100)

        Raises:
            ValueError: The cells are too many, for the grid or for the steps from `low` to `high`.
        """
        _require_cells(low, high, cells)
        return cls(tuple(low + (high - low) * place // cells for place in range(cells + 1)))

    @classmethod
    def geometric(cls, low: int, high: int, cells: int) -> Grid:
        """Return cells each of which is wider than the one before by the same factor, down to one step.

        Edge i is low (high / low)^(i / cells), rounded down, from decimal arithmetic with 60 digits: the same on every
        platform. Where that is less than a step further, edges that would be equal are one, and the grid has
        fewer cells.

        >>> Grid.geometric(1, 1000, 6).edges
        (1, 3, 10, 31, 100, 316, 1000)

        Raises:
            ValueError: `low` is not positive, or the cells are too many or too few.
        """
        if low < 1:
            raise ValueError(f"a geometric grid must begin with a positive number of steps, got {low}")
        _require_cells(low, high, cells, are_merged=True)
        context = Context(prec=_DIGITS)
        whole = context.subtract(context.ln(Decimal(high)), context.ln(Decimal(low)))
        factor = context.exp(context.divide(whole, Decimal(cells)))
        inner, value = set(), Decimal(low)
        for _ in range(cells - 1):
            value = context.multiply(value, factor)
            # A power that is a whole number must not be rounded down to the one before.
            inner.add(int(context.add(value, _ROUNDING)))
        return cls(tuple(sorted({low, high, *(edge for edge in inner if low < edge < high)})))

    def bounds_of(self, cell: int) -> tuple[int, int]:
        """Return the first value of a cell and the first one after it."""
        return self.edges[cell], self.edges[cell + 1]


@lru_cache(maxsize=256)
def _made(spec: GridSpec) -> Grid:
    match spec.scale:
        case GridScale.LINEAR | GridScale.DATES:
            return Grid.linear(spec.low, spec.high, spec.cells)
        case GridScale.GEOMETRIC:
            return Grid.geometric(spec.low, spec.high, spec.cells)


def _require_cells(low: int, high: int, cells: int, *, are_merged: bool = False) -> None:
    if low >= high:
        raise ValueError(f"a grid must end above {low}, where it begins, got {high}")
    if not 2 <= cells <= MAX_CELLS:
        raise ValueError(f"a grid must have from 2 to {MAX_CELLS} cells, got {cells}")
    if cells > high - low and not are_merged:
        raise ValueError(f"a grid of {high - low} steps cannot have {cells} cells")
