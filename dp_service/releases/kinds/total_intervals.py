"""The intervals of totals, and of what the elements that a question shows leave of them.

Intervals of a total are plain: nothing selects it, and its noise is independent of what selects the elements. *Other*
is the total less the counts of the j elements that are shown of it. Its interval has the total at alpha / 2 and each of
the elements, given that it is shown, at alpha / (2 j): all of them cover together with probability 1 - alpha, and then
so does the difference of their ends. Where none is shown, what is left is the total, with its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from dp_service.mechanisms.aggregates import BoundMoments, DrillDown, other
from dp_service.mechanisms.aggregates.intervals import (
    ShownRows,
    SumInterval,
    shown_by_count,
    sum_intervals,
    within_signs,
)
from dp_service.mechanisms.aggregates.released import ReleasedMoments
from dp_service.mechanisms.intervals import CountIntervals, gaussian_noise_interval
from dp_service.mechanisms.selection import selection_thresholds
from dp_service.releases.kinds.bounded import BoundedCounts, look_intervals
from dp_service.releases.kinds.moments import Moments, with_own_counts
from dp_service.releases.kinds.numbers import sums_shown
from dp_service.releases.kinds.parts import IncompleteParametersError, counts_of
from dp_service.releases.kinds.views import ShownCount, ShownSums
from dp_service.releases.mechanism_output import MechanismOutput, TotalsOutput

# For a level and places in a list: the interval of each.
_Intervals: TypeAlias = Callable[[Fraction, Sequence[int]], Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class ShownParts:
    """What is shown.

    Attributes:
        places: The places of the totals.
        rows: The elements of each that are shown.
        count: How many elements are shown, from the first.
        alpha: The probability with which an interval may miss.
    """

    places: list[int]
    rows: list[list[int]]
    count: int
    alpha: Fraction

    def other_ends(self, of_totals: _Intervals, of_rows: _Intervals) -> Iterator[tuple[int, int]]:
        """Yield the ends of what is left of each total."""
        halves, wholes = of_totals(self.alpha / 2, self.places), of_totals(self.alpha, self.places)
        # If nothing of it is shown, a total is left as it is.
        totals = [
            half if rows else whole for half, whole, rows in zip(halves, wholes, self.rows, strict=True)
        ]
        found: dict[int, tuple[int, int]] = {}
        for size in {len(rows) for rows in self.rows if rows}:
            asked = [row for rows in self.rows if len(rows) == size for row in rows]
            found.update(zip(asked, of_rows(self.alpha / (2 * size), asked), strict=True))
        for (lower, upper), rows in zip(totals, self.rows, strict=True):
            least = sum(found[row][0] for row in rows)
            most = sum(found[row][1] for row in rows)
            yield lower - most, upper - least


def shown_counts(
    of_rows: BoundedCounts | Moments,
    mechanism: DrillDown,
    drawn: MechanismOutput,
    parts: ShownParts,
) -> tuple[tuple[ShownCount, ...], tuple[ShownCount, ...]]:
    """Return the count of each total that is shown, and of what is left of it."""
    totals, noisy, variance = totals_of(drawn), counts_of(drawn), mechanism.total_variance
    thresholds = selection_thresholds(drawn.selection, parts.count)

    def of_totals(level: Fraction, places: Sequence[int]) -> list[tuple[int, int]]:
        return _pairs(gaussian_noise_interval(totals.counts[list(places)], variance, alpha=level, minimum=0))

    def of_elements(level: Fraction, rows: Sequence[int]) -> list[tuple[int, int]]:
        at = list(rows)
        given = None if thresholds is None else thresholds[at]
        return _pairs(look_intervals(of_rows.look, noisy[at], given, level))

    counts = [
        ShownCount(int(totals.counts[place]), lower, upper)
        for place, (lower, upper) in zip(parts.places, of_totals(parts.alpha, parts.places), strict=True)
    ]
    ends = parts.other_ends(of_totals, of_elements)
    others = [
        # No count is below 0.
        ShownCount(total.noisy - sum(int(noisy[row]) for row in rows), max(lower, 0), max(upper, 0))
        for total, rows, (lower, upper) in zip(counts, parts.rows, ends, strict=True)
    ]
    return tuple(counts), tuple(others)


def shown_sums(
    of_rows: BoundedCounts | Moments,
    mechanism: DrillDown,
    drawn: MechanismOutput,
    parts: ShownParts,
) -> Iterator[tuple[ShownSums, ShownSums]]:
    """Yield each sum of the question: of every total, and of what is left of it."""
    totals, of_totals = totals_of(drawn), mechanism.totals
    if not isinstance(of_rows, Moments) or not isinstance(of_totals, BoundMoments):
        return
    rows = of_rows.released(drawn)
    numbers = with_own_counts(of_rows.sums, totals.sums)
    every = of_totals.released(np.arange(len(totals.values)), totals.counts, numbers)
    both = _Moments(rows, every, shown_by_count(rows, most=parts.count))
    for asked in of_rows.sums.asked:
        yield both.sums(asked.place, of_rows.sums.columns[asked.place].quantum, parts)


@dataclass(frozen=True)
class _Moments:
    """What was released of elements and of totals, and which elements are shown."""

    rows: ReleasedMoments
    totals: ReleasedMoments
    shown: ShownRows

    def sums(self, place: int, quantum: Fraction, parts: ShownParts) -> tuple[ShownSums, ShownSums]:
        """Return the sum of one column: of every total that is shown, and of what is left of it."""
        rows, totals = self.rows.columns[place], self.totals.columns[place]

        def total_ends(level: Fraction, places: Sequence[int]) -> list[SumInterval]:
            every = ShownRows(tuple(places), (None,) * len(places))
            # `sum_intervals` are at half of what they are given, for an average could be shown beside them.
            return sum_intervals(self.totals, place, every, alpha=2 * level)

        def row_ends(level: Fraction, listed: Sequence[int]) -> list[SumInterval]:
            some = ShownRows(tuple(listed), tuple(self.shown.thresholds[row] for row in listed))
            return sum_intervals(self.rows, place, some, alpha=2 * level)

        doubled = [totals.doubled_sum(each) for each in parts.places]
        left = [
            other(total, [rows.doubled_sum(row) for row in listed])
            for total, listed in zip(doubled, parts.rows, strict=True)
        ]
        # What is left are sums of other contributions, with a sign of their own.
        ends = [within_signs(totals, *each) for each in parts.other_ends(total_ends, row_ends)]
        return (
            sums_shown(doubled, total_ends(parts.alpha, parts.places), quantum),
            sums_shown(left, ends, quantum),
        )


def totals_of(drawn: MechanismOutput) -> TotalsOutput:
    """Return the totals of a release that has some."""
    if drawn.totals is None:
        raise IncompleteParametersError
    return drawn.totals


def _pairs(intervals: CountIntervals) -> list[tuple[int, int]]:
    return list(zip(intervals.lower.tolist(), intervals.upper.tolist(), strict=True))
