"""The rows that a mechanism computes on: as many as it may see, in a random order.

Timing must not reveal the counts. Everything that mechanisms do with single rows is arithmetic whose time does not
depend on the numbers (a mask is multiplied with and not branched on, as `numpy.where` would); what is left is
sorting, which compares rows and branches on what it finds. So

* there are always as many rows as the parameters say: missing ones are there with a count of 0, draw their
noise like all others, and are never eligible for release;
* the rows are in a random order, which is independent of the counts and of the order of the elements;
* `descending` sorts integers that are all different. Whatever the counts are, the answers to its comparisons
have the law of those for random integers.

The noise of a row is independent of all others and of the same law, so which row got which does not matter.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.histogram import Histogram
from dp_service.noise.sorting import ascending_order
from dp_service.noise.source import NoiseSource


@dataclass(frozen=True, eq=False)
class Rows:
    """Counts in a random order: `counts[i]` is that of element `elements[i]`; int64, both of shape (n,).

    `elements` holds each of 0..n-1 once. From the number of elements of the histogram on they are missing
    rows, whose count is 0.
    """

    counts: NDArray[np.int64]
    elements: NDArray[np.int64]

    @classmethod
    def shuffled(cls, histogram: Histogram, size: int, noise: NoiseSource) -> "Rows":
        """Return the rows of a histogram, filled up to `size` of them; draws from the label "rows".

        Raises:
            ValueError: If the histogram has more rows than that.
        """
        by_element = histogram.padded_to(size)
        elements = noise.random_order(size, "rows")
        return cls(by_element[elements], elements)

    def __len__(self) -> int:
        return self.counts.size

    def descending(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return positions by descending value, one value for each row, and by element where values are equal.

        Discrete noise ties often. Any other order among equals, that of the counts above all, would reveal
        more than the values do; the order of the elements is independent of them.
        """
        # Ascending order of the complements is descending order of the values.
        return ascending_order(~values, self.elements)
