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

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dp_service.parameters.release import HavingCondition, Listing
from dp_service.releases.kinds.kind import AnyKind, Value
from dp_service.releases.kinds.parts import counts_of
from dp_service.releases.kinds.views import IntervalKind, ReleaseView
from dp_service.releases.mechanism_output import MechanismOutput


def shown_listed(kind: AnyKind, listing: Listing, drawn: MechanismOutput, alpha: Fraction) -> ReleaseView:
    """Return a list in the order of its elements, or one that HAVING filters.

    Args:
        kind: The kind of the question.
        listing: Which elements it shows.
        drawn: The release.
        alpha: The probability with which an interval may miss; it decides which averages are shown.
    """
    simultaneous = max(int(drawn.selection.indices.size), 1) if listing.having else 1
    level = alpha / simultaneous
    meeting = _rows(kind, listing, drawn, level)
    rows = meeting[: kind.parameters.shown_at_most]
    # The list as it is, cut off nowhere and in no other order: what decided it is in the level.
    view = kind.as_it_is().shown_rows(drawn, rows, level)
    if listing.having and view.intervals is not None:
        view = replace(view, interval_kind=IntervalKind.SIMULTANEOUS)
    # Everything that was released was looked at, unless k cuts the list.
    ended = drawn.selection.ended_in_bottom and rows == meeting
    return replace(view, count=len(rows), rows=rows, ended_in_bottom=ended)


def _rows(kind: AnyKind, listing: Listing, drawn: MechanismOutput, alpha: Fraction) -> tuple[int, ...]:
    """Return the places in the release of the elements that meet all conditions, in the order of the list."""
    rows = _in_order(kind, listing, drawn, alpha)
    if listing.having:
        values, counts = kind.values(drawn, alpha), counts_of(drawn)
        rows = [
            row
            for row in rows
            if _meets(row, listing.having, Fraction(int(counts[row]), kind.denominator), values)
        ]
    return tuple(rows)


def _in_order(kind: AnyKind, listing: Listing, drawn: MechanismOutput, alpha: Fraction) -> list[int]:
    """Return all rows of a release in the order of the list."""
    if listing.in_element_order:
        # Positions in a histogram, like ranks of elements, are in ascending order of the elements.
        return [int(row) for row in np.argsort(drawn.selection.indices, kind="stable")]
    return list(kind.order(drawn, alpha))


def _meets(
    row: int, conditions: Sequence[HavingCondition], count: Fraction, aggregates: Sequence[Value]
) -> bool:
    """Return whether a row meets all conditions; what is not shown meets none."""
    for each in conditions:
        value = count if each.aggregate is None else aggregates[each.aggregate](row)
        if value is None or not each.comparison.holds(value, each.bound):
            return False
    return True
