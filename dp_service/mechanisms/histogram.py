"""The input of every mechanism: counts that have been checked."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_COUNT = 2**53


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts listed in the order of their elements.

    `counts_by_element` has shape (n,) and dtype int64: entry i is the count of the i-th element **in an
    order of the elements that does not depend on the counts** (by code point, say). This is a precondition
    of privacy: equal noisy counts are released in this order, so an order by true count
    would publish which of two tied elements is really larger.

    Build one with `from_element_order`, which checks.
    """

    counts_by_element: NDArray[np.int64]

    @classmethod
    def from_element_order(cls, counts: ArrayLike) -> "Histogram":
        """Return checked counts; they must be in a data-independent order of the elements.

        Floats are refused even where they are whole: a count that passed through a float may have lost its
        last digits.

        Raises:
            ValueError: Unless `counts` is a one-dimensional array of integers from 0 to 2^53.
        """
        array = np.asarray(counts)
        if array.ndim != 1:
            raise ValueError(f"counts must be one-dimensional, got {array.ndim} dimensions")
        if array.size and array.dtype.kind not in "iu":
            raise ValueError(f"counts must be integers, got dtype {array.dtype}")
        if array.size and not 0 <= int(array.min()) <= int(array.max()) <= MAX_COUNT:
            raise ValueError("counts must be from 0 to 2^53")
        return cls(array.astype(np.int64))

    def __len__(self) -> int:
        return self.counts_by_element.size

    @cached_property
    def canonical_order(self) -> NDArray[np.int64]:
        """Indices of the elements by count, descending, and by element where counts are equal.

        How long that takes depends on the counts; the mechanisms that are served work on `Rows`.
        """
        return np.argsort(-self.counts_by_element, kind="stable")

    def padded_to(self, rows: int) -> NDArray[np.int64]:
        """Return the counts by element, followed by zeros up to `rows`, shape (rows,).

        Raises:
            ValueError: If the histogram has more rows than that.
        """
        if len(self) > rows:
            raise ValueError(f"counts must have at most d_bar + 1 = {rows} rows, got {len(self)}")
        padded = np.zeros(rows, dtype=np.int64)
        padded[: len(self)] = self.counts_by_element
        return padded
