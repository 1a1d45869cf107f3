"""Which elements of a release a question shows, where it asks for another list than the first ones.

A series is in ascending order of its elements. Which of them come first says nothing of the data, so where it is cut,
intervals are those of a list that is whole.

HAVING leaves out elements by what was released of them. An element is then shown because of its noise, so all intervals
are at alpha divided by how many elements were released: together they cover at least as often as they say, whichever
elements are left. That is so whether or not the condition left anything out, for whether it did depends on the noise
too.

A list whose smallest numbers come first is one of a known domain, all of which is released, or of quantiles, all of
which are shown: it is the same release in the opposite order. Where it is cut, its elements are shown for their noise,
which made them small. Intervals that hold given that a count is large say nothing of that, so here too they are at
alpha divided by how many elements were released. Over an unknown domain no such list is offered: the smallest of what
passed a threshold are not the smallest of what there is, and those are not released. Nor is it where elements are
chosen one by one, the largest first.

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

    Returns:
        What is shown: all intervals together at alpha where the noise decided which elements those are.
    """
    released, most = int(drawn.selection.indices.size), kind.parameters.shown_at_most
    is_selected = bool(listing.having) or (listing.smallest_first and most is not None and most < released)
    level = alpha / max(released, 1) if is_selected else alpha
    meeting = _rows(kind, listing, drawn, level)
    rows = meeting[:most]
    # The list as it is, cut off nowhere and in no other order: what decided it is in the level.
    view = kind.as_it_is().shown_rows(drawn, rows, level)
    if is_selected and view.intervals is not None:
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
    rows = list(kind.order(drawn, alpha))
    if listing.smallest_first:
        # Equal numbers by element, as in descending order, and what shows none last.
        indices, number = drawn.selection.indices, kind.ranked_by(drawn, alpha)
        numbers = [number(row) for row in range(len(rows))]
        rows.sort(key=lambda row: (numbers[row] is None, numbers[row] or 0, int(indices[row])))
    return rows


def _meets(
    row: int, conditions: Sequence[HavingCondition], count: Fraction, aggregates: Sequence[Value]
) -> bool:
    """Return whether a row meets all conditions; what is not shown meets none."""
    for each in conditions:
        value = count if each.aggregate is None else aggregates[each.aggregate](row)
        if value is None or not each.comparison.holds(value, each.bound):
            return False
    return True
