"""WIDTH_BUCKET(DATE_DIFF('day', ordered, sent), 0, 30, 10): how many days are between two days of a row, in bins.

It is a function of one row, as bins are (`bins`): its domain is the places of the bins, and of those a member with
several rows may be in any. Rows without one of the two days are in none. No day makes it an error: engines that hold
days which Python does not have count from them as well, or have NULL, and the rows of such days are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, ClassVar

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.canonical_columns import QueryColumn, Source, query_column
from dp_service.queries.errors import QuestionError
from dp_service.queries.functions.function import Function, Meaning, numbered
from dp_service.terms import ColumnType

if TYPE_CHECKING:
    from dp_service.queries.derived_columns import Context


@dataclass(frozen=True)
class DayDifference(Function):
    """How many days a column is after another one: the place of the first of `edges` that they are below, from 0.

    Attributes:
        start: The column that is counted from.
        end: The column that is counted to.
        edges: Where a bin ends and the next one begins, ascending; at most 100.
    """

    NAMES: ClassVar[tuple[str, ...]] = numbered("gris_days")
    is_restricted: ClassVar[bool] = True

    start: str
    end: str
    edges: tuple[Fraction, ...]

    def __str__(self) -> str:
        return f"days from {self.start} to {self.end}"

    @property
    def columns(self) -> frozenset[str]:
        """Both columns."""
        return frozenset({self.start, self.end})

    @property
    def values(self) -> tuple[int, ...]:
        """The places of the bins."""
        return tuple(range(len(self.edges) + 1))

    def meaning(self, context: Context) -> Meaning:
        """Return the bins in whole days."""
        start, end = (context.groupable(each) for each in (self.start, self.end))
        for each in (start, end):
            if each.type is not ColumnType.DATE:
                raise QuestionError(
                    "dimensions", f"{each.name}: expected days between two columns of days of the table"
                )
        # A number of days is below an edge exactly if it is below the edge rounded up.
        edges = tuple(map(ceil, self.edges))
        source = QueryDayDifference(query_column(start), query_column(end), edges)
        return Meaning(source, self.values, len(self.values))


@dataclass(frozen=True)
class QueryDayDifference(Source):
    """The place of the first of `edges` that the days from one column to another are below; the last one beyond all."""

    start: QueryColumn
    end: QueryColumn
    edges: tuple[int, ...]

    def __bytes__(self) -> bytes:
        edges = (str(each).encode() for each in self.edges)
        return length_prefixed(b"days between", bytes(self.start), bytes(self.end), *edges)

    @property
    def read_from(self) -> tuple[QueryColumn, ...]:
        """Both columns."""
        return self.start, self.end

    def __str__(self) -> str:
        return f"the days from {self.start.name} to {self.end.name}"
