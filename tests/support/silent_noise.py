"""A source of noise that is all 0, to see what a mechanism adds its noise to."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray


class SilentNoise:
    """Draws nothing but 0, in the order that comes in."""

    def discrete_laplace(self, inverse_scale: Fraction, size: int, label: str) -> NDArray[np.int64]:
        """Return zeros."""
        del inverse_scale, label
        return np.zeros(size, dtype=np.int64)

    def discrete_gaussian(self, variance: Fraction, size: int, label: str) -> NDArray[np.int64]:
        """Return zeros."""
        del variance, label
        return np.zeros(size, dtype=np.int64)

    def gumbel_order(self, weights: object, count: int, label: str) -> NDArray[np.int64]:
        """Refuse: a choice without noise has no meaning."""
        raise AssertionError("a choice without noise has no meaning")

    def random_order(self, size: int, label: str) -> NDArray[np.int64]:
        """Return the order that comes in."""
        del label
        return np.arange(size, dtype=np.int64)
