"""What a question shows of a release, and how exact it can be expected to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.bounded.sum_intervals import CountInterval
from dp_service.mechanisms.intervals import CountIntervals
from dp_service.terms import GridScale


class IntervalKind(Enum):
    """Under which condition the intervals of a release hold."""

    NONE = "none"
    PLAIN = "plain"
    GIVEN_SHOWN = "given shown"
    SIMULTANEOUS = "simultaneous"


@dataclass(frozen=True)
class Total:
    """How many members count in any element: the noisy number, and its interval."""

    noisy: int
    interval: CountInterval


@dataclass(frozen=True)
class Answer:
    """A sum or an average with its interval, both ends inclusive, in the units of its column; all are exact."""

    value: Fraction
    lower: Fraction
    upper: Fraction


@dataclass(frozen=True)
class ShownSums:
    """The sum of each element that is shown, in steps of half a quantum.

    Attributes:
        values: The sums.
        lower: The lower ends of their intervals, inclusive.
        upper: The upper ends.
        quantum: That of the column, in its units.
    """

    values: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    quantum: Fraction

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The sums in the units of their column."""
        step = self.quantum / 2
        numbers = zip(self.values, self.lower, self.upper, strict=True)
        return tuple(Answer(*(each * step for each in row)) for row in numbers)

    @property
    def missing(self) -> frozenset[int]:
        """The places of elements without a sum: there are none."""
        return frozenset()


@dataclass(frozen=True)
class ShownAverages:
    """The average of each element that is shown.

    It is None where there is no average to show: where the interval of the count that it is of reaches down to 0.
    """

    answers: tuple[Answer | None, ...]

    @property
    def missing(self) -> frozenset[int]:
        """The places of elements without an average."""
        return frozenset(place for place, each in enumerate(self.answers) if each is None)


AnsweredAggregate: TypeAlias = ShownSums | ShownAverages


@dataclass(frozen=True)
class ShownCells:
    """One value of each element: the first and the last value of its cell, and how far its rank may be off.

    Attributes:
        lower: The first value of each element's cell, in the units of the column.
        upper: The last value.
        rank_error: Within how many members the wanted rank is of those that the cell holds.
        scale: How the cells of the grid are made; of dates, values are days since 1970-01-01.
        cuts: For other values, by their place, which part of the members in their cell comes on top.
    """

    lower: tuple[Fraction, ...]
    upper: tuple[Fraction, ...]
    rank_error: Fraction
    scale: GridScale
    cuts: tuple[tuple[int, Fraction], ...]

    @property
    def values(self) -> tuple[Fraction, ...]:
        """The middle of each cell."""
        return tuple((low + high) / 2 for low, high in zip(self.lower, self.upper, strict=True))


@dataclass(frozen=True)
class ReleaseView:
    """What a question shows of a release: a function of the release, k, and the confidence.

    Attributes:
        count: How many elements, from the first unless `rows` says which.
        intervals: One for each of them; None: counts were not asked for.
        interval_kind: Under which condition the intervals hold.
        ended_in_bottom: Whether the list that is shown ends at the noisy threshold.
        total: The noisy number of members, with its interval; None: it is not released.
        aggregates: The sums and averages that the question asks for, in its order.
        rows: The places in the release of the elements that are shown, in the order of a sum, an average or the
            elements themselves, or where HAVING leaves some out; None: the first ones are shown, in the order of the
            release.
        quantiles: The quantiles that the question asks for, in its order.
    """

    count: int
    intervals: CountIntervals | None
    interval_kind: IntervalKind
    ended_in_bottom: bool = False
    total: Total | None = None
    aggregates: tuple[AnsweredAggregate, ...] = ()
    rows: tuple[int, ...] | None = None
    quantiles: tuple[ShownCells, ...] = ()

    @property
    def places(self) -> Sequence[int]:
        """The places in the release of the elements that are shown."""
        return range(self.count) if self.rows is None else self.rows


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy counts, int64 of shape (n,), as multiples of 1 / `denominator`."""

    noisy: NDArray[np.int64]
    denominator: int

    def at(self, places: Sequence[int]) -> Counts:
        """Return the counts in these places."""
        return Counts(self.noisy[np.array(places, dtype=np.int64)], self.denominator)


@dataclass(frozen=True)
class ExpectedPrice:
    """What a top-k costs on average, if k elements lie `above` the count at rank d_bar + 1 and nothing else does.

    `found` is how many of them it finds on average.
    """

    above: int
    found: float
    information: float


@dataclass(frozen=True)
class ExpectedAccuracy:
    """How exact the counts of an answer will be, how large a count has to be, and what that costs on average.

    All of it follows from the question's public parameters: anyone who may ask may know it.

    `half_width` is that of a 95 % interval of plain noise, and `mean_error` how far a count is off on average; None
    without counts. `found_half` and `found_mostly` are how far a count must lie above the count at rank d_bar + 1 (0 if
    there are fewer elements) for its element to pass the threshold with 50 % and 95 %, or if `is_fixed` the count
    itself; None where there is no threshold. UnkGumb may put its threshold at an earlier rank if that finds more.
    `ordered_mostly` is how far two counts must lie apart to be ranked in their order before noise with 95 %; None where
    the counts' noise decides. `prices` are for counts of `found_half` and `found_mostly`; empty where the price is the
    same, whatever is found.
    """

    half_width: int | None = None
    mean_error: float | None = None
    found_half: int | None = None
    found_mostly: int | None = None
    is_fixed: bool = False
    ordered_mostly: int | None = None
    prices: tuple[ExpectedPrice, ...] = ()
