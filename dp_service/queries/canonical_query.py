"""A question in the one form that all spellings of it have."""

from __future__ import annotations

from dataclasses import dataclass

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical_columns import (
    ColumnCondition,
    Condition,
    Coordinate,
    OrdinalRestriction,
    PartCondition,
    QueryColumn,
    QueryValue,
    Restriction,
    column_conditions,
)
from dp_service.queries.intervals import Intervals
from dp_service.terms import GridSpec, MemberValue


@dataclass(frozen=True)
class QueryQuantiles:
    """The column that quantiles are of: which values of a member count, and the grid that they are chosen from.

    `salt` is public; by it rows of a member are chosen, if quantiles are of rows, and else it is empty.
    """

    value: QueryValue
    rule: MemberValue
    grid: GridSpec
    salt: bytes


@dataclass(frozen=True)
class QueryDistinct:
    """Distinct values of a column are counted: of a member at most `most` in each element, and never NULL."""

    column: QueryColumn
    most: int


@dataclass(frozen=True)
class CanonicalQuery:
    """What a question means: complete, so that an engine's query can be written from it without the policy.

    `clip` is how many events of one member count in one element at most; None: all, or members are counted. Where
    events are counted and there are `values`, there is a clip, as of quantiles of rows.
    `restrictions` has at most one for each column and is sorted by the column's name; `conditions` are those that are
    on several columns, or on no set of values, all of which must hold, sorted. `values` is what is added up beside the
    count, each once: columns by name, then what has a condition, and numbers of rows. A row without a value counts, but
    not in numbers of that column. `quantiles` is the column whose quantiles are asked for, None: none is.
    """

    table: str
    member: str
    dimensions: tuple[QueryColumn, ...]
    measure: Measure | QueryDistinct
    clip: int | None
    restrictions: tuple[Restriction, ...]
    values: tuple[Coordinate, ...] = ()
    quantiles: QueryQuantiles | None = None
    conditions: tuple[Condition, ...] = ()

    @property
    def column_conditions(self) -> tuple[ColumnCondition, ...]:
        """All conditions on columns, also of those that others, numbers and dimensions consist of."""
        others = (*self.conditions, *self.conditions_of_values)
        own = (each for one in others for each in column_conditions(one))
        return (*self.restrictions, *own, *(each for column in self.dimensions for each in column.conditions))

    @property
    def without_far_times(self) -> tuple[str, ...]:
        """The columns whose far timestamps meet no condition of the question, although it leaves an end open."""
        conditions = (
            each.times if isinstance(each, PartCondition) else each for each in self.column_conditions
        )
        times = (each for each in conditions if isinstance(each, OrdinalRestriction))
        return tuple(sorted({each.column.name for each in times if each.leaves_out_far_times}))

    @property
    def conditions_of_values(self) -> tuple[Condition, ...]:
        """The conditions of `values`, which decide what is added up and not which rows count."""
        return tuple(each.condition for each in self.values if each.condition is not None)

    @property
    def used_values(self) -> tuple[Coordinate, ...]:
        """What is taken of the rows of a member: what is added up, or what quantiles are of."""
        return self.values if self.quantiles is None else (*self.values, self.quantiles.value)

    @property
    def own_counts(self) -> tuple[int, ...]:
        """The places in `values` of the columns that have a count of their own."""
        return tuple(place for place, value in enumerate(self.values) if value.has_own_count)

    @property
    def rows_summed(self) -> int | None:
        """As how many rows a member counts at most beside sums, where rows are counted; None: they are not."""
        return self.clip if self.values and self.measure is Measure.EVENTS else None

    @property
    def ranks_rows(self) -> bool:
        """Whether quantiles are of rows, of a member in an element at most `clip`."""
        return self.quantiles is not None and self.quantiles.rule is MemberValue.ROWS

    def end_of(self, column: str) -> int:
        """Return the first integer above all that an ordinal column, which is restricted, may have."""
        return self._intervals_of(column)[-1].end

    def start_of(self, column: str) -> int:
        """Return the smallest integer that an ordinal column, which is restricted, may have."""
        return self._intervals_of(column)[0].start

    def _intervals_of(self, column: str) -> Intervals:
        return next(
            each.intervals
            for each in self.restrictions
            if isinstance(each, OrdinalRestriction) and each.column.name == column
        )
