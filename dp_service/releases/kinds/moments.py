"""Sums and averages beside bounded counts, in one look or in two, with their intervals.

Noise is in the counts and the centred sums alone; every sum and average follows from them exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms import Currency
from dp_service.mechanisms.aggregates import BoundMoments, ColumnSums, MomentsOfNames, SumShare
from dp_service.mechanisms.aggregates.intervals import ShownRows, count_intervals, shown_by_count
from dp_service.mechanisms.aggregates.released import ReleasedMoments
from dp_service.mechanisms.bounded import BoundGauss, TwoLooks
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import KeyedNoise
from dp_service.parameters.aggregates import SummedValue, SumsReleased
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.histogram import TypedHistogram
from dp_service.releases.kinds.added import OF_CONDITIONS, added_in_words
from dp_service.releases.kinds.bounded import (
    Bounded,
    bound_of,
    contributions_of,
    in_counts_outwards,
    looks_of,
)
from dp_service.releases.kinds.cutting import fitting_list
from dp_service.releases.kinds.kind import Fields, Value
from dp_service.releases.kinds.parts import (
    IncompleteParametersError,
    clamp_of,
    counts_of,
    made,
    some_intervals,
)
from dp_service.releases.kinds.views import AnsweredAggregate, IntervalKind, ReleaseView
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.statements import Statement
from dp_service.terms import AggregateFunction, Element

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Moments(Bounded[BoundMoments | MomentsOfNames]):
    """Counts, the sums of some columns, and numbers that follow from both."""

    @classmethod
    def of(cls, parameters: ReleaseParameters, currency: Currency) -> Moments:
        """Return the kind with its mechanism."""
        stated, sums = contributions_of(parameters), sums_of(parameters)
        if stated.shifted:
            raise IncompleteParametersError
        bound = bound_of(stated, parameters.tau)
        columns = tuple(
            SumShare(
                clamp_of(column),
                column.share,
                column.count_share,
                column.grid(stated.grid),
                column.rows or 1,
                column.typical,
            )
            for column in sums.columns
        )
        if stated.names is not None:
            looks = looks_of(currency, stated, stated.names, bound)
            return cls(parameters, made(MomentsOfNames, looks, sums.share, columns))
        units = Fraction(stated.units)
        return cls(
            parameters, made(BoundMoments, currency, units, bound, stated.min_count, sums.share, columns)
        )

    @property
    def first_look(self) -> TwoLooks | None:
        """The two looks, if there are two."""
        return self.mechanism.looks if isinstance(self.mechanism, MomentsOfNames) else None

    @property
    def moments(self) -> BoundMoments:
        """What releases counts and sums, of two looks the second one."""
        return self.mechanism.moments if isinstance(self.mechanism, MomentsOfNames) else self.mechanism

    @property
    def look(self) -> BoundGauss:
        """The part of the release that is the counts."""
        return self.moments.counts

    @property
    def columns_said(self) -> list[Fields]:
        """What a message says of each column that is summed."""
        return [self._column_said(*each) for each in enumerate(self.sums.columns)]

    def _column_said(self, place: int, column: SummedValue) -> Fields:
        of_count = self.moments.own_count_variance(place)
        return {
            "name": column.name,
            "function": None if column.function is AggregateFunction.SUM else column.function,
            "condition": column.condition,
            "quantum": column.quantum,
            "lower": column.low * column.quantum,
            "upper": column.high * column.quantum,
            "share": column.share,
            "noise_variance": self.moments.sum_variance(place) / self.moments.columns[place].grid ** 2,
            "own_count": None
            if of_count is None
            else {"share": column.count_share, "noise_variance": of_count / self.stated.grid**2},
        }

    def draw(
        self, rows: TypedHistogram, known: tuple[Element, ...] | None, noise: KeyedNoise
    ) -> MechanismOutput:
        """Draw noise for all counts and sums."""
        draw = (
            self.mechanism.draw_moments if isinstance(self.mechanism, MomentsOfNames) else self.mechanism.run
        )
        release = draw(Histogram.from_element_order(rows.counts), column_sums(self.sums, rows), noise)
        selection = Selection(release.groups, release.counts, ended_in_bottom=False, bottom=release.threshold)
        own = (column.counts for column in release.columns if column.has_own_count)
        drawn = MechanismOutput(selection, sums=(*(column.centred for column in release.columns), *own))
        return drawn if known is not None else fitting_list(rows.elements, drawn)

    @property
    def gloss(self) -> str:
        """What its mechanism does, in a few words."""
        return "Gaussian noise on every count and sum of bounded contributions, in one release"

    def meaning(self, columns: Sequence[str], confidence: float) -> Iterator[Statement]:
        """Yield what bounding means, what is summed, how sensitive it is, and what noise it carries."""
        yield from super().meaning(columns, confidence)
        share = self.sums.share
        yield Statement("sums.of", f"The counts take {share} of the units.", values=(str(share),))
        if any(column.condition for column in self.sums.columns):
            yield OF_CONDITIONS
        for column, deviation in zip(self.sums.columns, self.sum_deviations, strict=True):
            yield from added_in_words(column, deviation)
        yield from self.of_numbers(self.sums)

    @property
    def sum_deviations(self) -> list[float]:
        """The standard deviation of the noise in each sum, in the units of its column."""
        return [sum_deviation(self.moments, *each) for each in enumerate(self.sums.columns)]

    def released(self, drawn: MechanismOutput) -> ReleasedMoments:
        """Return what was released of counts and sums together."""
        columns = with_own_counts(self.sums, drawn.sums)
        found = self.moments.released(drawn.selection.indices, counts_of(drawn), columns)
        # A list that ends sooner has a higher threshold than its mechanism.
        return replace(found, threshold=drawn.selection.bottom)

    @property
    def sums(self) -> SumsReleased:
        """What is summed, and what the question shows of it."""
        return sums_of(self.parameters)

    def shown(self, drawn: MechanismOutput, alpha: Fraction) -> ReleaseView:
        """Return the first elements, by their counts or by a sum or an average."""
        release, count = self.released(drawn), self.shown_count(drawn)
        rows = self._rows(release, count, alpha)
        aggregates = tuple(each.answered(release, rows, alpha) for each in self.numbers)
        if self.sums.ordered_by is None:
            return self.by_count(drawn, self.look, alpha, aggregates)
        return self._in_order(release, rows, aggregates, alpha)

    def _in_order(
        self,
        release: ReleasedMoments,
        shown: ShownRows,
        aggregates: tuple[AnsweredAggregate, ...],
        alpha: Fraction,
    ) -> ReleaseView:
        """Return a list in the order of a sum or an average; a public threshold ends no list in bottom."""
        intervals = in_counts_outwards(
            some_intervals(count_intervals(release, shown, alpha=alpha)), release.grid
        )
        if len(shown.rows) < release.groups.size:
            # Some elements of the release are left out: all intervals cover together.
            kind = IntervalKind.SIMULTANEOUS
        else:
            kind = IntervalKind.PLAIN if self.look.threshold is None else IntervalKind.GIVEN_SHOWN
        return ReleaseView(len(shown.rows), intervals, kind, aggregates=aggregates, rows=shown.rows)

    def order(self, drawn: MechanismOutput, alpha: Fraction) -> tuple[int, ...]:
        """Return all rows in the order of what the question lists them by."""
        if self.sums.ordered_by is None:
            return super().order(drawn, alpha)
        release = self.released(drawn)
        return self._rows(release, release.groups.size, alpha).rows

    def ranked_by(self, drawn: MechanismOutput, alpha: Fraction) -> Value:
        """Return what gives the count of a row, or the sum or average that the question lists them by."""
        if self.sums.ordered_by is None:
            return super().ranked_by(drawn, alpha)
        return self.values(drawn, alpha)[self.sums.ordered_by]

    def values(self, drawn: MechanismOutput, alpha: Fraction) -> tuple[Value, ...]:
        """Return what gives each sum and average of a row."""
        release = self.released(drawn)
        return tuple(each.value(release, alpha) for each in self.numbers)

    def _rows(self, release: ReleasedMoments, most: int, alpha: Fraction) -> ShownRows:
        if self.sums.ordered_by is None:
            return shown_by_count(release, most=most)
        return self.numbers[self.sums.ordered_by].rows(release, most, alpha)


def sum_deviation(moments: BoundMoments, place: int, column: SummedValue) -> float:
    """Return the standard deviation of a sum, half of B + (low + high) N, in the units of its column."""
    own = moments.own_count_variance(place)
    of_counts = (moments.count_variance if own is None else own) * moments.columns[place].clamp.centre ** 2
    of_sum = moments.sum_variance(place) / moments.columns[place].grid ** 2
    return math.sqrt(of_sum + of_counts / moments.bound.grid**2) / 2 * float(column.quantum)


def sums_of(parameters: ReleaseParameters) -> SumsReleased:
    """Return what is summed."""
    if parameters.sums is None:
        raise IncompleteParametersError
    return parameters.sums


def column_sums(stated: SumsReleased, rows: TypedHistogram) -> tuple[ColumnSums, ...]:
    """Return the sums of each column, with its own counts if it has any."""
    return tuple(ColumnSums(*each) for each in with_own_counts(stated, rows.sums))


def with_own_counts(
    stated: SumsReleased, numbers: tuple[Integers, ...]
) -> tuple[tuple[Integers, Integers | None], ...]:
    """Return the sums of each column beside its own counts, None where it has none.

    Args:
        stated: What is summed.
        numbers: The sums of each column, and then the own counts of those that have some.
    """
    owned = dict(zip(stated.own_counts, numbers[len(stated.columns) :], strict=True))
    return tuple((numbers[place], owned.get(place)) for place in range(len(stated.columns)))
