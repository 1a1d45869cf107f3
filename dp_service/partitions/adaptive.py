"""Adaptive weights: members take back what heavy elements do not need and give it to their other elements (MAD).

Members with k <= d elements (d is `MAX_DEGREE`) are adaptive. In units of the grid, every one of them first gives
a_k = floor(G / k) to each of its elements. Where that makes more than `enough`, the excess goes back to those who
gave it, in proportion; a member that gets e back adds alpha e / d to each of its elements. Then every member adds
what makes its weights floor(G / sqrt(k)) in all (only that, if it is not adaptive)::

    w(u)  = sum of a_k over the adaptive members of u            the first weights
    r(u)  = max(0, 1 - enough / w(u))                            what goes back, in float64 as written
    e_i   = sum over i's elements of floor(a_k r(u))             a_k r(u) in float64
    H(u)  = min(w(u), enough) + sum over u's members of (floor(G / sqrt k) - [k <= d] a_k + floor(e_i A / (d 2^16)))

with alpha = A / 2^16 = 1 - 1 / (2 sqrt d), rounded down. r never falls as w rises, in float64 too.

**Sensitivity.** Let one member with k elements W come; let x(u) be how much of its a_k becomes excess at u in W, E the
sum of x, and b(u) what all members' rerouting to u grows by. H changes by v(u) = 1/sqrt(k) - x(u) + b(u) on W and
b(u) elsewhere, in weights of one, rounding apart. Nobody gets less back than before, and all together E more; of that
each of a member's at most d elements gets alpha / d. So the sum of b is at most alpha E, and no b(u) is above
alpha E / d. |v|^2 is convex in (b, x), and b gains most on W (the gain 2 b (1/sqrt(k) - x) is never negative, since
x <= 1/k); so b = alpha E / d at d places, all of W among them, is the worst::

    |v|^2 - 1 <= -(2 / sqrt k) (1 - alpha k / d) E - (2 alpha - alpha^2) E^2 / d + sum of x^2,  sum of x^2 <= E / k

which is at most 0 if alpha <= (d / k) (1 - 1 / (2 sqrt k)); that falls with k, and k = d is the alpha above. A member
that is not adaptive changes nothing but its own 1 / sqrt(k). Rounding: the member's own weights only get smaller,
and each pair of another adaptive member can gain one unit in floor(a_k r) and, through e_i, one in the last floor,
with less than 1/1000 for float64; that is within `UNITS_PER_PAIR`.

**Novel elements.** Where t of W's k elements are the new member's alone, each holds at most 1/sqrt(k) and what comes
back from the other k - t: 1/sqrt(k) + (alpha / d) (1 - t / k). For d >= 4 that is largest at k = t: 1/sqrt(t), as
without rerouting.

Source: Chen, Cohen-Addad, Epasto, Zadimoghaddam 2025, MaxAdaptiveDegree. The constant alpha and the rounding are
derived here.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_DEGREE = 50
"""d: members with more elements do not take anything back."""

_ALPHA_BITS = 16
# alpha = 1 - 1 / (2 sqrt d), rounded down.
_ALPHA = 2**_ALPHA_BITS - isqrt(4 ** (_ALPHA_BITS - 1) // MAX_DEGREE) - 1
_DIVISOR = MAX_DEGREE * 2**_ALPHA_BITS


def first_weights(units: int, sizes: Integers) -> Integers:
    """Return a_k for members with `sizes` elements, 0 for those that are not adaptive; shape as `sizes`."""
    return np.where((sizes > 0) & (sizes <= MAX_DEGREE), units // np.maximum(sizes, 1), 0)


def returned_fractions(weights: Integers, enough: int) -> Floats:
    """Return r for elements with these first weights; shape as `weights`."""
    # Dividing an integer constant by larger and larger floats gives smaller and smaller floats: r is monotone.
    return 1.0 - enough / np.maximum(weights, enough).astype(np.float64)


def returned(first: Integers, fractions: Floats) -> Integers:
    """Return floor(a_k r) for pairs; both arrays have their shape."""
    return np.floor(first.astype(np.float64) * fractions).astype(np.int64)


def rerouted(returned_sums: Integers) -> Integers:
    """Return what a member that got back e adds to each of its elements; shape as `returned_sums`."""
    return returned_sums * _ALPHA // _DIVISOR
