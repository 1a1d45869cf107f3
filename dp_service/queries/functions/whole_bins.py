"""WIDTH_BUCKET(age, 0, 100, 10), FLOOR(stars / 2) of a column of whole numbers: the bin that a row is in, by its label.

Its domain is the labels. A row that no question by the column counts, such as one with NULL, is in no bin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.answer_columns import WHOLE_BIN_COLUMN
from dp_service.queries.canonical_bytes import condition_bytes
from dp_service.queries.canonical_columns import (
    ColumnCondition,
    Condition,
    Source,
    column_conditions,
    value_bytes,
)
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import AnyOf, Filter, Value
from dp_service.queries.functions.buckets import least
from dp_service.queries.functions.function import Function, Meaning, numbered

if TYPE_CHECKING:
    from dp_service.queries.derived_columns import Context


@dataclass(frozen=True)
class WholeBins(Function):
    """The label of the first bin that a row's number is in.

    Attributes:
        column: The column of whole numbers.
        bins: Conditions on it and their labels.
    """

    NAMES: ClassVar[tuple[str, ...]] = numbered(WHOLE_BIN_COLUMN)

    column: str
    bins: tuple[tuple[Filter, int], ...]

    def __str__(self) -> str:
        return f"bins of {self.column}"

    @property
    def values(self) -> tuple[int, ...]:
        """All labels, in ascending order."""
        return tuple(sorted({label for _, label in self.bins}))

    @property
    def conditions(self) -> tuple[Filter, ...]:
        """Those of its bins."""
        return tuple(condition for condition, _ in self.bins)

    @property
    def row_filters(self) -> tuple[Filter, ...]:
        """That a row is in one of its bins."""
        return (AnyOf(self.conditions),)

    def meaning(self, context: Context) -> Meaning:
        """Return the bins that some row can be in."""
        branches: list[tuple[Condition, int]] = []
        for given, label in self.bins:
            condition = context.condition(given, "bins")
            if condition is not None:
                branches.append((condition, label))
        if not branches:
            raise QuestionError("dimensions", "expected bins of which a first one has not every row")
        # A row that is in none does not count, so one that is not in the others is in the last.
        _, otherwise = branches[-1]
        del branches[max(1, len(branches) - 1) :]
        source = QueryWholeBins(tuple(branches), otherwise)
        of_member = context.table.column(self.column).of_member
        return Meaning(source, self.values, least(len(self.values), of_member))


@dataclass(frozen=True)
class QueryWholeBins(Source):
    """The label of the first condition that a row meets, `otherwise` of a row that meets none."""

    branches: tuple[tuple[Condition, int], ...]
    otherwise: int

    def __bytes__(self) -> bytes:
        branches = (
            length_prefixed(condition_bytes(condition), value_bytes(label))
            for condition, label in self.branches
        )
        return length_prefixed(b"case", value_bytes(self.otherwise), *branches)

    @property
    def conditions(self) -> tuple[ColumnCondition, ...]:
        """Those of its bins."""
        return tuple(each for condition, _ in self.branches for each in column_conditions(condition))

    def with_conditions(self, change: Callable[[Condition], Condition]) -> QueryWholeBins:
        """Return it with changed conditions."""
        return replace(self, branches=tuple((change(condition), label) for condition, label in self.branches))

    @property
    def values_written(self) -> tuple[Value, ...]:
        """Its labels."""
        return (*(label for _, label in self.branches), self.otherwise)

    def __str__(self) -> str:
        return f"the bin of {self.read_from[0].name}"
