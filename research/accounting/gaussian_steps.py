"""One unit of Gaussian noise on the grid of the adaptive bound: the weights of the points that it leads to.

Under the one neighbour the likelihood ratio of a unit is at worst L = exp(h Z - h^2 / 2), Z normal and h = e / 2: the
game's value at x is then E V(x L), V convex (`research/docs/gaussian-accounts.md`). A table stands for a function
that is linear in x between the points exp(i g), and the mean of such a function is a sum over points: that of the hat
function of each, E hat_d(L), which follows from the masses of L and of the law that L weights in every cell.

From above h = e / 2. From below the points are reached by L' and then by one of both ends of the cell, of mean 1: a
bounded-range step of range g. Such a step is less spread than a Gaussian one of h = c g, c^2 = pi / 8 (lemma 5 of that
page), so the two together are less spread than L if h'^2 + c^2 g^2 <= (e / 2)^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from mpmath.ctx_mp import MPContext
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Beyond so many standard deviations the mass is below 2^-76.
_REACH = 10

# Differences of masses lose at most forty digits: sixty are left.
_REALS: Any = MPContext()
_REALS.dps = 100


@dataclass(frozen=True)
class GaussianStep:
    """The weights of the points `reach` before to `reach` after a point, shape (2 reach + 1,), each right to 2^-52.

    Where L is larger, its mass is that of the last point; `below` is the mass where it is smaller, rounded up.
    """

    weights: Floats
    below: float

    @property
    def reach(self) -> int:
        """How many points a step leads away, in either direction."""
        return self.weights.size // 2

    def from_above(self, padded: Floats) -> Floats:
        """Return E V(x L), rounded up, at each of n points; `padded` has `reach` more before and after them.

        V is at most 1. A sum of m products of numbers that are not negative is right to one part in 2^53 / (m + 1).
        """
        rounding = (self.weights.size + 4) * 2.0**-52
        return self._added(padded) * (1 + rounding) + self.below

    def from_below(self, padded: Floats) -> Floats:
        """Return the same rounded down; V is at least 0 where L is smaller."""
        return self._added(padded) * (1 - (self.weights.size + 4) * 2.0**-52)

    def _added(self, padded: Floats) -> Floats:
        return np.convolve(padded, self.weights[::-1], mode="valid")


@lru_cache(maxsize=16)
def gaussian_step(step: float, unit: int, *, above: bool) -> GaussianStep | None:
    """Return the weights on a grid of `unit` steps for one e, from above or below; None if it is too coarse for that.

    To a hundred digits, of which the differences below leave far more than a float's.
    """
    whole = _REALS.mpf(step) * unit / 2
    reach = math.ceil(unit * (_REACH / 2 + float(whole) / 4))
    squared = (
        whole**2 if above else (whole**2 - _REALS.pi / 8 * _REALS.mpf(step) ** 2) * (1 - _REALS.mpf(2) ** -40)
    )
    if squared <= 0:
        return None
    h = _REALS.sqrt(squared)
    logs = [_REALS.mpf(step) * each for each in range(-reach, reach + 1)]
    plain = [_REALS.ncdf((each + squared / 2) / h) for each in logs]
    weighted = [_REALS.ncdf((each - squared / 2) / h) for each in logs]
    weights = [_REALS.mpf(0)] * len(logs)
    for i in range(len(logs) - 1):
        mass, start = plain[i + 1] - plain[i], _REALS.exp(logs[i])
        # The part of the cell's mass that goes to its far end, so that the mean stays where it is.
        far = (weighted[i + 1] - weighted[i] - start * mass) / (start * _REALS.expm1(step))
        weights[i] += mass - far
        weights[i + 1] += far
    if above:
        weights[-1] += 1 - plain[-1]
    return GaussianStep(
        np.array([float(each) for each in weights]), math.nextafter(float(plain[0]), math.inf)
    )
