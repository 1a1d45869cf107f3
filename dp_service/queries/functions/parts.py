"""EXTRACT(HOUR FROM viewed_at): a part of a row's time, in its zone's calendar.

Its domain is every number that the part can be. Where the clocks of the policy's zone change, both ends of the range
have to follow from the question: the query carries the changes in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_service.queries.canonical_columns import UTC, QueryPart, query_time
from dp_service.queries.filters import Value
from dp_service.queries.functions.buckets import least
from dp_service.queries.functions.function import Meaning, OfColumn
from dp_service.queries.time_parts import TimePart

if TYPE_CHECKING:
    from dp_service.queries.derived_columns import Context

OF_CLOCKS = "the clocks of {} change"


@dataclass(frozen=True)
class Extracted(OfColumn):
    """A part of the time column."""

    NAMES: ClassVar[tuple[str, ...]] = tuple(f"gris_{part}" for part in TimePart)
    is_of_time: ClassVar[bool] = True
    needs_calendar: ClassVar[bool] = True
    is_series: ClassVar[bool] = True

    part: TimePart

    def __str__(self) -> str:
        return f"EXTRACT({self.part.in_sql} FROM {self.column})"

    @property
    def names(self) -> tuple[str, ...]:
        """Each part has its own."""
        return (f"gris_{self.part}",)

    @property
    def values(self) -> tuple[Value, ...]:
        """All numbers that the part can be."""
        return tuple(self.part.values)

    def meaning(self, context: Context) -> Meaning:
        """Return the numbers of the part."""
        time = context.time(self.column, "parts", context.table.parts, self.part)
        column = context.table.time_column()
        source = QueryPart(query_time(time, column), self.part)
        if source.time.zone != UTC:
            context.range_with_ends(OF_CLOCKS.format(source.time.zone))
        return Meaning(
            source, self.values, least(len(self.values), time.parts[self.part] or column.of_member)
        )
