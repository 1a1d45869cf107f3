"""WIDTH_BUCKET(price, 0, 100, 10), FLOOR(price / 10) * 10: the bin of a number, by its label.

Its domain is the labels. Numbers are rounded to the policy's quantum, as where they are summed, and those beyond the
edges are in the first bin or in the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, ClassVar

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.answer_columns import BIN_COLUMN
from dp_service.queries.canonical_bytes import summed_bytes
from dp_service.queries.canonical_columns import QueryValue, Source
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import require_valid
from dp_service.queries.functions.function import Meaning, OfColumn, numbered
from dp_service.values.bounds import Clamp

if TYPE_CHECKING:
    from dp_service.queries.derived_columns import Context

MAXIMUM_EDGES = 100
# Below them doubles hold every half of a step.
_MOST_STEPS = 2**52


@dataclass(frozen=True)
class Binned(OfColumn):
    """The bin of a value column's number: the first of numbers below `edges[0]`, the last of those above.

    Attributes:
        column: The value column.
        edges: Where a bin ends and the next one begins, ascending; at most 100.
        labels: What stands for each bin, ascending: one more than there are edges.
    """

    NAMES: ClassVar[tuple[str, ...]] = numbered(BIN_COLUMN)

    edges: tuple[Fraction, ...]
    labels: tuple[int, ...]

    def __post_init__(self) -> None:
        require_valid(
            1 <= len(self.edges) <= MAXIMUM_EDGES,
            "dimensions",
            f"{self.column}: expected bins with 1 to {MAXIMUM_EDGES} edges, got {len(self.edges)}",
        )
        ascending = all(low < high for low, high in pairwise(self.edges))
        require_valid(ascending, "dimensions", f"{self.column}: expected ascending edges of bins")

    def __str__(self) -> str:
        return f"bins of {self.column}"

    def meaning(self, context: Context) -> Meaning:
        """Return the bins in steps of the column's quantum."""
        value = context.value(self.column)
        size = value.bounds.quantum.size
        # A number is below an edge exactly if its steps are below the edge's, rounded up.
        edges = tuple(ceil(each / size) for each in self.edges)
        if max(map(abs, edges)) > _MOST_STEPS:
            raise QuestionError("dimensions", f"{value.name}: expected edges of bins of at most 2^52 steps")
        rows = replace(value.bounds, rows=Clamp(edges[0] - 1, edges[-1]))
        read = replace(value, bounds=rows, has_own_count=False)
        typical = context.table.numbers_of(self.column).typical
        return Meaning(QueryBins(read, edges, self.labels), self.labels, typical or len(self.labels))


@dataclass(frozen=True)
class QueryBins(Source):
    """The label of the first of `edges` that a row's number is below, in steps of its quantum; the last one beyond all.

    `value` is brought between the edges, and of it nothing else is used than how a row's number is read and rounded.
    """

    value: QueryValue
    edges: tuple[int, ...]
    labels: tuple[int, ...]

    def __bytes__(self) -> bytes:
        numbers = (str(each).encode() for each in (*self.edges, *self.labels))
        return length_prefixed(b"bins", summed_bytes(self.value), *numbers)

    @property
    def values_read(self) -> tuple[QueryValue, ...]:
        """The column whose numbers it reads, as those that are summed."""
        return (self.value,)

    def __str__(self) -> str:
        return f"the bin of {self.value.name}"
