"""What is said of each number beside the counts: of what it is, between which ends, at which part of the units."""

from __future__ import annotations

from collections.abc import Iterator

from dp_service.parameters.aggregates import SummedValue
from dp_service.releases.statements import Statement, short
from dp_service.terms import AggregateFunction

OF_CONDITIONS = Statement(
    "sums.conditions",
    "Conditions of numbers are of single rows, and numbered in the order of the question. They change neither which "
    "elements are shown nor in which of them a member counts.",
)


def added_in_words(
    column: SummedValue, deviation: float, *, over_rows: bool, tau: int
) -> Iterator[Statement]:
    """Yield what one number is of.

    Args:
        column: What is added up.
        deviation: The standard deviation of its noise, in its units.
        over_rows: Whether rows are added up, and not members' totals.
        tau: How many rows of a member count in an element, where they do.
    """
    if not column.name:
        yield _number_of(column, deviation, tau if over_rows else column.high)
        return
    summed = "row's value" if over_rows else "member's total"
    low, high = (short(end * column.quantum) for end in (column.low, column.high))
    # 0 is then the total of who has no such row, and what a row counts with that does not meet it.
    rest = ", 0 where it does not hold" if column.condition and column.count_share is None else ""
    yield Statement(
        "sums.clamped",
        f"A {summed} of {column.called}{rest} counts with {low} to {high}, in steps of {short(column.quantum)}. "
        f"It takes {column.share} of the units, and its sums carry noise of standard deviation {deviation:.6g}.",
        column.name,
        (low, high),
    )
    if column.count_share is not None:
        unmet = f"that do not meet condition {column.condition}, or have no"
        of_member = f", of a member at most {tau}" if over_rows else ""
        yield Statement(
            "sums.own_count",
            f"Rows {unmet if column.condition else 'without a'} value of {column.name} count; its sums and averages "
            f"are of the others{of_member}, whose own count takes {column.count_share} of the units.",
            column.name,
        )


def _number_of(column: SummedValue, deviation: float, most: int) -> Statement:
    each = (
        f"A member with a row where condition {column.condition} holds counts once in each element"
        if column.function is AggregateFunction.MEMBERS
        else f"Of the {column.called}, at most {most} of a member count in each element"
    )
    return Statement(
        "sums.number",
        f"{each}. Their number takes {column.share} of the units, and carries noise of standard deviation "
        f"{deviation:.6g}.",
        values=(str(column.condition),),
    )
