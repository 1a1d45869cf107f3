"""Squares of how far a number of steps is from the middle of its clamp, in whole steps of their own.

With c = 2 x - (low + high), within +-W of the clamp's width W, a number x counts with h = floor(c^2 / 2^j + 1/2),
from 0 to H = floor(W^2 / 2^j + 1/2), at least a thousand. So h is a number of a member, or of a row, between two public
ends, as x is. As the middle of the clamp is public, h is a function of x alone.

The square is of a double, and 2^j a power of two, perhaps below 1, so the result is the same on every engine that
computes in IEEE doubles: rounding is monotone, so that h never leaves its ends. It is off from c^2 / 2^j by at most
1/2, and by 2^-30 for what doubles leave of a square.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dp_service.values.bounds import SUMS_IN_DOUBLES, Clamp

OFF = Fraction(1, 2) + Fraction(1, 2**30)
"""By how much a square may be off from the exact one, in its steps."""

MOST_STEPS = 2**20
"""The largest H: a square is rounded to about a millionth of the largest one."""

LEAST_STEPS = 2**11
"""With fewer steps the rounding of squares would be seen in what follows from them."""

# Beyond it, 2^j would not be written exactly where an engine reads a whole number.
_WIDEST = 2**40


@dataclass(frozen=True)
class Squares:
    """The squares of a number's distance from the middle of its clamp.

    Attributes:
        of: The clamp of the number.
        halvings: j, how often squares are halved; negative: how often they are doubled.

    >>> squares = Squares.of_sums(Clamp(0, 3000), terms=10**6)
    >>> squares.halvings, squares.clamp, squares(0), squares(1500), squares(1530)
    (4, Clamp(low=0, high=562500), 562500, 0, 225)
    """

    of: Clamp
    halvings: int

    @classmethod
    def of_sums(cls, clamp: Clamp, *, terms: int) -> Squares:
        """Return squares of which so many are added up exactly in doubles.

        Args:
            clamp: The clamp of the number.
            terms: How many squares are added up at most.

        Raises:
            ValueError: The clamp is too wide, or so many squares would have to be rounded.
        """
        # Centred sums are below 3 H terms.
        most = min(MOST_STEPS, SUMS_IN_DOUBLES // (4 * terms))
        if clamp.width > _WIDEST or most < LEAST_STEPS:
            raise ValueError(
                f"squares of {clamp.width} steps cannot be added up {terms} times: take a coarser quantum, or state "
                "smaller numbers of members and rows"
            )
        halvings = (clamp.width**2 - 1).bit_length() - (most.bit_length() - 1)
        return cls(clamp, halvings)

    @property
    def clamp(self) -> Clamp:
        """The ends of a square, in its steps."""
        return Clamp(0, self._steps(self.of.width))

    @property
    def size(self) -> Fraction:
        """What one step is worth: so many squared halves of a step of the number."""
        return Fraction(2) ** self.halvings

    def __call__(self, steps: int) -> int:
        """Return the square of a number within its clamp."""
        return self._steps(self.of.centred(steps))

    def _steps(self, centred: int) -> int:
        return math.floor(float(centred) * float(centred) / float(self.size) + 0.5)
