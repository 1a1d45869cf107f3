"""The columns of a table that are summed or have quantiles: as a policy states them, and what that leads to."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from dp_service.queries.columns import Nulls
from dp_service.queries.filters import INT64_MINIMUM
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

Rows = Annotated[int, Field(gt=0, le=MAXIMUM_ROWS_OF_MEMBER)]


def _summable(kind: ValueType) -> ValueType:
    if kind is ValueType.DATE:
        raise ValueError("expected 'int64' or 'decimal': days are not summed")
    return kind


class GridSchema(Stated):
    """A public grid: the values from one bound to another, and in how many cells; of days, how long a cell is.

    `rows` is how many rows of a member count in full in quantiles, in all elements together; None: as many as the
    table's measures say.
    """

    scale: Annotated[GridScale, Field(strict=False)]
    start: Annotated[GridEnd, Field(alias="from")]
    to: GridEnd
    cells: Annotated[int, Field(ge=2, le=MAX_CELLS)] | None = None
    step: Annotated[int, Field(gt=0, le=MAX_DAYS)] | None = None
    rows: Rows | None = None


class NumberSchema(Stated):
    """What a policy states of any column of numbers.

    Attributes:
        typical: In how many bins of the column a member typically has rows; None: in all.
        nulls: What happens to rows without a usable value: the column's own numbers leave them out, or count them with
            `null_value`.
    """

    type: Annotated[ValueType, Field(strict=False)]
    quantum: Annotated[Fraction, BeforeValidator(exact_decimal), Field(gt=0)] = Fraction(1)
    typical: Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)] | None = None
    row_lower: Bound | None = None
    row_upper: Bound | None = None
    nulls: Annotated[Nulls, Field(strict=False)] = Nulls.DROP
    null_value: Bound | None = None

    @property
    def stated(self) -> dict[str, object]:
        """The bounds that the policy states, by their keys."""
        return {key: getattr(self, key) for key in ("row_lower", "row_upper", "null_value")}

    @property
    def null_number(self) -> Fraction | None:
        """What stands for NULL; by default what Apache Pinot stores in a dimension, for decimals an infinity."""
        is_lowest = self.null_value is None and self.type is ValueType.INT64
        return Fraction(INT64_MINIMUM) if is_lowest else self.null_value

    def row_bounds(self, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
        """Return the bounds of a row; by default those of what its rows add up to, and 0."""
        return (
            min(low, Fraction(0)) if self.row_lower is None else self.row_lower,
            max(high, Fraction(0)) if self.row_upper is None else self.row_upper,
        )


class SummedSchema(NumberSchema):
    """A column whose values are summed: the bounds of a member's total.

    `rows` is how many rows of a member with a value count in full, in all elements together; None: as many as the
    table's measures say.
    """

    type: Annotated[ValueType, Field(strict=False), AfterValidator(_summable)]
    lower: Bound
    upper: Bound
    rows: Rows | None = None

    @property
    def stated(self) -> dict[str, object]:
        """The bounds that the policy states, by their keys."""
        return {"lower": self.lower, "upper": self.upper, **super().stated}


class RankedSchema(NumberSchema):
    """A column with quantiles: its grid."""

    grid: GridSchema

    @property
    def stated(self) -> dict[str, object]:
        """The bounds that the policy states, by their keys."""
        return {"grid.from": self.grid.start, "grid.to": self.grid.to, **super().stated}


class SummedAndRankedSchema(SummedSchema, RankedSchema):
    """A column whose values are summed, with quantiles as well."""


VALUE_KINDS = {
    (False, False): "summed alone",
    (True, False): "summed alone",
    (False, True): "ranked alone",
    (True, True): "summed and ranked",
}
"""The tags of the three, by whether bounds of totals and a grid are stated; they appear in no file."""


def _kind_of_value(raw: object) -> str:
    keys = raw.keys() if isinstance(raw, dict) else ()
    return VALUE_KINDS["lower" in keys or "upper" in keys, "grid" in keys]


ValueSchema = Annotated[
    Annotated[SummedSchema, Tag("summed alone")]
    | Annotated[RankedSchema, Tag("ranked alone")]
    | Annotated[SummedAndRankedSchema, Tag("summed and ranked")],
    Discriminator(_kind_of_value),
]
"""A column of numbers."""


class ValueColumn(SummedSchema):
    """A column whose values are summed, with what its keys lead to.

    Attributes:
        name: The name of the column.
        bounds: How rows and members' totals are rounded and clamped.
        null_value: What stands for NULL: what an engine without NULL stores, and what such rows count with if they are
            kept. None: the engine stores an infinity or no number.
    """

    name: str
    bounds: ValueBounds


class QuantileColumn(RankedSchema):
    """A column whose quantiles may be asked for, with what its keys lead to.

    Attributes:
        name: The name of the column.
        bounds: How rows and members' values are rounded and clamped; the latter to the grid.
        spec: The public grid that a value is chosen from, in steps of the quantum.
        rows: How many rows of a member count in full.
        null_value: As for a `ValueColumn`.
    """

    name: str
    bounds: ValueBounds
    spec: GridSpec
    rows: int | None

    def cells_of(self, of: MemberValue) -> GridSpec:
        """Return the cells that a value is chosen from: none is beyond what a row can have, but for totals."""
        end, edges = self.bounds.rows.high + 1, Grid.of(self.spec).edges
        cells = bisect_left(edges, end)
        if of is MemberValue.TOTAL or end >= edges[-1] or cells < 2:
            return self.spec
        return replace(self.spec, high=end, cells=cells)
