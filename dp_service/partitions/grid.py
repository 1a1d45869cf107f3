"""The integer grid that weights are rounded down onto, and the sensitivity that is left after it.

A weight of one is `units` units. Every weight that a single member adds is rounded down before anything is summed, so
sums are exact and the l2 sensitivity of a histogram is a number of units.

Where weights depend on the member's own elements alone, rounding down only makes them smaller: the sensitivity is
`units`. Where the weights of some members depend on those of others (MAD, Policy Gaussian), one more member may turn
the rounding of others too, by at most three units for each of their pairs. `rounding` is that for the most pairs that
are allowed. It is a constant: a number that depended on the data would itself have to be protected.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import NDArray

UNITS_PER_PAIR = 3
_LARGEST_SUM = 2**62


@dataclass(frozen=True)
class WeightGrid:
    """How fine weights are, and how many pairs may round their weights by those of others (0: none do)."""

    units: int
    adaptive_pairs: int = 0

    @property
    def rounding(self) -> int:
        """By how much rounding adds to the l2 sensitivity, in units."""
        return UNITS_PER_PAIR * self.adaptive_pairs

    @property
    def sensitivity(self) -> int:
        """The l2 sensitivity of the histogram of weights to one member more or less, in units."""
        return self.units + self.rounding

    @property
    def most_members(self) -> int:
        """How many members there may be, so that no sum of their weights overflows."""
        return _LARGEST_SUM // self.units

    def equal_weight(self, size: int) -> int:
        """Return 1 / sqrt(size), rounded down onto the grid: the weight of each of `size` elements.

        >>> WeightGrid(1000).equal_weight(3)
        577
        """
        return isqrt(self.units**2 // size)

    def equal_weights(self, largest: int) -> NDArray[np.int64]:
        """Return the weights of members with 0 to `largest` elements, shape (largest + 1,); that of 0 is 0."""
        return np.array([0, *(self.equal_weight(size) for size in range(1, largest + 1))], dtype=np.int64)


OWN_ELEMENTS = WeightGrid(2**30)
"""For weights that depend on the member's own elements alone: up to 2^32 members."""

ADAPTIVE = WeightGrid(2**36, adaptive_pairs=2**26)
"""For weights that depend on other members: up to 2^26 pairs; rounding costs 0.3 % of the sensitivity."""
