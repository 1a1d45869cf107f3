"""The output of a mechanism: all of a release, before it is decided what a question shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.selection import Selection

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class MechanismOutput:
    """A release as its mechanism returned it.

    Attributes:
        selection: The elements in their order, and their noisy counts.
        total: The noisy number of members; None: the mechanism draws none.
        sums: The noisy centred sums of each column that is summed, one for each element, and then the noisy counts of
            the columns that have some of their own.
        cells: The chosen cells of each quantile that is released, one for each element.
    """

    selection: Selection
    total: int | None = None
    sums: tuple[Integers, ...] = ()
    cells: tuple[Integers, ...] = ()

    def of_rows(self, rows: Sequence[int]) -> MechanismOutput:
        """Return the release as if these were all of its elements, in this order."""
        selection, places = self.selection, np.array(rows, dtype=np.int64)
        counts = selection.noisy_counts
        kept = Selection(
            selection.indices[places],
            None if counts is None else counts[places],
            selection.ended_in_bottom and len(rows) == selection.indices.size,
            selection.bottom,
        )
        sums, cells = (tuple(column[places] for column in columns) for columns in (self.sums, self.cells))
        return replace(self, selection=kept, sums=sums, cells=cells)
