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
        yield _number_of(column, deviation, tau if over_rows else column.high, over_rows=over_rows)
        return
    each = "row's value" if over_rows else "member's total"
    summed = f"{each} of {column.name}"
    where = f" where condition {column.condition} holds" if column.condition else ""
    low, high = (short(end * column.quantum) for end in (column.low, column.high))
    of = f"A {summed}{where}{_otherwise(column)}"
    yield Statement(
        "sums.clamped",
        f"{of} counts with {low} to {high}, in steps of {short(column.quantum)}: sums are without what lies beyond. "
        f"It takes {column.share} of the units, and its sums carry noise of standard deviation {deviation:.6g}.",
        column.name,
        (low, high),
    )
    yield from _missing(column, f", of a member at most {tau}" if over_rows else "")


def _otherwise(column: SummedValue) -> str:
    """Return what a member counts with that has no row which meets a condition, and such a row."""
    if not column.condition or column.count_share is not None:
        return ""
    return f", 0 where it does not hold{'' if column.keeps_nulls else ' or there is no value'},"


def _missing(column: SummedValue, of_member: str) -> Iterator[Statement]:
    """Yield what becomes of rows without a value, and of those that do not meet the condition of an average."""
    unmet = [f"that do not meet condition {column.condition}"] if column.condition else []
    unmet += [] if column.keeps_nulls else [f"without a value of {column.name}"]
    rows = " or ".join(unmet)
    if column.count_share is not None:
        yield Statement(
            "sums.own_count",
            f"Rows {rows} count; the sums and averages of {column.name} are of the others{of_member}, whose own count "
            f"takes {column.count_share} of the units.",
            column.name,
        )
    elif rows and not column.condition:
        yield Statement("sums.dropped", f"Rows {rows} are left out of every count and number.", column.name)


def _number_of(column: SummedValue, deviation: float, most: int, *, over_rows: bool) -> Statement:
    if column.function is AggregateFunction.MEMBERS:
        each = f"A member with a row where condition {column.condition} holds counts once in each element"
    elif over_rows:
        each = (
            f"Of a member at most {most} rows count in each element, and of them that part for which condition "
            f"{column.condition} holds in all of its rows there"
        )
    else:
        each = f"Of the {column.called}, at most {most} of a member count in each element"
    return Statement(
        "sums.number",
        f"{each}. Their number takes {column.share} of the units, and carries noise of standard deviation "
        f"{deviation:.6g}.",
        values=(str(column.condition),),
    )
