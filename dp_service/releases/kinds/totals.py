"""Totals beside the elements of a release, and what the elements that a question shows leave of them.

Why it is private: `mechanisms.aggregates.drill_down`. Totals are drawn with noise of their own, over all rows of the
engine's answer, and their part of the units is in the price. Over an unknown domain those are kept that an element of
the release names. Everything else here follows from what was released.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.aggregates import BoundMoments, ColumnSums, DrillDown, named_totals, total_bound
from dp_service.mechanisms.bounded import BoundGauss
from dp_service.mechanisms.histogram import Histogram
from dp_service.noise.source import KeyedNoise, NoiseSource
from dp_service.parameters.aggregates import TotalsReleased
from dp_service.releases.histogram import HistogramError, TypedHistogram
from dp_service.releases.kinds.bounded import BoundedCounts
from dp_service.releases.kinds.cutting import MAX_TOTALS, fitting_totals
from dp_service.releases.kinds.kind import Fields, Kind, Value
from dp_service.releases.kinds.moments import Moments, column_sums, sum_deviation
from dp_service.releases.kinds.parts import IncompleteParametersError, made
from dp_service.releases.kinds.total_intervals import ShownParts, shown_counts, shown_sums, totals_of
from dp_service.releases.kinds.views import ExpectedAccuracy, ReleaseView, ShownTotals
from dp_service.releases.mechanism_output import MechanismOutput, TotalsOutput
from dp_service.releases.statements import Statement, percent
from dp_service.terms import Element, TotalOf
from dp_service.values.bounds import Clamp

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WithTotals(Kind[DrillDown]):
    """Counts or sums by two columns, and the totals by one of them.

    Attributes:
        rows: What is released but for the totals, with its part of the units.
    """

    rows: BoundedCounts | Moments

    @classmethod
    def of(cls, of_rows: BoundedCounts | Moments, stated: TotalsReleased) -> WithTotals:
        """Return the kind with its mechanism: rows and totals have each their part of the units of `of_rows`."""
        whole = of_rows.mechanism
        if not isinstance(whole, BoundGauss | BoundMoments):
            raise IncompleteParametersError
        of_totals = replace(
            whole,
            units=whole.units * stated.share,
            bound=total_bound(whole.bound, has_one_value=stated.one_value),
            min_count=None,
        )
        part = replace(whole, units=whole.units * (1 - stated.share))
        mechanism = made(DrillDown, part, of_totals, stated.one_value)
        # Of the one that is kept, variances are known already.
        rows = mechanism.rows
        of_part: BoundedCounts | Moments
        if isinstance(rows, BoundMoments):
            of_part = Moments(of_rows.parameters, rows)
        else:
            of_part = BoundedCounts(of_rows.parameters, rows)
        return cls(of_rows.parameters, mechanism, of_part)

    @property
    def totals(self) -> TotalsReleased:
        """What totals are of."""
        if self.parameters.totals is None:
            raise IncompleteParametersError
        return self.parameters.totals

    @property
    def grows_with(self) -> str:
        """What the threshold of the rows grows with."""
        return self.rows.grows_with

    @property
    def said(self) -> Fields:
        """What a message says of it: of the rows, and of the totals beside them."""
        rows = self.rows.said["bounded"]
        return {"bounded": {**rows, "one_look": {**rows["one_look"], "totals": self._totals_said}}}

    @property
    def _totals_said(self) -> Fields:
        stated = self.totals
        return {
            "column": stated.column,
            "share": stated.share,
            "counted": self._counted,
            "noise_variance": self.mechanism.total_variance,
            "sum_variances": self.mechanism.sum_variances,
        }

    @property
    def _counted(self) -> TotalOf:
        if self.rows.stated.of_events:
            return TotalOf.ROWS
        return TotalOf.MEMBERS if self.totals.one_value else TotalOf.CONTRIBUTIONS

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        """Those of the rows."""
        return self.rows.clamps

    @property
    def own_counts(self) -> tuple[int, ...]:
        """Those of the rows."""
        return self.rows.own_counts

    def histogram(
        self, answer: TypedHistogram, known: tuple[Element, ...] | None, *, row_limit: int
    ) -> TypedHistogram:
        """Return the rows. Totals are of all of them: those of some would not be bounded.

        Rows below the smallest count that is considered are hidden from the list alone.

        Raises:
            HistogramError: There are as many rows as there may be at most, so some may be missing.
        """
        if known is None and len(answer.elements) >= row_limit:
            raise HistogramError("expected fewer rows than the plan's limit: totals are of all of them")
        return super().histogram(answer, known, row_limit=row_limit)

    def draw(
        self, rows: TypedHistogram, known: tuple[Element, ...] | None, noise: KeyedNoise
    ) -> MechanismOutput:
        """Draw elements and totals, each with noise of their own."""
        drawn = self.rows.draw(rows, known, noise)
        if self.parameters.domain is None:
            drawn = fitting_totals([element[self.totals.place] for element in rows.elements], drawn)
        totals = self.draw_totals(rows, drawn.selection.indices, noise.apart("totals"))
        return replace(drawn, totals=totals)

    def draw_totals(self, rows: TypedHistogram, released: Integers, noise: NoiseSource) -> TotalsOutput:
        """Draw all totals, and return those that may be shown.

        Args:
            rows: All rows of the engine's answer, or the whole known domain.
            released: The rows that are released, in the order of the release.
            noise: Noise that no row has.
        """
        of_rows = [element[self.totals.place] for element in rows.elements]
        values = sorted(set(of_rows))
        places = {value: place for place, value in enumerate(values)}
        row_places = [places[value] for value in of_rows]
        counts = Histogram.from_element_order(rows.counts)
        drawn = self.mechanism.draw_totals(counts, self._sums(rows), row_places, len(values), noise)
        of_elements = [row_places[row] for row in released.tolist()]
        is_known = self.parameters.domain is not None
        kept = list(range(len(values))) if is_known else named_totals(of_elements)
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

    def _sums(self, rows: TypedHistogram) -> tuple[ColumnSums, ...]:
        return () if self.parameters.sums is None else column_sums(self.parameters.sums, rows)

    def require(self, drawn: MechanismOutput) -> None:
        """Check that this is a release of this kind, and that its totals are some of it."""
        super().require(drawn)
        if drawn.totals is not None:
            _require_totals(drawn.totals, drawn.selection.indices.shape, sums=len(drawn.sums))

    def shown(self, drawn: MechanismOutput, alpha: Fraction) -> ReleaseView:
        """Return the first elements, the totals of a known domain or of these, and what they leave of each."""
        view = self.rows.shown(drawn, alpha)
        return replace(view, totals=self._shown_totals(drawn, view.count, alpha))

    def shown_rows(self, drawn: MechanismOutput, rows: tuple[int, ...], alpha: Fraction) -> ReleaseView:
        """Return some rows without totals."""
        return self.rows.as_it_is().shown_rows(drawn, rows, alpha)

    @property
    def gloss(self) -> str:
        """What the mechanism of the rows does."""
        return self.rows.gloss

    def meaning(self, columns: Sequence[str], confidence: float) -> Iterator[Statement]:
        """Yield what the rows mean, what totals there are, and how noisy these are."""
        yield from self.rows.meaning(columns, confidence)
        stated = self.totals
        of, over = (columns[place] for place in (stated.place, 1 - stated.place))
        is_known = self.parameters.domain is not None
        which = "of every value" if is_known else "of the values that an element of the list has"
        yield Statement(
            "totals.of",
            f"Beside the list there are totals by {of}, {which}, and what the list leaves of each (other), which may "
            f"be negative. They take {stated.share} of all units, with noise of their own: their counts carry noise "
            f"of standard deviation {math.sqrt(self.mechanism.total_variance):.6f}.",
            of,
        )
        yield from self._of_sums()
        yield self._of_numbers(over)

    def _of_numbers(self, over: str) -> Statement:
        """Return what totals count, which add up over a column."""
        has_one = f"that a member has one value of {over} is a promise of the policy's author, and nothing checks it."
        promised = self.totals.one_value
        match self._counted:
            case TotalOf.ROWS:
                text = f"Totals count rows{f'; {has_one}' if promised else '.'}"
                return Statement("totals.rows", text, over if promised else "")
            case TotalOf.MEMBERS:
                return Statement("totals.members", f"Totals count a member once: {has_one}", over)
            case TotalOf.CONTRIBUTIONS:
                text = f"Totals count contributions: a member that counts for several values of {over} counts as often."
                return Statement("totals.contributions", text, over)

    def _of_sums(self) -> Iterator[Statement]:
        stated, totals = self.parameters.sums, self.mechanism.totals
        if stated is None or not isinstance(totals, BoundMoments):
            return
        for place, column in enumerate(stated.columns):
            deviation = f"{sum_deviation(totals, place, column):.6g}"
            text = f"The sums of {column.name} in totals carry noise of standard deviation {deviation}."
            yield Statement("totals.noise", text, column.name, (deviation,))

    def method(self) -> Iterator[Statement]:
        """Yield how the rows are made."""
        yield from self.rows.method()
        if self.parameters.domain is None:
            yield Statement(
                "method.totals",
                f"A list ends before its elements have more than {MAX_TOTALS:,} totals, or very long ones.",
                values=(str(MAX_TOTALS),),
            )

    def of_intervals(self, view: ReleaseView, confidence: float) -> Iterator[Statement]:
        """Yield what the intervals of the rows and of the totals cover."""
        yield from self.rows.of_intervals(view, confidence)
        if view.totals is not None:
            often = percent(Fraction(str(confidence)))
            yield Statement(
                "intervals.totals",
                f"Each interval of a total covers the number before noise with {often}, and so does that of what the "
                "list leaves of it, given which elements are shown.",
            )

    def order(self, drawn: MechanismOutput, alpha: Fraction) -> tuple[int, ...]:
        """Return all rows in the order in which the question lists them."""
        return self.rows.order(drawn, alpha)

    def values(self, drawn: MechanismOutput, alpha: Fraction) -> tuple[Value, ...]:
        """Return what gives each sum and average of a row."""
        return self.rows.values(drawn, alpha)

    def _count_scale(self) -> Fraction:
        return self.rows._count_scale()

    def accuracy(self) -> ExpectedAccuracy:
        """Return how exact the counts of rows will be."""
        return self.rows.accuracy()

    def _shown_totals(self, drawn: MechanismOutput, count: int, alpha: Fraction) -> ShownTotals:
        totals = totals_of(drawn)
        listed: list[list[int]] = [[] for _ in totals.values]
        for row, place in enumerate(totals.of_elements[:count].tolist()):
            listed[place].append(row)
        all_show = self.parameters.domain is not None
        places = [place for place, rows in enumerate(listed) if rows or all_show]
        parts = ShownParts(places, [listed[place] for place in places], count, alpha)
        counts, others = shown_counts(self.rows, self.mechanism, drawn, parts)
        sums = list(shown_sums(self.rows, self.mechanism, drawn, parts))
        return ShownTotals(
            tuple(totals.values[place] for place in places),
            counts,
            others,
            tuple(of_total for of_total, _ in sums),
            tuple(of_other for _, of_other in sums),
        )


def _require_totals(totals: TotalsOutput, rows: tuple[int, ...], *, sums: int) -> None:
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
