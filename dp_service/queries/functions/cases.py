"""CASE WHEN age < 30 THEN 'young' ELSE 'old' END: the value beside the first of some conditions that a row meets.

Its domain is the values that it names. A row that no question by a column counts, such as one with NULL, without a key
or with an infinite day, is in one more value than those that the column's Delta is of: that of ELSE.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.answer_columns import CASE_COLUMN
from dp_service.queries.canonical_bytes import condition_bytes
from dp_service.queries.canonical_columns import (
    ColumnCondition,
    Condition,
    QueryColumn,
    Source,
    column_conditions,
    value_bytes,
)
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import AnyOf, Filter, In, Value, column_filters, require_valid, type_of
from dp_service.queries.functions.function import Function, Meaning, numbered
from dp_service.queries.plan_values import PlanValue
from dp_service.queries.suggestions import listed
from dp_service.terms import ColumnType

if TYPE_CHECKING:
    from dp_service.queries.derived_columns import Context

MAXIMUM_BRANCHES = 100


@dataclass(frozen=True)
class Cases(Function):
    """The value beside the first condition that a row meets.

    Attributes:
        branches: Conditions and their values, of one type; at most 100.
        otherwise: The value of rows that meet none; None: they are left out.
    """

    NAMES: ClassVar[tuple[str, ...]] = numbered(CASE_COLUMN)

    branches: tuple[tuple[Filter, Value], ...]
    otherwise: Value | None

    def __post_init__(self) -> None:
        require_valid(
            1 <= len(self.branches) <= MAXIMUM_BRANCHES,
            "dimensions",
            f"expected 1 to {MAXIMUM_BRANCHES} conditions in CASE",
        )
        answers = [value for _, value in self.branches]
        answers += [] if self.otherwise is None else [self.otherwise]
        require_valid(
            len(set(map(type_of, answers))) == 1,
            "dimensions",
            "expected values of one type in CASE",
        )

    def __str__(self) -> str:
        return "CASE .. END"

    @property
    def values(self) -> tuple[Value, ...]:
        """All values that it can have, each once, in ascending order."""
        found = {value for _, value in self.branches}
        return tuple(sorted(found if self.otherwise is None else {*found, self.otherwise}))

    @property
    def conditions(self) -> tuple[Filter, ...]:
        """Those of its branches."""
        return tuple(condition for condition, _ in self.branches)

    @property
    def row_filters(self) -> tuple[Filter, ...]:
        """Without ELSE, that one of its conditions holds."""
        return (AnyOf(self.conditions),) if self.otherwise is None else ()

    def meaning(self, context: Context) -> Meaning:
        """Return the branches that some row can meet."""
        branches: list[tuple[Condition, Value]] = []
        otherwise = self.otherwise
        for given, value in self.branches:
            condition = context.condition(given, "CASE, or grouped by,")
            if condition is None:
                # Every row meets it.
                otherwise = value
                break
            branches.append((condition, value))
        if not branches:
            raise QuestionError("dimensions", "expected CASE with a first condition that not every row meets")
        # Where a row that meets none does not count, one that does not meet the others meets the last. No engine groups
        # by a literal alone, so one condition stays.
        if otherwise is None:
            _, otherwise = branches[-1]
            del branches[max(1, len(branches) - 1) :]
        return Meaning(QueryCase(tuple(branches), otherwise), self.values, self._delta(context))

    def _delta(self, context: Context) -> int:
        """Return in how many of its values one member can be."""
        name, *others = self.columns
        column, values = context.table.column(name), len(self.values)
        if others or column.delta is None:
            return values
        is_own_text = column.type is ColumnType.STRING and column.lookup is None
        leaves = (each for condition in self.conditions for each in column_filters(condition))
        if is_own_text and not all(isinstance(each, In) for each in leaves):
            # Such a condition also holds of texts that are too long to be an element, which no Delta counts.
            return values
        return min(values, column.delta + (self.otherwise is not None))


@dataclass(frozen=True)
class QueryCase(Source):
    """The value of the first condition that a row meets, `otherwise` of a row that meets none."""

    branches: tuple[tuple[Condition, PlanValue], ...]
    otherwise: PlanValue

    def __bytes__(self) -> bytes:
        branches = (
            length_prefixed(condition_bytes(condition), value_bytes(value))
            for condition, value in self.branches
        )
        return length_prefixed(b"case", value_bytes(self.otherwise), *branches)

    @property
    def conditions(self) -> tuple[ColumnCondition, ...]:
        """Those of its branches."""
        return tuple(each for condition, _ in self.branches for each in column_conditions(condition))

    def with_conditions(self, change: Callable[[Condition], Condition]) -> QueryCase:
        """Return it with changed conditions."""
        return replace(self, branches=tuple((change(condition), value) for condition, value in self.branches))

    @property
    def values_written(self) -> tuple[Value, ...]:
        """Its values."""
        return (*(value for _, value in self.branches), self.otherwise)

    def text_read(self, column: QueryColumn) -> QueryColumn | None:
        """Return None: it answers with literals alone."""
        del column
        return None

    def __str__(self) -> str:
        return f"the case of {listed(list(dict.fromkeys(each.name for each in self.read_from)))}"
