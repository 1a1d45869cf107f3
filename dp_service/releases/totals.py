"""Totals beside the elements of a release, and what the elements that a question shows leave of them.

Why it is private: `mechanisms.aggregates.drill_down`. Totals are drawn with noise of their own, over all rows of the
engine's answer, and their part of the units is in the price. Over an unknown domain those are kept that an element of
the release names. Everything else here follows from what was released.

Intervals of a total are plain: nothing selects it, and its noise is independent of what selects the elements. *Other*
is the total less the counts of the j elements that are shown of it. Its interval has the total at alpha / 2 and each of
the elements, given that it is shown, at alpha / (2 j): all of them cover together with probability 1 - alpha, and then
so does the difference of their ends. Where none is shown, what is left is the total, with its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.aggregates import BoundMoments, ColumnSums, DrillDown, named_totals, other
from dp_service.mechanisms.aggregates.intervals import (
    ShownRows,
    SumInterval,
    shown_by_count,
    sum_intervals,
    within_signs,
)
from dp_service.mechanisms.aggregates.released import ReleasedMoments
from dp_service.mechanisms.bounded import BoundGauss
from dp_service.mechanisms.bounded.selected_intervals import selected_gaussian_interval
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.intervals import CountIntervals, gaussian_noise_interval
from dp_service.mechanisms.selection import selection_thresholds
from dp_service.noise.source import KeyedNoise, NoiseSource
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.histogram import HistogramError, TypedHistogram
from dp_service.releases.mechanism import IncompleteParametersError, drill_down_of
from dp_service.releases.mechanism_output import MechanismOutput, TotalsOutput
from dp_service.releases.sums import Answer, drawn_moments, with_own_counts
from dp_service.terms import Scalar

Integers = NDArray[np.int64]
# For a level and places in a list: the interval of each.
_Intervals: TypeAlias = Callable[[Fraction, Sequence[int]], Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class ShownCount:
    """A noisy count and its interval, both ends inclusive."""

    noisy: int
    lower: int
    upper: int


@dataclass(frozen=True)
class ShownTotals:
    """The totals that a question shows, in ascending order of their values.

    Attributes:
        values: What each is the total of.
        counts: The count of each.
        others: What is left of it when the elements that are shown of it are taken away.
        sums: For each sum of the question, that of each total.
        other_sums: The same of what is left.
    """

    values: tuple[Scalar, ...]
    counts: tuple[ShownCount, ...]
    others: tuple[ShownCount, ...]
    sums: tuple[tuple[Answer, ...], ...]
    other_sums: tuple[tuple[Answer, ...], ...]


def require_uncut(histogram: TypedHistogram, *, row_limit: int) -> None:
    """Make sure that an engine's answer has all rows: totals of some of them would not be bounded.

    Raises:
        HistogramError: There are as many rows as there may be at most, so some may be missing.
    """
    if len(histogram.elements) >= row_limit:
        raise HistogramError("expected fewer rows than the plan's limit: totals are of all of them")


def drawn_with_totals(
    parameters: ReleaseParameters,
    mechanism: DrillDown,
    rows: TypedHistogram,
    sums: tuple[ColumnSums, ...],
    noise: KeyedNoise,
) -> MechanismOutput:
    """Draw elements and totals, each with noise of their own.

    Args:
        parameters: Those of the release.
        mechanism: Its mechanism.
        rows: All rows of the engine's answer, or the whole known domain.
        sums: The sums of each column, by row.
        noise: Where all randomness comes from.
    """
    counts, of_rows = Histogram.from_element_order(rows.counts), mechanism.rows
    if isinstance(of_rows, BoundMoments):
        drawn = drawn_moments(of_rows.run(counts, sums, noise))
    else:
        drawn = MechanismOutput(of_rows.run(counts, noise))
    released = drawn.selection.indices
    of_totals = noise.apart("totals")
    totals = drawn_totals(parameters, mechanism, rows, sums=sums, released=released, noise=of_totals)
    return replace(drawn, totals=totals)


def drawn_totals(
    parameters: ReleaseParameters,
    mechanism: DrillDown,
    rows: TypedHistogram,
    *,
    sums: tuple[ColumnSums, ...],
    released: Integers,
    noise: NoiseSource,
) -> TotalsOutput:
    """Draw all totals, and return those that may be shown.

    Args:
        parameters: Those of the release.
        mechanism: Its mechanism.
        rows: All rows of the engine's answer, or the whole known domain.
        sums: The sums of each column, by row.
        released: The rows that are released, in the order of the release.
        noise: Noise that no row has.
    """
    stated = parameters.totals
    if stated is None:
        raise IncompleteParametersError
    of_rows = [element[stated.place] for element in rows.elements]
    values = sorted(set(of_rows))
    places = {value: place for place, value in enumerate(values)}
    row_places = [places[value] for value in of_rows]
    drawn = mechanism.draw_totals(
        Histogram.from_element_order(rows.counts), sums, row_places, len(values), noise
    )
    of_elements = [row_places[row] for row in released.tolist()]
    kept = list(range(len(values))) if parameters.domain is not None else named_totals(of_elements)
    at = np.array(kept, dtype=np.int64)
    moved = {place: new for new, place in enumerate(kept)}
    centred = [column[0] for column in drawn.sums]
    own = [column[1] for column in drawn.sums if column[1] is not None]
    return TotalsOutput(
        tuple(values[place] for place in kept),
        drawn.counts[at],
        tuple(column[at] for column in (*centred, *own)),
        np.array([moved[place] for place in of_elements], dtype=np.int64),
    )


def require_totals(totals: TotalsOutput, rows: tuple[int, ...], *, sums: int) -> None:
    """Check that totals are some of a release with so many rows and sums.

    Raises:
        ValueError: They are not.
    """
    shape = (len(totals.values),)
    if len(set(totals.values)) != len(totals.values) or totals.counts.shape != shape:
        raise ValueError("expected each total once, with a count")
    if len(totals.sums) != sums or any(each.shape != shape for each in totals.sums):
        raise ValueError("expected the sums of every column for each total")
    places = totals.of_elements
    if places.shape != rows or (places.size and not 0 <= places.min() <= places.max() < shape[0]):
        raise ValueError("expected a total of each element")


def shown_totals(
    parameters: ReleaseParameters, drawn: MechanismOutput, *, count: int, alpha: Fraction
) -> ShownTotals | None:
    """Return the totals that a question shows; None: it asks for none.

    Args:
        parameters: Those of the question.
        drawn: The release.
        count: How many elements it shows, from the first.
        alpha: The probability with which an interval may miss.
    """
    mechanism, totals = drill_down_of(parameters), drawn.totals
    if mechanism is None or totals is None:
        return None
    listed: list[list[int]] = [[] for _ in totals.values]
    for row, place in enumerate(totals.of_elements[:count].tolist()):
        listed[place].append(row)
    all_show = parameters.domain is not None
    places = [place for place, rows in enumerate(listed) if rows or all_show]
    parts = _Parts(places, [listed[place] for place in places], count, alpha)
    counts, others = _shown_counts(mechanism, drawn, totals, parts)
    sums = list(_shown_sums(parameters, mechanism, drawn, totals, parts))
    return ShownTotals(
        tuple(totals.values[place] for place in places),
        counts,
        others,
        tuple(of_total for of_total, _ in sums),
        tuple(of_other for _, of_other in sums),
    )


@dataclass(frozen=True)
class _Parts:
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


def _shown_counts(
    mechanism: DrillDown, drawn: MechanismOutput, totals: TotalsOutput, parts: _Parts
) -> tuple[tuple[ShownCount, ...], tuple[ShownCount, ...]]:
    look, noisy = _counting(mechanism.rows), drawn.selection.noisy_counts
    variance = mechanism.total_variance
    if noisy is None:
        raise IncompleteParametersError
    thresholds = selection_thresholds(drawn.selection, parts.count)

    def of_totals(level: Fraction, places: Sequence[int]) -> list[tuple[int, int]]:
        return _pairs(gaussian_noise_interval(totals.counts[list(places)], variance, alpha=level, minimum=0))

    def of_rows(level: Fraction, rows: Sequence[int]) -> list[tuple[int, int]]:
        at, minimum = list(rows), look.min_count or 0
        if thresholds is None:
            return _pairs(gaussian_noise_interval(noisy[at], look.variance, alpha=level, minimum=minimum))
        given = thresholds[at]
        return _pairs(
            selected_gaussian_interval(noisy[at], given, look.variance, alpha=level, minimum=minimum)
        )

    counts = [
        ShownCount(int(totals.counts[place]), lower, upper)
        for place, (lower, upper) in zip(parts.places, of_totals(parts.alpha, parts.places), strict=True)
    ]
    ends = parts.other_ends(of_totals, of_rows)
    others = [
        # No count is below 0.
        ShownCount(total.noisy - sum(int(noisy[row]) for row in rows), max(lower, 0), max(upper, 0))
        for total, rows, (lower, upper) in zip(counts, parts.rows, ends, strict=True)
    ]
    return tuple(counts), tuple(others)


def _shown_sums(
    parameters: ReleaseParameters,
    mechanism: DrillDown,
    drawn: MechanismOutput,
    totals: TotalsOutput,
    parts: _Parts,
) -> Iterator[tuple[tuple[Answer, ...], tuple[Answer, ...]]]:
    """Yield each sum of the question: of every total, and of what is left of it."""
    stated, of_rows, of_totals = parameters.sums, mechanism.rows, mechanism.totals
    if stated is None or not isinstance(of_rows, BoundMoments) or not isinstance(of_totals, BoundMoments):
        return
    selection = drawn.selection
    if selection.noisy_counts is None:
        raise IncompleteParametersError
    rows = of_rows.released(selection.indices, selection.noisy_counts, with_own_counts(stated, drawn.sums))
    every = of_totals.released(
        np.arange(len(totals.values)), totals.counts, with_own_counts(stated, totals.sums)
    )
    both = _Moments(rows, every, shown_by_count(rows, most=parts.count))
    for asked in stated.asked:
        yield both.answers(asked.place, stated.columns[asked.place].quantum, parts)


@dataclass(frozen=True)
class _Moments:
    """What was released of elements and of totals, and which elements are shown."""

    rows: ReleasedMoments
    totals: ReleasedMoments
    shown: ShownRows

    def answers(
        self, place: int, quantum: Fraction, parts: _Parts
    ) -> tuple[tuple[Answer, ...], tuple[Answer, ...]]:
        """Return the sum of one column: of every total that is shown, and of what is left of it."""
        rows, totals = self.rows.columns[place], self.totals.columns[place]

        def total_ends(level: Fraction, places: Sequence[int]) -> list[SumInterval]:
            every = ShownRows(tuple(places), (None,) * len(places))
            # `sum_intervals` are at half of what they are given, for an average could be shown beside them.
            return sum_intervals(self.totals, place, every, alpha=2 * level)

        def row_ends(level: Fraction, listed: Sequence[int]) -> list[SumInterval]:
            some = ShownRows(tuple(listed), tuple(self.shown.thresholds[row] for row in listed))
            return sum_intervals(self.rows, place, some, alpha=2 * level)

        found = [
            Answer(totals.sum_of(each) * quantum, lower * quantum, upper * quantum)
            for each, (lower, upper) in zip(parts.places, total_ends(parts.alpha, parts.places), strict=True)
        ]
        others = []
        ends = parts.other_ends(total_ends, row_ends)
        for each, listed, (lower, upper) in zip(parts.places, parts.rows, ends, strict=True):
            left = other(totals.sum_of(each), [rows.sum_of(row) for row in listed])
            # What is left are sums of other contributions, with a sign of their own.
            least, most = within_signs(totals, lower, upper)
            others.append(Answer(left * quantum, least * quantum, most * quantum))
        return tuple(found), tuple(others)


def _counting(mechanism: BoundMoments | BoundGauss) -> BoundGauss:
    return mechanism.counts if isinstance(mechanism, BoundMoments) else mechanism


def _pairs(intervals: CountIntervals) -> list[tuple[int, int]]:
    return list(zip(intervals.lower.tolist(), intervals.upper.tolist(), strict=True))
