"""Which elements of a release a question shows, where it asks for another list than the first ones.

A series is in ascending order of its elements. Which of them come first says nothing of the data, so where it is cut,
intervals are those of a list that is whole.

HAVING leaves out elements by what was released of them. An element is then shown because of its noise, so all intervals
are at alpha divided by how many elements were released: together they cover at least as often as they say, whichever
elements are left. That is so whether or not the condition left anything out, for whether it did depends on the noise
too.

Everything here is a function of what was released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dp_service.mechanisms.selection import Selection
from dp_service.parameters.release import HavingCondition, ReleaseParameters
from dp_service.releases.mechanism import IncompleteParametersError, shift_of
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.sums import asked_values, rows_in_order

_Value = Callable[[int], Fraction | None]


@dataclass(frozen=True)
class Listed:
    """What a question shows of a release.

    Attributes:
        rows: The places in the release of the elements that are shown, in the order of the list.
        simultaneous: By what alpha is divided; None: the list is not filtered, and alpha is as it is.
    """

    rows: tuple[int, ...]
    simultaneous: int | None

    def part(self, drawn: MechanismOutput) -> MechanismOutput:
        """Return the release as if these were all of its elements, in this order."""
        selection, places = drawn.selection, np.array(self.rows, dtype=np.int64)
        counts = selection.noisy_counts
        kept = Selection(
            selection.indices[places],
            None if counts is None else counts[places],
            selection.ended_in_bottom and len(self.rows) == selection.indices.size,
            selection.bottom,
        )
        return replace(drawn, selection=kept, sums=tuple(column[places] for column in drawn.sums))


def listed(parameters: ReleaseParameters, drawn: MechanismOutput, *, alpha: Fraction) -> Listed:
    """Return what a question shows that is in the order of its elements or has conditions on what was released.

    Args:
        parameters: Those of the question, with a listing.
        drawn: The release.
        alpha: The probability with which an interval may miss; it decides which averages are shown.
    """
    listing = parameters.listing
    if listing is None:
        raise IncompleteParametersError
    found = int(drawn.selection.indices.size)
    simultaneous = max(found, 1) if listing.having else None
    level = alpha / (simultaneous or 1)
    rows = _in_order(parameters, drawn, level)
    if listing.having:
        values = _values(parameters, drawn, level)
        rows = [row for row in rows if _meets(row, listing.having, *values)]
    return Listed(tuple(rows[: parameters.shown_at_most]), simultaneous)


def _in_order(parameters: ReleaseParameters, drawn: MechanismOutput, alpha: Fraction) -> list[int]:
    """Return all rows of a release in the order of the list."""
    indices = drawn.selection.indices
    if parameters.listing is not None and parameters.listing.in_element_order:
        # Positions in a histogram, like ranks of elements, are in ascending order of the elements.
        return [int(row) for row in np.argsort(indices, kind="stable")]
    ordered = rows_in_order(parameters, drawn, alpha=alpha)
    return list(range(indices.size)) if ordered is None else list(ordered)


def _values(
    parameters: ReleaseParameters, drawn: MechanismOutput, alpha: Fraction
) -> tuple[_Value, Sequence[_Value]]:
    """Return the noisy count of a row, and its sums and averages; None is what is not shown."""
    counts, shift = drawn.selection.noisy_counts, shift_of(parameters)
    if counts is None:
        raise IncompleteParametersError
    denominator = 1 if shift is None else shift.factors[1]
    return lambda row: Fraction(int(counts[row]), denominator), asked_values(parameters, drawn, alpha=alpha)


def _meets(
    row: int, conditions: Sequence[HavingCondition], count: _Value, aggregates: Sequence[_Value]
) -> bool:
    """Return whether a row meets all conditions; what is not shown meets none."""
    for each in conditions:
        value = count(row) if each.aggregate is None else aggregates[each.aggregate](row)
        if value is None or not each.comparison.holds(value, each.bound):
            return False
    return True
