"""The columns of a table that are summed or have quantiles: as a policy states them, and what that leads to."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from dp_service.queries.columns import Nulls
from dp_service.queries.policy_types import (
    MAX_DAYS,
    MAXIMUM_DOMAIN_SIZE,
    MAXIMUM_ROWS_OF_MEMBER,
    Bound,
    GridEnd,
    Stated,
    exact_decimal,
)
from dp_service.terms import GridScale, GridSpec, MemberValue, ValueType
from dp_service.values.bounds import ValueBounds
from dp_service.values.cells import MAX_CELLS, Grid


def _summable(kind: ValueType) -> ValueType:
    if kind is ValueType.DATE:
        raise ValueError("expected 'int64' or 'decimal': days are not summed")
    return kind


class NumberKeys(Stated):
    """What any column of numbers may state.

    Attributes:
        typical: In how many bins of the column a member typically has rows; None: in all.
        rows: How many rows of a member with a value count in full, in all elements together; None: as many as the
            table's measures say.
        nulls: What happens to rows without a usable value: the column's own numbers leave them out, or count them with
            `null_value`.
    """

    typical: Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)] | None = None
    rows: Annotated[int, Field(gt=0, le=MAXIMUM_ROWS_OF_MEMBER)] | None = None
    nulls: Annotated[Nulls, Field(strict=False)] = Nulls.DROP
    null_value: Bound | None = None


class ValueSchema(NumberKeys):
    """One column whose values are summed: its quantum, the bounds of a row and of a member's total."""

    type: Annotated[ValueType, Field(strict=False), AfterValidator(_summable)]
    quantum: Annotated[Fraction, BeforeValidator(exact_decimal), Field(gt=0)] = Fraction(1)
    lower: Bound
    upper: Bound
    row_lower: Bound | None = None
    row_upper: Bound | None = None


class ValueColumn(ValueSchema):
    """A column whose values are summed, with what its keys lead to.

    Attributes:
        name: The name of the column.
        bounds: How rows and members' totals are rounded and clamped.
        null_value: What stands for NULL: what an engine without NULL stores, and what such rows count with if they are
            kept. None: the engine stores an infinity or no number.
    """

    name: str
    bounds: ValueBounds


class GridSchema(Stated):
    """A public grid: the values from one bound to another, and in how many cells; of days, how long a cell is."""

    scale: Annotated[GridScale, Field(strict=False)]
    start: Annotated[GridEnd, Field(alias="from")]
    to: GridEnd
    cells: Annotated[int, Field(ge=2, le=MAX_CELLS)] | None = None
    step: Annotated[int, Field(gt=0, le=MAX_DAYS)] | None = None


class QuantileSchema(NumberKeys):
    """One column with quantiles: its grid, and how rows are rounded."""

    type: Annotated[ValueType, Field(strict=False)]
    quantum: Annotated[Fraction, BeforeValidator(exact_decimal), Field(gt=0)] = Fraction(1)
    grid: GridSchema
    row_lower: Bound | None = None
    row_upper: Bound | None = None


class QuantileColumn(QuantileSchema):
    """A column whose quantiles may be asked for, with what its keys lead to.

    Attributes:
        name: The name of the column.
        bounds: How rows and members' values are rounded and clamped; the latter to the grid.
        spec: The public grid that a value is chosen from, in steps of the quantum.
        null_value: As for a `ValueColumn`.
    """

    name: str
    bounds: ValueBounds
    spec: GridSpec

    def cells_of(self, of: MemberValue) -> GridSpec:
        """Return the cells that a value is chosen from: none is beyond what a row can have, but for totals."""
        end, edges = self.bounds.rows.high + 1, Grid.of(self.spec).edges
        cells = bisect_left(edges, end)
        if of is MemberValue.TOTAL or end >= edges[-1] or cells < 2:
            return self.spec
        return replace(self.spec, high=end, cells=cells)
