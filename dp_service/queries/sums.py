"""What a question for sums and averages releases: which columns, and which part of the units each of them takes.

Nothing here depends on which sums and averages of a column are shown, so all of them come from one release.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dp_service.parameters.aggregates import AskedAggregate, SummedValue, SumsReleased
from dp_service.queries.errors import QuestionError
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.table_contributions import Sums
from dp_service.queries.value_columns import ValueColumn, ValueNulls
from dp_service.values.bounds import Clamp

MAXIMUM_VALUES_SHOWN = 1_000
"""How many sums and averages a result has at most, all elements together."""


def sums_released(query: HistogramQuery, summed: Sequence[ValueColumn], sums: Sums) -> SumsReleased:
    """Return what is released besides counts.

    Args:
        query: The question.
        summed: The columns that it sums, each once, by name.
        sums: What the policy says of sums.
    """
    weights = sum(column.weight for column in summed)
    places = {column.name: place for place, column in enumerate(summed)}
    return SumsReleased(
        share=sums.share,
        columns=tuple(
            _summed_value(column, query, (1 - sums.share) * Fraction(column.weight, weights))
            for column in summed
        ),
        asked=tuple(
            AskedAggregate(each.function, places[each.column], each.alias or "") for each in query.aggregates
        ),
        ordered_by=query.ordered_by,
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
        "range, take longer buckets, ask for fewer sums and averages at once (averages of a sum that was asked for are "
        "free), or state how many elements from the beginning to show",
    )


def _summed_value(column: ValueColumn, query: HistogramQuery, share: Fraction) -> SummedValue:
    bounds = column.bounds
    clamp = bounds.rows if query.sums_rows else bounds.totals
    count_share = share_of_own_count(column, clamp) * share
    return SummedValue(
        column.name, bounds.quantum.size, clamp.low, clamp.high, share - count_share, count_share or None
    )


def share_of_own_count(column: ValueColumn, clamp: Clamp) -> Fraction:
    """Return which part of a column's share its own count takes, 0 if it has none: its SUM then has the least error."""
    return clamp.count_share if column.nulls is ValueNulls.OWN_COUNT else Fraction(0)
