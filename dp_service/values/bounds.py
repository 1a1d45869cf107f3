"""The public bounds of a value column, in steps of its quantum, and what may be summed under them without loss.

Per member and group the total is

    s = clamp(sum over rows of clamp(x, row_low, row_high), low, high) .

Rows are clamped first, so that nothing overflows: whether a sum fails would tell of the data. All four numbers come
from the policy, never from the data of the question.

What an engine adds up must be exact. It sees integers, but some engines sum in doubles, which hold integers up to 2^53
only, and others in 64 bits. `require_exact_sums` decides that from public numbers alone, before a question is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dp_service.terms import FINE_STEPS, GRID
from dp_service.values.quantum import Quantum

SUMS_IN_DOUBLES = 2**53
"""Integers below this are exact in an engine that sums in doubles."""


@dataclass(frozen=True)
class Clamp:
    """The steps from `low` to `high`, low < high.

    What is not `is_centred` is added up as it is, so that 0 adds nothing.

    Raises:
        ValueError: They are no integers in this order.
    """

    low: int
    high: int
    is_centred: bool = True

    def __post_init__(self) -> None:
        if not all(isinstance(end, int) and not isinstance(end, bool) for end in (self.low, self.high)):
            raise ValueError(
                f"low and high must be whole steps of the quantum, got {self.low!r}, {self.high!r}"
            )
        if self.low >= self.high:
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")

    @property
    def width(self) -> int:
        """W = high - low: a centred value 2 x - (low + high) is within +-W; 2 x is within twice the largest |x|.

        >>> Clamp(0, 3000).width, Clamp(0, 3000).centre
        (3000, 3000)
        >>> Clamp(-1, 3000, is_centred=False).width, Clamp(-1, 3000, is_centred=False).centre
        (6000, 0)
        """
        return self.high - self.low if self.is_centred else 2 * self.largest

    @property
    def centre(self) -> int:
        """low + high, twice the middle: what is taken off twice a value to centre it."""
        return self.low + self.high if self.is_centred else 0

    @property
    def largest(self) -> int:
        """The largest number between the ends, without its sign."""
        return max(-self.low, self.high)

    @property
    def cell_step(self) -> int:
        """The steps of a member's cells in a sum: the least power of two of which `largest` has at most 1024.

        >>> Clamp(0, 1024).cell_step, Clamp(-1025, 0).cell_step, Clamp(0, 51_200).cell_step
        (1, 2, 64)
        """
        return 1 << max(0, (self.largest - 1).bit_length() - 10)

    @property
    def finer(self) -> Clamp:
        """The same ends in steps so fine that there are a thousand of them, by a power of ten.

        As so many rows a mean is rounded: of whole rows, or stars, the rounding of each member would be seen in a sum.

        >>> [(each.finer.low, each.finer.high) for each in (Clamp(0, 1), Clamp(-5, 20), Clamp(0, 1000))]
        [(0, 1000), (-500, 2000), (0, 1000)]
        """
        return Clamp(self.low * self.parts, self.high * self.parts)

    @property
    def is_fine(self) -> bool:
        """Whether so many steps lie between its ends that one more or less of a member hardly changes a sum."""
        return self.high - self.low >= FINE_STEPS

    def grid(self, of_counts: int) -> int:
        """Return what one step is in a sum: values of many steps need not be on the grid of counts."""
        return 1 if self.is_fine else of_counts

    @property
    def parts(self) -> int:
        """Into how many of these a step is divided."""
        return next(parts for parts in (1, 10, 100, 1000) if self.width * parts >= FINE_STEPS)

    @property
    def count_share(self) -> Fraction:
        """The part of the price of a SUM that N takes at best beside B, at least 1/16; see `BoundMoments`."""
        return max(Fraction(abs(self.centre), self.width + abs(self.centre)), Fraction(1, 16))

    def __call__(self, steps: int) -> int:
        """Return the nearest number between the ends."""
        return min(max(steps, self.low), self.high)


@dataclass(frozen=True)
class ValueBounds:
    """How one value column is rounded and clamped.

    Attributes:
        quantum: The step.
        rows: The clamp of every row, in steps.
        totals: The clamp of a member's total in a group, in steps.
    """

    quantum: Quantum
    rows: Clamp
    totals: Clamp

    def of_sum(self, rows: int | None) -> ValueBounds:
        """Return the bounds of a member's total in a sum, which is 0 without a row.

        It counts in full up to what so many rows can reach, and to the steps of its cells (`bounding.weights`). No row
        is brought further from 0 than it is: a sum that is cut is too small, and never too large.

        >>> of_sum = ValueBounds(Quantum(Fraction(1)), Clamp(1, 3), Clamp(2, 5000)).of_sum(1000)
        >>> of_sum.rows, of_sum.totals
        (Clamp(low=0, high=3, is_centred=True), Clamp(low=0, high=3000, is_centred=False))
        """
        of_rows = Clamp(min(self.rows.low, 0), max(self.rows.high, 0))
        low, high = min(self.totals.low, 0), max(self.totals.high, 0)
        if rows is not None and of_rows.low < 0:
            low = max(low, of_rows.low * rows)
        if rows is not None and of_rows.high > 0:
            high = min(high, of_rows.high * rows)
        step = Clamp(low, high).cell_step
        totals = Clamp(low // step * step, -(-high // step) * step, is_centred=False)
        return replace(self, rows=of_rows, totals=totals)


def require_exact_sums(
    bounds: ValueBounds, *, members: int, rows_of_member: int | None, rows: int, below: int
) -> None:
    """Raise ValueError unless every sum of an engine is certain to stay below a limit in absolute value.

    Args:
        bounds: How the column is clamped.
        members: The largest number of members of the table, as the policy states it.
        rows_of_member: tau where an average is over rows, None where it is over members' totals.
        rows: The largest number of rows of the table, as the policy states it; a member may have all of them.
        below: What the sums must stay below: such as `SUMS_IN_DOUBLES`.

    Raises:
        ValueError: A member's total, twice the sum, or that sum less n (low + high) could reach the limit.
    """
    clamp = bounds.of_sum(None).totals if rows_of_member is None else bounds.rows.finer
    # Over rows no more are summed than the table has.
    terms = members if rows_of_member is None else min(members * rows_of_member, rows)
    largest_total = rows * max(abs(bounds.rows.low), abs(bounds.rows.high))
    largest_sum = terms * (2 * max(abs(clamp.low), abs(clamp.high)) + abs(clamp.centre))
    largest_sum *= clamp.grid(GRID)
    # What a weight multiplies is divided by the grid in doubles, and rounded towards 0: three bits are left for that.
    weighted = 8 * GRID * clamp.width * (rows_of_member or 1)
    if (largest := max(largest_total, largest_sum, weighted)) >= below:
        raise ValueError(
            f"sums must stay below {below} on this engine, and could reach {largest}: "
            "take a coarser quantum, narrower bounds, or state smaller numbers of members and rows"
        )
