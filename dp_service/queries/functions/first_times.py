"""DATE_TRUNC('month', MIN(day)) and DATE_DIFF('month', MIN(day), day): members' first times, and what is later.

Both are functions of all rows of one member that meet the question's conditions and have the same values in the other
columns; first times are of all rows before the end of the question's range. A member has one first time there, so Delta
is that of the other columns (1 of none); and it is active in at most as many buckets from its first one on as there
are. No other member's rows enter (`render.of_members`), so that is all that a member changes.

The domain of first times is the buckets of the range, and of later rows how many buckets there are from the first to
the last. Members whose first time is before the range are left out.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.canonical_columns import (
    QueryColumn,
    QueryTime,
    Source,
    query_time,
)
from dp_service.queries.elements import days_of
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import Value, leave_one_range, require_valid
from dp_service.queries.functions.buckets import OF_BUCKETS, between, first_days, first_value
from dp_service.queries.functions.function import Function, Meaning, OfColumn
from dp_service.terms import Element

if TYPE_CHECKING:
    from dp_service.queries.derived_columns import Context

FIRST_COLUMN, LATER_COLUMN = "gris_first", "gris_later"
MOST_COHORTS = 1_000


@dataclass(frozen=True)
class _OfFirstTimes(OfColumn):
    """A function of the time column that a member's first time is in, in buckets."""

    is_of_time: ClassVar[bool] = True
    is_of_range: ClassVar[bool] = True
    is_of_member: ClassVar[bool] = True
    sees_all_before: ClassVar[bool] = True
    is_series: ClassVar[bool] = True

    length: BucketLength

    def require_beside(self, others: Sequence[Function]) -> None:
        """Refuse buckets of another length, functions of the time of a row, and conditions that leave out rows."""
        of_first = [each for each in others if isinstance(each, _OfFirstTimes)]
        require_valid(
            all((each.column, each.length) == (self.column, self.length) for each in of_first),
            "dimensions",
            "expected first times and what is later than them in buckets of one length",
        )
        require_valid(
            all(each.is_of_member for each in others if each.is_of_time),
            "dimensions",
            "expected no buckets or parts of the time itself beside first times, which are of rows of any time: ask "
            "for each apart, or for how much later members come back, DATE_DIFF('month', MIN(day), day)",
        )
        require_valid(
            not any(each.row_filters and self.column in each.columns for each in others),
            "dimensions",
            "expected no bins of the time beside first times: they would leave out rows that are earlier, and make "
            "later ones the first",
        )

    def _cohorts(self, context: Context) -> tuple[QueryCohorts, tuple[Value, ...]]:
        """Return the buckets of the question's range, and the first days of those that it allows."""
        time = context.time(self.column, "buckets", context.table.buckets, self.length)
        if not leave_one_range(context.query.filters, self.column):
            raise QuestionError(
                "filters",
                "expected one range of time beside first times, and no other conditions on it: they would leave out "
                "rows that are earlier, and make later ones the first",
            )
        allowed = context.range_with_ends(OF_BUCKETS)
        of = query_time(time, context.table.time_column())
        begins = [
            (each.first_day, start, first_value(each.end, time))
            for each in between(self.length, allowed.intervals, time, of.zone)
            for start in [first_value(each.start, time)]
        ]
        buckets = [(day, start) for day, start, end in begins if start < end]
        if len(buckets) > MOST_COHORTS:
            raise QuestionError(
                "time_range",
                f"expected at most {MOST_COHORTS:,} buckets of first times, which the query names: longer ones, or a "
                "shorter range",
            )
        days, starts = zip(*buckets, strict=True)
        return QueryCohorts(of, self.length, days, starts), tuple(
            first_days(self.length, allowed, time, of.zone)
        )


@dataclass(frozen=True)
class FirstSeen(_OfFirstTimes):
    """The bucket of a member's first time."""

    NAMES: ClassVar[tuple[str, ...]] = (FIRST_COLUMN,)

    def __str__(self) -> str:
        return f"DATE_TRUNC('{self.length}', MIN({self.column}))"

    @property
    def label(self) -> str:
        """What it is the first of."""
        return f"first_{self.length}"

    def meaning(self, context: Context) -> Meaning:
        """Return first times."""
        cohorts, days = self._cohorts(context)
        return Meaning(QueryFirst(cohorts), days, 1)


@dataclass(frozen=True)
class Later(_OfFirstTimes):
    """How many buckets after that of its member's first time a row is in."""

    NAMES: ClassVar[tuple[str, ...]] = (LATER_COLUMN,)
    is_several_of_member: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"DATE_DIFF('{self.length}', MIN({self.column}), {self.column})"

    @property
    def label(self) -> str:
        """What it counts."""
        return f"{self.length}s_later"

    def meaning(self, context: Context) -> Meaning:
        """Return how much later rows are."""
        cohorts, _ = self._cohorts(context)
        offsets = tuple(range(len(cohorts.starts)))
        return Meaning(QueryLater(cohorts), offsets, len(offsets))


@dataclass(frozen=True)
class QueryCohorts:
    """The buckets of a question's range by their first days, and the value of the time column that each begins with.

    Members whose first time is before the first of these values are left out.
    """

    of: QueryTime
    length: BucketLength
    first_days: tuple[datetime.date, ...]
    starts: tuple[int, ...]

    @property
    def encoded(self) -> tuple[bytes, ...]:
        """Where the first one begins; where they end, the restriction of the time column says."""
        return bytes(self.of), self.length.encode(), str(self.starts[0]).encode()


@dataclass(frozen=True)
class QueryFirst(Source):
    """The bucket of a member's first time, by its first day."""

    is_of_member: ClassVar[bool] = True

    cohorts: QueryCohorts

    def __bytes__(self) -> bytes:
        return length_prefixed(b"first", *self.cohorts.encoded)

    @property
    def read_from(self) -> tuple[QueryColumn, ...]:
        """The time column."""
        return (self.cohorts.of.column,)

    def __str__(self) -> str:
        since = self.cohorts
        time = since.of
        return f"the {since.length} of a member's first {time}, of all rows before the end of the range"


@dataclass(frozen=True)
class QueryLater(Source):
    """How many buckets after its member's first one a row is in."""

    is_of_member: ClassVar[bool] = True
    counts_together: ClassVar[bool] = True

    since: QueryCohorts

    def __bytes__(self) -> bytes:
        return length_prefixed(b"later", *self.since.encoded)

    @property
    def read_from(self) -> tuple[QueryColumn, ...]:
        """The time column."""
        return (self.since.of.column,)

    def __str__(self) -> str:
        return f"how many {self.since.length}s after its first one a member has another {self.since.of.column.name}"


def possible_elements(domain: Sequence[Element], columns: Sequence[QueryColumn]) -> tuple[Element, ...]:
    """Return the elements that some member can be in: none comes back later than the end of the range.

    Args:
        domain: All combinations of the columns' values.
        columns: The columns of a question.
    """
    firsts = {place: each.source for place, each in enumerate(columns) if isinstance(each.source, QueryFirst)}
    laters = [place for place, each in enumerate(columns) if isinstance(each.source, QueryLater)]
    for first, source in firsts.items():
        days = [days_of(day) for day in source.cohorts.first_days]
        left = {day: len(days) - number for number, day in enumerate(days)}
        return tuple(
            each for each in domain if all(int(each[later]) < left[int(each[first])] for later in laters)
        )
    return tuple(domain)
