"""FUNNEL_COUNT(STEPS(a, b), CORRELATE_BY(member)): the deepest step that a member's rows reach.

It is a function of all rows of one member that meet the question's conditions and have the same values in the other
columns. Such a member has one deepest step there, so Delta is that of the other columns, 1 of none. No other member's
rows enter (the query groups by the member before it counts: `render.of_members`), so that is all that a member changes.
Its domain is the numbers of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.canonical_bytes import condition_bytes
from dp_service.queries.canonical_columns import ColumnCondition, Condition, Source, column_conditions
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import Filter, Value, require_valid
from dp_service.queries.functions.function import Function, Meaning

if TYPE_CHECKING:
    from dp_service.queries.derived_columns import Context

MOST_STEPS = 10
STEP_COLUMN = "gris_step"


@dataclass(frozen=True)
class Funnel(Function):
    """The deepest step that a member reaches: of each step up to it, some row of the member meets the condition.

    In which order the rows are makes no difference. A member without a row that meets the first is left out.

    Attributes:
        steps: The conditions, 2 to 10.
    """

    NAMES: ClassVar[tuple[str, ...]] = (STEP_COLUMN,)
    is_of_member: ClassVar[bool] = True
    is_series: ClassVar[bool] = True
    # It has a row for each step without being grouped by.
    is_grouped_by: ClassVar[bool] = False

    steps: tuple[Filter, ...]

    def __post_init__(self) -> None:
        require_valid(
            2 <= len(self.steps) <= MOST_STEPS,
            "dimensions",
            f"expected 2 to {MOST_STEPS} steps in FUNNEL_COUNT",
        )

    def __str__(self) -> str:
        return "FUNNEL_COUNT(STEPS(..))"

    @property
    def conditions(self) -> tuple[Filter, ...]:
        """Its steps."""
        return self.steps

    @property
    def values(self) -> tuple[Value, ...]:
        """The numbers of its steps."""
        return tuple(range(1, len(self.steps) + 1))

    def require_beside(self, others: Sequence[Function]) -> None:
        """Refuse a second funnel, and what has other rows of a member in other values."""
        is_one = not any(isinstance(each, Funnel) for each in others)
        require_valid(is_one, "dimensions", "expected one FUNNEL_COUNT: ask for each funnel apart")
        require_valid(
            not any(each.is_several_of_member for each in others),
            "dimensions",
            "expected no FUNNEL_COUNT beside how much later members come back: it is of all rows of a member",
        )

    def meaning(self, context: Context) -> Meaning:
        """Return the steps."""
        return Meaning(QueryFunnel(self.steps_in(context)), self.values, 1)

    def steps_in(self, context: Context) -> tuple[Condition, ...]:
        """Return the conditions of its steps.

        Raises:
            QuestionError: Every row meets one of them, or none can.
        """
        found = [context.condition(each, "FUNNEL_COUNT") for each in self.steps]
        steps = tuple(each for each in found if each is not None)
        if len(steps) < len(found):
            raise QuestionError(
                "dimensions", "expected steps that not every row meets: leave such a step out"
            )
        return steps


@dataclass(frozen=True)
class QueryFunnel(Source):
    """The number of the deepest step, from 1, that a member reaches with its rows in an element; 0 is left out."""

    is_of_member: ClassVar[bool] = True
    is_cumulative: ClassVar[bool] = True

    steps: tuple[Condition, ...]

    def __bytes__(self) -> bytes:
        return length_prefixed(b"funnel", *map(condition_bytes, self.steps))

    @property
    def conditions(self) -> tuple[ColumnCondition, ...]:
        """Those of its steps."""
        return tuple(each for condition in self.steps for each in column_conditions(condition))

    def with_conditions(self, change: Callable[[Condition], Condition]) -> QueryFunnel:
        """Return it with changed conditions."""
        return replace(self, steps=tuple(map(change, self.steps)))

    def __str__(self) -> str:
        return f"the deepest of {len(self.steps)} steps that a member reaches"
