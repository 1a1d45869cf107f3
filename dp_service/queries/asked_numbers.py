"""The numbers that a question asks for: what is counted, numbers beside it, quantiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from dp_service.parameters.numbers import Form, Plain
from dp_service.queries.filters import Filter, require_valid
from dp_service.terms import AggregateFunction, MemberValue, RankFunction

MAXIMUM_QUANTILE_DENOMINATOR = 10_000


class Measure(StrEnum):
    """What is counted for each element."""

    DISTINCT_MEMBERS = "distinct_members"
    EVENTS = "events"


@dataclass(frozen=True)
class DistinctValues:
    """What is counted for each element: the distinct values of a column, of a member as many as the policy states."""

    column: str

    @property
    def value(self) -> str:
        """Its name, as that of a `Measure`."""
        return f"distinct:{self.column}"


Counted = Measure | DistinctValues


@dataclass(frozen=True)
class Part:
    """What a number is of: the values of a column, or how many members or rows there are.

    Attributes:
        function: Which of them.
        column: The column; empty for a number of members or rows.
        condition: Conditions that all must hold of the rows that it is of; empty: it is of all that count.
    """

    function: AggregateFunction
    column: str = ""
    condition: tuple[Filter, ...] = ()

    def __post_init__(self) -> None:
        require_valid(
            (self.function is AggregateFunction.SUM) is bool(self.column),
            "aggregates",
            "expected a column for a sum or an average, and none for a number of members or rows",
        )


def count_part(measure: Measure) -> Part:
    """Return a count of members or rows, as a part of numbers."""
    of_members = measure is Measure.DISTINCT_MEMBERS
    return Part(AggregateFunction.MEMBERS if of_members else AggregateFunction.ROWS)


@dataclass(frozen=True)
class AskedNumber:
    """A number beside the count: its form, and its name in SQL, which is no part of the question."""

    form: Form[Part]
    alias: str | None = field(default=None, compare=False)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What it is of."""
        return self.form.parts


def sum_of(column: str) -> AskedNumber:
    """Return the sum of a value column."""
    return AskedNumber(Plain(Part(AggregateFunction.SUM, column)))


@dataclass(frozen=True)
class AskedQuantile:
    """A quantile of a column's values in the rows, or of one for each member, or about the smallest or the largest.

    Attributes:
        function: Which of them.
        column: The column.
        q: The quantile, strictly between 0 and 1; None for the smallest and the largest.
        of: Of which values of a member.
        alias: Its name in SQL, and no part of the question.
    """

    function: RankFunction
    column: str
    q: Fraction | None = None
    of: MemberValue = MemberValue.ROWS
    alias: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        is_quantile = self.function is RankFunction.QUANTILE
        require_valid(is_quantile is (self.q is not None), "quantiles", "expected a number for each quantile")
        if self.q is None:
            return
        require_valid(
            0 < self.q < 1, "quantiles", "expected quantiles strictly between 0 and 1 (0 % and 100 %)"
        )
        require_valid(
            self.q.denominator <= MAXIMUM_QUANTILE_DENOMINATOR,
            "quantiles",
            f"expected quantiles of at most four digits, such as 0.9999, or a denominator of at most "
            f"{MAXIMUM_QUANTILE_DENOMINATOR:,}",
        )
