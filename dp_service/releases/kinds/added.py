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


def added_in_words(column: SummedValue, deviation: float) -> Iterator[Statement]:
    """Yield what one number is of.

    Args:
        column: What is added up.
        deviation: The standard deviation of its noise, in its units.
    """
    if not column.name:
        yield _number_of(column, deviation)
        return
    of = "member's total" if column.rows is None else "row's value"
    where = f" where condition {column.condition} holds" if column.condition else ""
    low, high = (short(end * column.quantum) for end in (column.low, column.high))
    # The steps of an average of rows are those of means, and not of values.
    steps = f", in steps of {short(column.quantum)}" if column.rows is None or not column.is_centred else ""
    yield Statement(
        "sums.clamped",
        f"A {of} of {column.name}{where} counts with {low} to {high}{steps}: numbers are without what lies beyond. It "
        f"takes {column.share} of the units; its sums carry noise of standard deviation {deviation:.6g}.",
        column.name,
        (low, high),
    )
    unmet = [f"that do not meet condition {column.condition}"] if column.condition else []
    unmet += [] if column.keeps_nulls else [f"without a value of {column.name}"]
    rows = " or ".join(unmet)
    if column.count_share is not None:
        of_member = "" if column.rows is None else f", of a member at most {column.rows}"
        of = f"the average of {column.name} is of the others{of_member}, whose own count takes {column.count_share} of"
        yield Statement(
            "sums.own_count",
            f"Rows {rows} count; {of} the units." if rows else of.capitalize() + " the units.",
            column.name,
        )


def _number_of(column: SummedValue, deviation: float) -> Statement:
    if column.function is AggregateFunction.MEMBERS:
        each = f"A member with a row where condition {column.condition} holds counts once in each element"
    elif column.rows is not None:
        each = (
            f"Of a member at most {column.rows} rows count in each element, and of them that part for which condition "
            f"{column.condition} holds in all of its rows there"
        )
    else:
        each = f"Of the {column.called}, at most {column.high} of a member count in each element"
    return Statement(
        "sums.number",
        f"{each}. Their number takes {column.share} of the units, and carries noise of standard deviation "
        f"{deviation:.6g}.",
        values=(str(column.condition),),
    )
