"""Quantiles: a cell of a public grid for each element and value, over what is known or what a first look names.

A value is shown as the middle of the cell that was chosen, and its interval is the cell. The cell is all that is
released: nothing is interpolated between values of the data. How far its ranks may be from the rank that was wanted is
stated beside it, by the explicit law of the choice, and depends on public numbers alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms import Currency
from dp_service.mechanisms.aggregates import CellsOfGroups, QuantilesOfNames, RankedValues
from dp_service.mechanisms.aggregates.rank_scores import MAX_MEMBERS
from dp_service.mechanisms.bounded import ContributionBound, TwoLooks
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import KeyedNoise
from dp_service.parameters.aggregates import QuantilesReleased
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.histogram import HistogramError, TypedHistogram
from dp_service.releases.kinds.bounded import GaussianThreshold, looks_of
from dp_service.releases.kinds.kind import MOSTLY, IncompleteParametersError, Kind, made
from dp_service.releases.kinds.views import ExpectedAccuracy, IntervalKind, ReleaseView, ShownCells
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.terms import ColumnType, Element
from dp_service.values.cells import Grid

Integers = NDArray[np.int64]

CELL_TYPE = ColumnType.INT64
"""The type of the column of cells, which is behind those of the elements."""


@dataclass(frozen=True, eq=False)
class Quantiles(Kind[RankedValues | QuantilesOfNames]):
    """Quantiles, about the smallest and about the largest of the members' values; it counts nothing."""

    @classmethod
    def of(cls, parameters: ReleaseParameters, currency: Currency) -> Quantiles:
        """Return the kind with its mechanism."""
        stated, bounded = quantiles_of(parameters), parameters.contributions
        names = None if bounded is None else bounded.names
        groups = len(parameters.domain or ()) if names is None else names.most_names
        if not groups or (bounded is None and groups != 1):
            raise IncompleteParametersError
        # Without a bound there is one group, in which each member has one value.
        bound = (
            ContributionBound(1)
            if bounded is None
            else ContributionBound(bounded.delta_0, periods=bounded.periods)
        )
        among = made(CellsOfGroups, groups, len(Grid.of(stated.grid)), bound)
        values = made(RankedValues, currency, among, stated.quantiles, stated.smallest, stated.largest)
        if bounded is None or names is None:
            return cls(parameters, values)
        return cls(parameters, made(QuantilesOfNames, looks_of(currency, bounded, names, bound), values))

    @property
    def stated(self) -> QuantilesReleased:
        """What is released, and what the question shows of it."""
        return quantiles_of(self.parameters)

    @property
    def first_look(self) -> TwoLooks | None:
        """The two looks, if there are two."""
        return self.mechanism.looks if isinstance(self.mechanism, QuantilesOfNames) else None

    @property
    def ranked(self) -> RankedValues:
        """What releases quantiles, of two looks the second one."""
        return self.mechanism.values if isinstance(self.mechanism, QuantilesOfNames) else self.mechanism

    @property
    def counts_cells(self) -> bool:
        """Each element of its histogram has a cell behind it."""
        return True

    @property
    def least_count(self) -> int:
        """The smallest count that the first of two looks considers."""
        bounded = self.parameters.contributions
        return 1 if bounded is None else bounded.min_count or 1

    def cells_only(
        self, answer: TypedHistogram, known: tuple[Element, ...] | None, *, row_limit: int
    ) -> TypedHistogram:
        """Return the rows of elements in the domain, or of names, and cells of the grid that anybody is in.

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
        return answer.rows(kept).with_count(1)

    def histogram(
        self, answer: TypedHistogram, known: tuple[Element, ...] | None, *, row_limit: int
    ) -> TypedHistogram:
        """Return the rows of cells; those of a first look, which knows no elements, are counts."""
        if known is None:
            return super().histogram(answer, known, row_limit=row_limit)
        return self.cells_only(answer, known, row_limit=row_limit)

    def elements(self, rows: TypedHistogram, known: tuple[Element, ...] | None) -> list[Element]:
        """Return every element of the domain or every name; rows are of their cells."""
        return list(known or ())

    def draw(
        self, rows: TypedHistogram, known: tuple[Element, ...] | None, noise: KeyedNoise
    ) -> MechanismOutput:
        """Choose a cell for each element and each value that is asked for.

        Raises:
            HistogramError: There are more members in an element than any table has.
        """
        if known is None:
            raise IncompleteParametersError
        counts = _counts(known, self.ranked.among.cells, rows)
        if counts.max(initial=0) > MAX_MEMBERS or counts.sum(axis=1).max(initial=0) > MAX_MEMBERS:
            raise HistogramError("expected at most 2^38 members in an element")
        draw = (
            self.mechanism.draw_values if isinstance(self.mechanism, QuantilesOfNames) else self.mechanism.run
        )
        found = draw(counts, noise)
        selection = Selection(np.arange(len(known)), None, ended_in_bottom=False)
        return MechanismOutput(selection, cells=tuple(found.T.copy()))

    def require(self, drawn: MechanismOutput) -> None:
        """Check that this is a release of this kind."""
        super().require(drawn)
        elements, cells, among = drawn.selection.indices.size, drawn.cells, self.ranked.among
        has_all = elements <= among.groups if self.parameters.domain is None else elements == among.groups
        if not has_all or len(cells) != self.ranked.size:
            raise ValueError("expected the cells of every quantile for each element")
        if any(each.shape != (elements,) or ((each < 0) | (each >= among.cells)).any() for each in cells):
            raise ValueError("expected the cells of every quantile for each element")

    def shown(self, drawn: MechanismOutput, alpha: Fraction) -> ReleaseView:
        """Return the values that the question shows, in its order."""
        quantiles = self.shown_cells(drawn.cells, alpha=alpha)
        return ReleaseView(self.shown_count(drawn), None, IntervalKind.NONE, quantiles=quantiles)

    def shown_cells(self, cells: tuple[Integers, ...], *, alpha: Fraction) -> tuple[ShownCells, ...]:
        """Return the quantiles that a question shows, in its order."""
        errors, places = self.ranked.errors(alpha=alpha), self.stated.places
        shown = {place: asked for asked, place in enumerate(places)}
        return tuple(
            _of_cells(
                self.stated,
                cells[place],
                errors[place].members,
                tuple((shown[cut], part) for cut, part in sorted(errors[place].cuts.items()) if part),
            )
            for place in places
        )

    def accuracy(self) -> ExpectedAccuracy:
        """Return how large a count has to be to be named; ranks are part of the parameters."""
        threshold = None if self.first_look is None else GaussianThreshold.of(self.first_look.names_look)
        return ExpectedAccuracy(
            found_mostly=None if threshold is None else threshold.needed(MOSTLY),
            is_fixed=threshold is not None,
        )


def quantiles_of(parameters: ReleaseParameters) -> QuantilesReleased:
    """Return of what quantiles are released."""
    if parameters.quantiles is None:
        raise IncompleteParametersError
    return parameters.quantiles


def _counts(domain: tuple[Element, ...], cells: int, rows: TypedHistogram) -> Integers:
    """Return how many members are in each cell of each element, shape (elements, cells)."""
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
