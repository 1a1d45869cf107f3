"""Weightings that read one member after the other, each aware of the weights so far: the sequential baselines.

Both move weights towards `enough` (the threshold and a buffer) and never beyond it.

**Policy Gaussian** (DPSU). A member's step is along the gaps enough - H of its elements, of l2 length one weight or to
the end, whichever is nearer. Without rounding a step maps H to enough - max(0, 1 - 1 / |gap|) gap, which shrinks a
vector towards the point `enough`; such a map never moves two points apart. So what one more member adds, at most one
weight, is the most that histograms can differ by after all members that follow. Rounding a step down moves each of
the following members' pairs by less than a unit, in either histogram; float64 adds less than 1/1000. That is within
`UNITS_PER_PAIR`. Novel elements have the whole gap, so t of them get at most 1 / sqrt(t) each.
Source: Gopi et al. 2020, algorithms 5 and 6 (l2-descent).

**Greedy without sampling** (GW). A member gives its one weight to its first element up to `enough`, what is left to its
next, and so on. Its elements come in the order of its own frequencies. Let D >= 0 be what histograms with and without
one more member differ by. A member that follows fills the same elements in the same order; where D has filled more, it
has more left for later ones, so no element ends up lower, and it gives no more in all than without D. So the sum of D
never grows beyond one weight: the l1 sensitivity, which bounds the l2 sensitivity. All of it is exact in integers. A
novel element has more room than one weight, so a member gives to at most one of them.
Source: Carvalho, Wang and Gondara 2022, GW; with Gaussian noise in place of Laplace, as all methods here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dp_service.bounding.contributions import Contributions

Integers = NDArray[np.int64]


def policy_weights(contributions: Contributions, units: int, enough: int) -> Integers:
    """Return the weights of Policy Gaussian, shape (element_count,)."""
    weights = np.zeros(contributions.element_count, dtype=np.int64)
    for elements in _members(contributions):
        gap = enough - weights[elements]
        # Scaled down first, so that squares are in the range of floats whatever the grid.
        length = math.sqrt(float(np.square(gap / units).sum()))
        weights[elements] += gap if length <= 1 else np.floor(gap / length).astype(np.int64)
    return weights


def greedy_weights(contributions: Contributions, units: int, enough: int) -> Integers:
    """Return the weights of GW, shape (element_count,). Members' elements are in the order of their frequencies."""
    weights = np.zeros(contributions.element_count, dtype=np.int64)
    for elements in _members(contributions):
        filled = np.minimum(np.cumsum(enough - weights[elements]), units)
        weights[elements] += np.diff(filled, prepend=0)
    return weights


def _members(contributions: Contributions) -> list[NDArray[np.int32]]:
    """Return the elements of every member that has any."""
    return [part for part in np.split(contributions.elements, contributions.offsets[1:-1]) if part.size]
