"""FUNNEL_COUNT(STEPS(a, b), CORRELATE_BY(member), SETTINGS('strict_increase')): the deepest step in order of time.

A member reaches the first step with its first row that meets it, and each further one with its first row that meets it
and is later than that of the step before. Later is strictly later: of rows with one time, as on one day of a column of
days, none comes after another. No row is taken for good by being the first, because a later one would leave less time
for what follows; so no other choice of rows reaches a deeper step.

It is a function of all rows of one member, as every funnel (`funnels`), and promises the same: one deepest step in each
element of the other columns, so Delta is theirs, 1 of none. First times are of the member's own rows: every window of
the query is of one member (`render.funnels`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.canonical_bytes import condition_bytes
from dp_service.queries.canonical_columns import (
    ColumnCondition,
    Condition,
    QueryColumn,
    Source,
    column_conditions,
    query_column,
)
from dp_service.queries.filters import require_valid
from dp_service.queries.functions.function import Function, Meaning
from dp_service.queries.functions.funnels import Funnel

if TYPE_CHECKING:
    from dp_service.queries.derived_columns import Context


@dataclass(frozen=True)
class OrderedFunnel(Funnel):
    """The deepest step that a member reaches in order of time.

    Attributes:
        column: The time column.
    """

    is_of_time: ClassVar[bool] = True

    column: str

    def __str__(self) -> str:
        return "FUNNEL_COUNT(STEPS(..), SETTINGS('strict_increase'))"

    @property
    def columns(self) -> frozenset[str]:
        """The columns of its steps, and the time column."""
        return super().columns | {self.column}

    def require_beside(self, others: Sequence[Function]) -> None:
        """Refuse first times as well, which are of rows of any time."""
        super().require_beside(others)
        require_valid(
            not any(each.sees_all_before for each in others),
            "dimensions",
            "expected no FUNNEL_COUNT in order of time beside first times: ask for each apart",
        )

    def meaning(self, context: Context) -> Meaning:
        """Return the steps and their time."""
        time = query_column(context.table.time_column())
        return Meaning(QueryOrderedFunnel(self.steps_in(context), time), self.values, 1)


@dataclass(frozen=True)
class QueryOrderedFunnel(Source):
    """The number of the deepest step, from 1, that a member reaches in order of time; 0 is left out."""

    is_of_member: ClassVar[bool] = True
    is_cumulative: ClassVar[bool] = True

    in_order: tuple[Condition, ...]
    by: QueryColumn

    def __bytes__(self) -> bytes:
        return length_prefixed(b"funnel in order", bytes(self.by), *map(condition_bytes, self.in_order))

    @property
    def read_from(self) -> tuple[QueryColumn, ...]:
        """The columns of its steps, and the time column."""
        return (*super().read_from, self.by)

    @property
    def conditions(self) -> tuple[ColumnCondition, ...]:
        """Those of its steps."""
        return tuple(each for condition in self.in_order for each in column_conditions(condition))

    def with_conditions(self, change: Callable[[Condition], Condition]) -> QueryOrderedFunnel:
        """Return it with changed conditions."""
        return replace(self, in_order=tuple(map(change, self.in_order)))

    def __str__(self) -> str:
        return f"the deepest of {len(self.in_order)} steps that a member reaches in order of {self.by.name}"
