"""How much a member counts in each of its elements: less than 1 where it has many.

A member u has cells x_ui, one for each element: 1 where distinct members are counted, min(rows, tau) where rows are.
All of them are multiplied by one weight W_u, on a grid of 1/100, so that the l2 norm of what the member adds is at most
that of Delta full cells. With Q_u the sum of the squares of its cells and D = Delta tau^2 100^2,

    W_u = 100 if Q_u <= Delta tau^2, otherwise isqrt(D // Q_u) ,

which is the largest whole number up to 100 with W_u^2 Q_u <= D. Any rule that looks at the member's own rows alone is
private; this one leaves out no element.

The sum or the average of a column has a weight of its own, of its own cells: few rows may have a value, and a count of
all rows says nothing of their amounts. Each number of a release is bounded, and has its noise, by itself, so a number
is the same alone and beside others. For an average x is min(rows with a value, tau) with the column's own tau. For a
sum x is a member's total s of an element, within +-U, in steps of a power of two: ceil(|s| / step), and U / step, at
most 1024, is what counts in full in place of tau.

Of a member, R rows of a number count in full in all elements together. These are in at most R elements, so where a
number has a weight of its own, Delta in the rule above is min(Delta, R), and its noise is by the same D. Whoever has
rows in more elements counts with less in each, as with any other Delta: privacy does not rest on R.
"""

from __future__ import annotations

WEIGHT_COLUMN = "weight"
"""The column of a prepared copy that says how much a member counts, on the grid."""

MAX_SQUARED_DISTANCE = 2**52
"""Below it an engine finds weights exactly in floats: FLOOR(SQRT(FLOOR(D / Q))) rounds no floor up."""


def least_kept(grid: int) -> int:
    """Return the least contribution that counts over an unknown domain.

    Where members are counted, one of 70 Delta elements or more counts in none of them. Without this, a threshold would
    have to hide ever smaller contributions to ever more elements.
    """
    return grid // 8
