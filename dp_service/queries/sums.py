"""What a question for sums and averages releases: what is added up, and which part of the units each of it takes.

Nothing here depends on the order in which they are shown, so each order is the same release. The sum and the average of
a column are two numbers: each has a part of the units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import zip_longest

from dp_service.noise.discrete_gaussian import MAX_VARIANCE
from dp_service.noise.gaussian_price import rho_of_units, variance_for
from dp_service.parameters.aggregates import SummedValue, SumsReleased
from dp_service.parameters.contributions import BoundedContributions
from dp_service.parameters.numbers import THE_COUNT, PartName, ShownNumber
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical_columns import (
    Coordinate,
    QueryValue,
)
from dp_service.queries.coordinates import AddedUp
from dp_service.queries.errors import QuestionError
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import AggregateFunction, Bounding
from dp_service.values.bounds import Clamp

UNASKED_SHARE = Fraction(1, 64)
"""The part of the units of a count that no number and no threshold needs."""
MAXIMUM_VALUES_SHOWN = 1_000
"""How many sums and averages a result has at most, all elements together."""


def sums_released(
    query: HistogramQuery, added: AddedUp, share: Fraction, bounded: BoundedContributions
) -> SumsReleased:
    """Return what is released besides counts.

    Args:
        query: The question.
        added: What it adds up.
        share: The part of the units that its count takes.
        bounded: How contributions are bounded.
    """
    part = (1 - share) / (len(added.coordinates) or 1)
    columns = tuple(
        replace(_summed_value(coordinate, part, number, query), typical=_typical(rows, bounded))
        for coordinate, number, rows in zip(added.coordinates, added.numbers, added.rows, strict=True)
    )
    names = {
        place: PartName(column.function, column.name, query.sums_rows or query.over_rows, column.condition)
        for place, column in enumerate(columns)
    }
    names[THE_COUNT] = PartName(None)
    asked = tuple(
        ShownNumber(
            each.form.over(places), each.form.called([names[place] for place in places]), each.alias or ""
        )
        for each, places in zip(query.aggregates, added.places, strict=True)
    )
    _require_names_apart(query, asked)
    return SumsReleased(share, columns, asked, query.ordered_by)


def _require_names_apart(query: HistogramQuery, asked: Sequence[ShownNumber]) -> None:
    """Refuse an alias that another column of the answer has as its name; engines ignore case, and so does this."""
    is_counted = not query.shown or len(query.dimensions) in query.shown
    dimensions = zip_longest(query.dimensions, query.aliases)
    named = [str(alias or of) for of, alias in dimensions if alias or isinstance(of, str)]
    named += [query.count_alias or "count"] * is_counted + [each.alias or each.name for each in asked]
    seen = Counter(map(str.casefold, named))
    aliases = [query.count_alias or "", *(each.alias for each in asked)]
    if any(seen[each.casefold()] > 1 for each in aliases if each):
        raise QuestionError(
            "aggregates",
            "an alias that another column of the answer has as its name is not accepted: give it another one",
        )


def require_drawable(sums: SumsReleased, bounded: BoundedContributions, *, unit: Fraction) -> None:
    """Refuse numbers whose noise cannot be drawn. The policy was checked for each of its columns by itself.

    Args:
        sums: What is released.
        bounded: How contributions are bounded.
        unit: epsilon_per.

    Raises:
        QuestionError: The noise of one would be beyond what is drawn.
    """
    units = bounded.units - (0 if bounded.names is None else bounded.names.units)
    rho = rho_of_units(unit, units)
    for column in sums.columns:
        clamp = Clamp(column.low, column.high, column.is_centred)
        width, grid = clamp.width * column.grid(bounded.grid), bounded.grid
        most = max(width**2 / column.share, grid**2 / (column.count_share or Fraction(1)))
        if (
            variance_for(most * (column.typical or bounded.typical) * (column.rows or 1) ** 2, rho)
            > MAX_VARIANCE
        ):
            raise QuestionError(
                "aggregates",
                f"expected numbers whose noise can be drawn, and that of {column.called} cannot: ask for fewer at once",
            )


def shown_with_sums(k: int | None, aggregates: int, elements: int | None) -> int | None:
    """Return how many elements are shown at most, None for all: so many that their intervals take seconds.

    A list that takes longer would end in an error whose cause is how many elements the noise left.

    Args:
        k: What the question asks for; None: all.
        aggregates: How many sums and averages each element has.
        elements: How many elements the release has at most; None: that is unknown.
    """
    most = MAXIMUM_VALUES_SHOWN // aggregates
    if k is None and elements is not None and elements <= most:
        return None
    return most if k is None else min(k, most)


def require_whole_series(query: HistogramQuery, shown: int | None, elements: int | None) -> None:
    """Refuse a series that would be cut: the intervals of that many sums and averages take too long.

    Args:
        query: The question.
        shown: How many elements are shown at most, None for all.
        elements: How many elements the release has at most; None: that is unknown.

    Raises:
        QuestionError: The list is in the order of time and has more elements than are shown; a part of it that the
            question does not ask for would be mistaken for the whole.
    """
    if not query.in_element_order or shown is None or elements is None:
        return
    if min(elements, query.k or elements) <= shown:
        return
    aggregates = len(query.aggregates)
    raise QuestionError(
        "time_range",
        f"expected at most {shown} elements in a series, got {elements}: a result has at most "
        f"{MAXIMUM_VALUES_SHOWN:,} sums and averages, and this question has {aggregates} of each element. Shorten the "
        "range, take longer buckets, ask for fewer sums and averages at once, "
        "or state how many elements from the beginning to show",
    )


def _typical(rows: int | None, bounded: BoundedContributions) -> int | None:
    """Return in how many elements a member counts in full in a number, if rows say that these are fewer than Delta.

    Only a weight of the number's own bounds a member so. Where none acts, all of a member's elements count.
    """
    is_weighted = bounded.bounding is Bounding.WEIGHTS
    return rows if is_weighted and rows is not None and rows < bounded.typical else None


def _summed_value(coordinate: Coordinate, share: Fraction, number: int, query: HistogramQuery) -> SummedValue:
    bounds, name, keeps_nulls, function = coordinate.bounds, "", False, AggregateFunction.SUM
    rows: int | None
    if isinstance(coordinate, QueryValue):
        name, keeps_nulls, rows = coordinate.name, coordinate.keeps_nulls, coordinate.rows
    else:
        is_of_rows = coordinate.counted is Measure.EVENTS
        function = AggregateFunction.ROWS if is_of_rows else AggregateFunction.MEMBERS
        rows = bounds.totals.high if query.sums_rows else None
    clamp = bounds.totals if rows is None else bounds.rows
    parts = 1 if rows is None else clamp.parts
    # With this part for its own count, the sum of an average has the least error.
    own = clamp.count_share * share if coordinate.has_own_count else None
    return SummedValue(
        name,
        bounds.quantum.size / parts,
        clamp.low * parts,
        clamp.high * parts,
        share - (own or 0),
        own,
        function,
        number,
        keeps_nulls,
        keeps_nulls or bounds.rows.low < 0,
        rows,
        clamp.is_centred,
    )
