"""How far each cell of a public grid is from a wanted rank: the scores that the exponential mechanism chooses by.

Every value has one cell. L(x) is the number of values at or below cell x, R(x) the number of those above, and L(-1)
= 0, R(-1) = all of them. A member has one value, or several: one for each of its rows.

*A quantile* q = a / b. Cell x holds the ranks from L(x - 1) to L(x), and q n lies among them exactly if
a R(x) <= (b - a) L(x) and (b - a) L(x - 1) <= a R(x - 1). So

    score(x) = -max( a R(x) - (b - a) L(x), (b - a) L(x - 1) - a R(x - 1), 0 )

is -b times the distance of q n from these ranks. (The plain |a R - (b - a) L| prefers wrong cells where many
values are equal.) Some cell always has score 0: the first with a R <= (b - a) L.

*The largest*, with c values to spare: R(x) <= c <= R(x - 1), score(x) = -max(R(x) - c, c - R(x - 1), 0). *The
smallest*: L(x - 1) <= c <= L(x), score(x) = -max(L(x - 1) - c, c - L(x), 0).

Why one value moves all scores within a range. Adding one at cell y moves a R - (b - a) L by a for x < y and by
-(b - a) from y on, and the second term by -a up to y and by b - a beyond. A maximum moves by no more than what is in
it, so every score moves within +-max(a, b - a): a range of 2 max(a, b - a). For the largest and the smallest
each term moves by 0 or 1, the two in opposite directions: a range of 2. The t values of a member move all scores
within t times that. Weights exp(e score / (tau range)) are then e-bounded range for a member with at most tau values,
and (e t / tau)-bounded range for one with t (Durfee and Rogers 2019, lemma 4.2; Dong, Durfee and Rogers 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

MAX_DENOMINATOR = 10_000
"""Quantiles are a / b with b up to this: 0.9999 is the last of four digits."""

MAX_VALUES = 2**38
"""With so many values, scores of whatever quantile fit what the selection takes."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """Values up to and above each cell, and those before it; int64 of shape (cells,)."""

    up_to: Integers
    above: Integers
    before: Integers
    from_it_on: Integers

    @classmethod
    def of(cls, counts: Integers) -> Ranks:
        """Return the ranks of cells with so many values each."""
        up_to = np.cumsum(counts)
        before = up_to - counts
        total = int(counts.sum())
        return cls(up_to, total - up_to, before, total - before)


class Wanted(Protocol):
    """A rank that is wanted, by its scores."""

    @property
    def score_range(self) -> int:
        """The range within which one value moves all scores."""
        ...

    @property
    def steps_of_rank(self) -> int:
        """How much a score falls with each value that a cell is further away."""
        ...

    def scores(self, ranks: Ranks) -> Integers:
        """Return the score of each cell, 0 where it holds the wanted rank and negative elsewhere."""
        ...


@dataclass(frozen=True)
class Quantile:
    """The quantile q, strictly between 0 and 1.

    >>> Quantile(Fraction(1, 4)).scores(Ranks.of(np.array([0, 2, 0, 5, 1]))).tolist()
    [-8, 0, 0, 0, -20]

    Raises:
        ValueError: It is not, or its denominator is above 10,000.
    """

    q: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.q, Fraction) or not 0 < self.q < 1:
            raise ValueError(f"a quantile must lie strictly between 0 and 1, got {self.q}")
        if self.q.denominator > MAX_DENOMINATOR:
            raise ValueError(f"a quantile must have a denominator of at most {MAX_DENOMINATOR}, got {self.q}")

    @property
    def score_range(self) -> int:
        """2 max(a, b - a)."""
        a, b = self.q.as_integer_ratio()
        return 2 * max(a, b - a)

    @property
    def steps_of_rank(self) -> int:
        """b."""
        return self.q.denominator

    def scores(self, ranks: Ranks) -> Integers:
        """Return -b times the distance of q n from the ranks of each cell."""
        a, b = self.q.as_integer_ratio()
        too_low = a * ranks.above - (b - a) * ranks.up_to
        too_high = (b - a) * ranks.before - a * ranks.from_it_on
        return _negative(too_low, too_high)


@dataclass(frozen=True)
class Largest:
    """The largest value but for `spare` others."""

    spare: int

    score_range = 2
    steps_of_rank = 1

    def scores(self, ranks: Ranks) -> Integers:
        """Return the negative distance of c from the values above a cell and from it on."""
        return _negative(ranks.above - self.spare, self.spare - ranks.from_it_on)


@dataclass(frozen=True)
class Smallest:
    """The smallest value but for `spare` others."""

    spare: int

    score_range = 2
    steps_of_rank = 1

    def scores(self, ranks: Ranks) -> Integers:
        """Return the negative distance of c from the values before a cell and up to it."""
        return _negative(ranks.before - self.spare, self.spare - ranks.up_to)


def _negative(too_low: Integers, too_high: Integers) -> Integers:
    """Return the negative of how far each cell is off, whichever way; at most one of the two is positive."""
    return np.asarray(-np.maximum(np.maximum(too_low, too_high), 0), dtype=np.int64)
