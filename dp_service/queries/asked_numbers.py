"""The numbers that a question asks for: what is counted, sums and averages and what is counted beside it, quantiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from dp_service.queries.filters import Filter, require_valid
from dp_service.terms import AggregateFunction, RankFunction

MAXIMUM_QUANTILE_DENOMINATOR = 10_000
_IN_REACH = Fraction(1, 10**9)


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
class Aggregate:
    """A sum or an average of a value column, or a number of members or rows beside the count.

    Attributes:
        function: Which of them.
        column: The column; empty for a number of members or rows.
        alias: Its name in SQL, and no part of the question.
        condition: Conditions that all must hold of the rows that it is of; empty: it is of all that count.
        per_count: Times what it is shown divided by the question's count; None: it is shown as it is.
    """

    function: AggregateFunction
    column: str = ""
    alias: str | None = field(default=None, compare=False)
    condition: tuple[Filter, ...] = ()
    per_count: Fraction | None = None

    @property
    def is_quotient(self) -> bool:
        """Whether it is shown divided by a count, where that is not 0."""
        return self.function is AggregateFunction.AVERAGE or self.per_count is not None

    def __post_init__(self) -> None:
        require_valid(
            self.per_count is None
            or (
                self.function is not AggregateFunction.AVERAGE
                and _IN_REACH <= self.per_count <= 1 / _IN_REACH
            ),
            "aggregates",
            "expected a number other than an average to be divided by the count, times 10^-9 to 10^9",
        )
        counts = self.function in (AggregateFunction.MEMBERS, AggregateFunction.ROWS)
        require_valid(
            counts is not bool(self.column),
            "aggregates",
            "expected a column for a sum or an average, and none for a number of members or rows",
        )


@dataclass(frozen=True)
class AskedQuantile:
    """A quantile of a column's values, one for each member, or about the smallest or the largest of them.

    Attributes:
        function: Which of them.
        column: The column.
        q: The quantile, strictly between 0 and 1; None for the smallest and the largest.
        alias: Its name in SQL, and no part of the question.
    """

    function: RankFunction
    column: str
    q: Fraction | None = None
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
            "expected quantiles of at most four digits, such as 0.9999",
        )
