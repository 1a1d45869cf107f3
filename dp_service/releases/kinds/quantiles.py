"""Quantiles: a cell of a public grid for each element of a known domain and each value.

A value is shown as the middle of the cell that was chosen, and its interval is the cell. The cell is all that is
released: nothing is interpolated between values of the data. How far its ranks may be from the rank that was wanted is
stated beside it, by the explicit law of the choice, and depends on public numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms import Currency
from dp_service.mechanisms.aggregates import CellsOfGroups, RankedValues
from dp_service.mechanisms.aggregates.rank_scores import MAX_VALUES
from dp_service.mechanisms.bounded import ContributionBound, Counted
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import KeyedNoise
from dp_service.parameters.aggregates import QuantilesReleased, ShownQuantile
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.histogram import HistogramError, TypedHistogram
from dp_service.releases.kinds.coverage import Coverage, NoiseAlone, TwoSided
from dp_service.releases.kinds.grids import RULES, SCALES, column_said, ends_of, in_text
from dp_service.releases.kinds.kind import Fields, Kind, Value
from dp_service.releases.kinds.looks_said import BOUNDED_BY, bound_said
from dp_service.releases.kinds.parts import MOSTLY, IncompleteParametersError, made
from dp_service.releases.kinds.views import ExpectedAccuracy, IntervalKind, ReleaseView, ShownCells
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.statements import Statement, brief, elements, percent
from dp_service.terms import ColumnType, Element, GridScale, MemberValue, RankFunction
from dp_service.values.cells import Grid

Integers = NDArray[np.int64]

CELL_TYPE = ColumnType.INT64
"""The type of the column of cells, which is behind those of the elements."""


@dataclass(frozen=True, eq=False)
class Quantiles(Kind[RankedValues]):
    """Quantiles, about the smallest and about the largest of the rows' or the members' values; it counts nothing."""

    @classmethod
    def of(cls, parameters: ReleaseParameters, currency: Currency) -> Quantiles:
        """Return the kind with its mechanism."""
        stated, bounded = quantiles_of(parameters), parameters.contributions
        groups = len(parameters.domain or ())
        if not groups or (bounded is None and groups != 1):
            raise IncompleteParametersError
        # Without a bound there is one group. A prepared copy, which has periods, has no quantiles.
        typical = 1 if bounded is None else bounded.typical
        counted = Counted.EVENTS if stated.rule is MemberValue.ROWS else Counted.MEMBERS
        bound = made(ContributionBound, typical, parameters.tau, 1, counted)
        among = made(CellsOfGroups, groups, len(Grid.of(stated.grid)), bound)
        values = made(RankedValues, currency, among, stated.quantiles, stated.smallest, stated.largest)
        return cls(parameters, values)

    @property
    def stated(self) -> QuantilesReleased:
        """What is released, and what the question shows of it."""
        return quantiles_of(self.parameters)

    @property
    def chosen_cells(self) -> int:
        """One for each quantile that is released."""
        return self.mechanism.size

    @property
    def said(self) -> Fields:
        """What a message says of it, with ranks as they hold with 95 %."""
        stated, bounded = self.stated, self.parameters.contributions
        own = {
            "column": column_said(stated.column, stated.quantum, stated.grid),
            "shown": [
                {
                    "function": asked.function,
                    "q": asked.q,
                    "alias": asked.alias,
                    "rank_error": error.rank_error,
                    "cuts": [{"position": position, "part": part} for position, part in error.cuts],
                }
                for asked, error in zip(stated.asked, self._ranks_only(1 - MOSTLY), strict=True)
            ],
            "spare_values": self.mechanism.spare if stated.smallest or stated.largest else None,
            "contributions": None if bounded is None else bound_said(bounded),
            "ordered_by": stated.ordered_by,
            "member_value": stated.rule,
        }
        return {"quantiles": own}

    def histogram(
        self, answer: TypedHistogram, known: tuple[Element, ...] | None, *, row_limit: int
    ) -> TypedHistogram:
        """Return the rows of elements in the domain and cells of the grid that anybody is in.

        Rows of other elements are left out, as `histogram.over_domain` does: one member's row must not decide whether
        there is an answer. A cell that the grid does not have is no answer to the query, whatever rows there are.

        Raises:
            HistogramError: The histogram cannot be the answer to the plan's query.
        """
        if known is None:
            raise IncompleteParametersError
        cells, elements = len(Grid.of(self.stated.grid)), frozenset(known)
        if any(not 0 <= int(element[-1]) < cells for element in answer.elements):
            raise HistogramError("expected cells of the grid that the query has")
        kept = [row for row, element in enumerate(answer.elements) if element[:-1] in elements]
        if len(kept) < len(answer.elements) >= row_limit:
            raise HistogramError("expected only elements of the domain that the query asks for")
        rows = answer.rows(kept).with_count(1)
        if rows.counts.max(initial=0) > MAX_VALUES or rows.counts.sum() > MAX_VALUES:
            raise HistogramError("expected at most 2^38 values in all elements")
        return rows

    def elements(self, rows: TypedHistogram, known: tuple[Element, ...] | None) -> list[Element]:
        """Return every element of the domain; rows are of their cells."""
        return list(known or ())

    def draw(
        self, rows: TypedHistogram, known: tuple[Element, ...] | None, noise: KeyedNoise
    ) -> MechanismOutput:
        """Choose a cell for each element and each value that is asked for."""
        if known is None:
            raise IncompleteParametersError
        found = self.mechanism.run(_counts(known, self.mechanism.among.cells, rows), noise)
        selection = Selection(np.arange(len(known)), None, ended_in_bottom=False)
        return MechanismOutput(selection, cells=tuple(found.T.copy()))

    def require(self, drawn: MechanismOutput) -> None:
        """Check that this is a release of this kind."""
        super().require(drawn)
        elements, cells, among = drawn.selection.indices.size, drawn.cells, self.mechanism.among
        if elements != among.groups or len(cells) != self.chosen_cells:
            raise ValueError("expected the cells of every quantile for each element")
        if any(each.shape != (elements,) or ((each < 0) | (each >= among.cells)).any() for each in cells):
            raise ValueError("expected the cells of every quantile for each element")

    def shown(self, drawn: MechanismOutput, alpha: Fraction) -> ReleaseView:
        """Return the values that the question shows, in its order."""
        rows = None if self.stated.ordered_by is None else self.order(drawn, alpha)
        listed = drawn if rows is None else drawn.of_rows(rows)
        quantiles = self._shown_cells(listed.cells, alpha=alpha)
        return ReleaseView(self.shown_count(drawn), None, IntervalKind.NONE, quantiles=quantiles, rows=rows)

    def order(self, drawn: MechanismOutput, alpha: Fraction) -> tuple[int, ...]:
        """Return all rows in descending order of a quantile's cell, equal ones by element, or in that of elements.

        Every element is shown whatever the order, so no rank is further off for it: nothing is selected by a cell.
        """
        if self.stated.ordered_by is None:
            return super().order(drawn, alpha)
        return tuple(np.argsort(-self._cells_ranked_by(drawn), kind="stable").tolist())

    def ranked_by(self, drawn: MechanismOutput, alpha: Fraction) -> Value:
        """Return what gives the cell of a row, whose order is that of its values."""
        cells = self._cells_ranked_by(drawn)
        return lambda row: Fraction(int(cells[row]))

    def _cells_ranked_by(self, drawn: MechanismOutput) -> Integers:
        if self.stated.ordered_by is None:
            raise IncompleteParametersError
        return drawn.cells[self.stated.places[self.stated.ordered_by]]

    def _shown_cells(self, cells: tuple[Integers, ...], *, alpha: Fraction) -> tuple[ShownCells, ...]:
        """Return the quantiles that a question shows, in its order."""
        errors, places = self.mechanism.errors(alpha=alpha), self.stated.places
        shown = {place: asked for asked, place in enumerate(places)}
        return tuple(
            _of_cells(
                self.stated,
                cells[place],
                errors[place].values,
                tuple((shown[cut], part) for cut, part in sorted(errors[place].cuts.items()) if part),
            )
            for place in places
        )

    def question(self, names: Sequence[str]) -> Statement:
        """Return what is asked."""
        by = (
            f" by {', '.join(names)} over a known domain of {self.mechanism.among.groups} elements"
            if names
            else ""
        )
        wanted = ", ".join(map(_name, self.stated.asked))
        return Statement("question", f"Chooses {wanted} of {self.stated.column}{by}, and counts nothing.")

    @property
    def gloss(self) -> str:
        """What its mechanism does, in a few words."""
        return "the exponential mechanism over the cells of a public grid, once for each quantile"

    def meaning(self, columns: Sequence[str], confidence: float) -> Iterator[Statement]:
        """Yield what values and cells are, and how far their ranks may be off."""
        stated = self.stated
        is_dates = stated.grid.scale is GridScale.DATES
        steps = "days" if is_dates else f"steps of {brief(stated.quantum)}"
        each = " in each element" if columns else ""
        yield Statement("quantiles.of", f"{self._of(each)}, in {steps}.", stated.column)
        low, high = (self._end(end) for end in (0, -1))
        yield Statement(
            "quantiles.cells",
            f"It is chosen among {len(Grid.of(stated.grid))} public cells from {low} to {high}, "
            f"{SCALES[stated.grid.scale]}; what is beyond is in the first cell or in the last one. A result is a "
            "cell, and no value of the data; it is no confidence interval, and says nothing where nobody has a "
            "value.",
            stated.column,
            (low, high),
        )
        yield from self._meaning(each)
        bounds = self.parameters.contributions is not None and self.parameters.can_cut
        if bounds:
            yield from self._bounded()
        yield from self._ranks(confidence)
        if bounds:
            yield Statement(
                "quantiles.members",
                f"{self._counted.capitalize()} are those that are left in an element once contributions are bounded.",
            )
        if stated.smallest or stated.largest:
            yield Statement(
                "quantiles.extremes",
                f"About the smallest and the largest value mean the value at rank {self.mechanism.spare} from the end, "
                f"so that no member's own values decide; where there are fewer {self._counted}, they say nothing.",
                values=(str(self.mechanism.spare),),
            )

    def _meaning(self, each: str) -> Iterator[Statement]:
        """Yield what a quantile is, for those who do not know."""
        wanted = [asked for asked in self.stated.asked if asked.q is not None]
        first, *others = [(percent(asked.q or Fraction(0)), _name(asked)) for asked in wanted] or [("", "")]
        if wanted:
            more = "".join(f", and {part} than {name}" for part, name in others)
            text = (
                f"About {first[0]} of the {self._counted}{each} have no larger value than {first[1]}{more}."
            )
            yield Statement("quantiles.meaning", text, self.stated.column)

    @property
    def _counted(self) -> str:
        """What ranks are of."""
        return "rows" if self.stated.rule is MemberValue.ROWS else "members"

    def _of(self, each: str) -> str:
        """Return of which values quantiles are."""
        if self.stated.rule is not MemberValue.ROWS:
            return f"Each member has one value{each}: {RULES[self.stated.rule]}"
        rows = self.parameters.tau
        return f"Each row has a value; at most {rows} of a member count{each}, which a salted hash chooses"

    def _end(self, place: int) -> str:
        """Return the first or the last value of the grid."""
        value, scale = ends_of(self.stated.grid, self.stated.quantum)[place], self.stated.grid.scale
        return in_text(value, scale) if scale is GridScale.DATES else brief(value)

    def _bounded(self) -> Iterator[Statement]:
        bounded = self.parameters.contributions
        if bounded is None:
            return
        yield Statement(
            "quantiles.bounded",
            f"A member has values in at most {elements(bounded.typical)}; {BOUNDED_BY[bounded.bounded_by]}. "
            f"Each of them costs {self.stated.units} information.",
            values=(str(bounded.typical),),
        )

    def _ranks(self, confidence: float) -> Iterator[Statement]:
        found = self._ranks_only(1 - Fraction(str(confidence)))
        together = ", for all quantiles of an element together," if len(found) > 1 else ""
        for asked, shown in zip(self.stated.asked, found, strict=True):
            largest = sum((part for _, part in shown.cuts), Fraction(0))
            cuts = (
                f", and of a part of the {self._counted} in the cells of other quantiles, {brief(largest)} at most"
                if shown.cuts
                else ""
            )
            yield Statement(
                "quantiles.rank",
                f"With {percent(Fraction(str(confidence)))}{together} the wanted rank of {_name(asked)} is within "
                f"{brief(shown.rank_error)} {self._counted} of the ranks in its cell{cuts}.",
                self.stated.column,
                (brief(shown.rank_error),),
            )

    def _ranks_only(self, alpha: Fraction) -> tuple[ShownCells, ...]:
        """Return how far ranks may be off, which is the same whatever cells were chosen."""
        return self._shown_cells((np.zeros(0, dtype=np.int64),) * self.mechanism.size, alpha=alpha)

    @property
    def coverage(self) -> Coverage:
        """What ranks say of those in the table."""
        return NoiseAlone() if self.parameters.can_cut else TwoSided()

    @property
    def coverages(self) -> list[Coverage]:
        """None: beside values stand cells."""
        return []

    def of_intervals(self, view: ReleaseView, confidence: float) -> Iterator[Statement]:
        """Yield nothing: a cell is no interval."""
        yield from ()

    def accuracy(self) -> ExpectedAccuracy:
        """Return nothing of counts; how far ranks may be off is part of the parameters."""
        return ExpectedAccuracy()


def _name(asked: ShownQuantile) -> str:
    match asked.function:
        case RankFunction.SMALLEST:
            return "about the smallest value"
        case RankFunction.LARGEST:
            return "about the largest value"
        case RankFunction.QUANTILE:
            return f"the quantile {brief(asked.q or Fraction(0))}"


def quantiles_of(parameters: ReleaseParameters) -> QuantilesReleased:
    """Return of what quantiles are released."""
    if parameters.quantiles is None:
        raise IncompleteParametersError
    return parameters.quantiles


def _counts(domain: tuple[Element, ...], cells: int, rows: TypedHistogram) -> Integers:
    """Return how many values are in each cell of each element, shape (elements, cells)."""
    places = {element: place for place, element in enumerate(domain)}
    counts = np.zeros((len(domain), cells), dtype=np.int64)
    for element, count in zip(rows.elements, rows.counts.tolist(), strict=True):
        counts[places[element[:-1]], int(element[-1])] = count
    return counts


def _of_cells(
    stated: QuantilesReleased, cells: Integers, error: Fraction, cuts: tuple[tuple[int, Fraction], ...]
) -> ShownCells:
    bounds = [Grid.of(stated.grid).bounds_of(cell) for cell in cells.tolist()]
    return ShownCells(
        tuple(low * stated.quantum for low, _ in bounds),
        tuple((end - 1) * stated.quantum for _, end in bounds),
        error,
        stated.grid.scale,
        cuts,
    )
