"""From a histogram of cells to quantiles: what the mechanism runs on, and what a question shows of its release.

A value is shown as the middle of the cell that was chosen, and its interval is the cell. The cell is all that is
released: nothing is interpolated between values of the data. How far its ranks may be from the rank that was wanted is
stated beside it, by the explicit law of the choice, and depends on public numbers alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.aggregates import RankedValues
from dp_service.mechanisms.aggregates.rank_scores import MAX_MEMBERS
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import NoiseSource
from dp_service.parameters.aggregates import QuantilesReleased
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.histogram import HistogramError, TypedHistogram
from dp_service.releases.mechanism import IncompleteParametersError, OfCells, ranked_of
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.terms import ColumnType, Element, GridScale
from dp_service.values.cells import Grid

Integers = NDArray[np.int64]

CELL_TYPE = ColumnType.INT64
"""The type of the column of cells, which is behind those of the elements."""


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


def cells_only(
    parameters: ReleaseParameters,
    known_elements: tuple[Element, ...] | None,
    histogram: TypedHistogram,
    *,
    row_limit: int,
) -> TypedHistogram:
    """Return the rows of elements in the domain, or of names, and cells of the grid that anybody is in.

    Rows of other elements are left out, as `histogram.over_domain` does: one member's row must not decide whether there
    is an answer. A cell that the grid does not have is no answer to the query, whatever rows there are.

    Raises:
        HistogramError: The histogram cannot be the answer to the plan's query.
    """
    stated = parameters.quantiles
    if stated is None or known_elements is None:
        raise IncompleteParametersError
    cells, known = len(Grid.of(stated.grid)), frozenset(known_elements)
    if any(not 0 <= int(element[-1]) < cells for element in histogram.elements):
        raise HistogramError("expected cells of the grid that the query has")
    kept = [row for row, element in enumerate(histogram.elements) if element[:-1] in known]
    if len(kept) < len(histogram.elements) >= row_limit:
        raise HistogramError("expected only elements of the domain that the query asks for")
    return histogram.rows(kept).with_count(1)


def drawn_cells(
    domain: tuple[Element, ...] | None,
    mechanism: OfCells,
    rows: TypedHistogram,
    noise: NoiseSource,
) -> MechanismOutput:
    """Return the release: a cell for each element of the domain, or each name, and each value that is asked for.

    Raises:
        HistogramError: There are more members in an element than any table has.
    """
    if domain is None:
        raise IncompleteParametersError
    values = mechanism if isinstance(mechanism, RankedValues) else mechanism.values
    counts = _counts(domain, values.among.cells, rows)
    if counts.max(initial=0) > MAX_MEMBERS or counts.sum(axis=1).max(initial=0) > MAX_MEMBERS:
        raise HistogramError("expected at most 2^38 members in an element")
    draw = mechanism.run if isinstance(mechanism, RankedValues) else mechanism.draw_values
    found = draw(counts, noise)
    selection = Selection(np.arange(len(domain)), None, ended_in_bottom=False)
    return MechanismOutput(selection, cells=tuple(found.T.copy()))


def _counts(domain: tuple[Element, ...], cells: int, rows: TypedHistogram) -> Integers:
    """Return how many members are in each cell of each element, shape (elements, cells)."""
    places = {element: place for place, element in enumerate(domain)}
    counts = np.zeros((len(domain), cells), dtype=np.int64)
    for element, count in zip(rows.elements, rows.counts.tolist(), strict=True):
        counts[places[element[:-1]], int(element[-1])] = count
    return counts


def shown_cells(
    parameters: ReleaseParameters, cells: tuple[Integers, ...], *, elements: int, alpha: Fraction
) -> tuple[ShownCells, ...]:
    """Return the values that a question shows, in its order; empty if it asks for no quantiles.

    Args:
        parameters: Those of the question.
        cells: The chosen cells, as they were drawn.
        elements: How many elements the release has: all of a known domain, or the names of a first look.
        alpha: The probability with which the rank of any value of an element may be further off.

    Raises:
        ValueError: This is no release of these parameters.
    """
    stated, mechanism = parameters.quantiles, ranked_of(parameters)
    if stated is None or mechanism is None:
        if cells:
            raise ValueError("expected cells of quantiles alone")
        return ()
    most, limit = mechanism.among.groups, mechanism.among.cells
    if (elements > most if parameters.domain is None else elements != most) or len(cells) != mechanism.size:
        raise ValueError("expected the cells of every quantile for each element")
    if any(each.shape != (elements,) or ((each < 0) | (each >= limit)).any() for each in cells):
        raise ValueError("expected the cells of every quantile for each element")
    errors, places = mechanism.errors(alpha=alpha), stated.places
    shown = {place: asked for asked, place in enumerate(places)}
    return tuple(
        _of_cells(
            stated,
            cells[place],
            errors[place].members,
            tuple((shown[cut], part) for cut, part in sorted(errors[place].cuts.items()) if part),
        )
        for place in places
    )


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
