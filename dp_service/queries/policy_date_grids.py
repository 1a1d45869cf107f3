"""Columns of days with quantiles: a grid of dates has cells of equally many days, between two public days.

A day counts as its number since 1970-01-01, so such a grid is a linear one whose cells are all equally wide: its step
has to divide the days between its ends. Days are whole, and are not added up; a row without a usable one is left out.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from fractions import Fraction

from dp_service.queries.columns import Nulls
from dp_service.queries.elements import days_of
from dp_service.queries.value_columns import GridSchema, QuantileColumn, RankedSchema
from dp_service.terms import GridScale, GridSpec, ValueType
from dp_service.values.bounds import Clamp, ValueBounds
from dp_service.values.cells import MAX_CELLS
from dp_service.values.quantum import Quantum
from gris_serving.yaml_texts import KeyPath

_Found = Iterator[tuple[str, str]]
_NOT_OF_DAYS = ("quantum", "row_lower", "row_upper", "null_value")


def is_of_dates(schema: RankedSchema) -> bool:
    """Return whether a column, or its grid, is said to be of days."""
    return schema.type is ValueType.DATE or schema.grid.scale is GridScale.DATES


def date_column(
    name: str, schema: RankedSchema, path: KeyPath, fault: Callable[[KeyPath, str], None]
) -> QuantileColumn | None:
    """Return a column of days with quantiles; None if it has a fault, which is reported."""
    found = [*_of_column(schema), *_of_grid(schema.grid)]
    for key, message in found:
        fault((*path, *key.split(".")), message)
    spec = None if found else _spec(schema.grid)
    if spec is None:
        return None
    clamp = Clamp(spec.low, spec.high - 1)
    bounds = ValueBounds(Quantum(Fraction(1)), clamp, clamp)
    return schema.resolved(QuantileColumn, name=name, bounds=bounds, spec=spec, rows=schema.grid.rows)


def _of_column(schema: RankedSchema) -> _Found:
    if schema.type is not ValueType.DATE:
        yield "type", "expected date, which a grid of dates is of"
    if schema.grid.scale is not GridScale.DATES:
        yield "grid.scale", "expected dates, since the column is of type date"
    for key in _NOT_OF_DAYS:
        if key in schema.model_fields_set:
            yield key, "expected none: a column of dates has whole days, and leaves out rows without one"
    if schema.nulls is not Nulls.DROP:
        yield "nulls", "expected drop: a column of dates leaves out rows without a day"


def _of_grid(grid: GridSchema) -> _Found:
    ends = {"grid.from": grid.start, "grid.to": grid.to}
    wrong = [key for key, end in ends.items() if not isinstance(end, datetime.date)]
    for key in wrong:
        yield key, "expected a day as YYYY-MM-DD"
    if grid.cells is not None:
        yield "grid.cells", "expected none: step says how many days each cell has"
    if grid.step is None:
        yield "grid.step", "expected how many days each cell has"
    days = _days(grid)
    if days is None or grid.step is None:
        return
    if days < 1:
        yield "grid.to", "expected a day after from"
    elif days % grid.step:
        yield "grid.step", f"expected a number that divides the {days} days between from and to"
    elif not 2 <= days // grid.step <= MAX_CELLS:
        yield "grid.step", f"expected from 2 to {MAX_CELLS} cells, and it makes {days // grid.step}"


def _days(grid: GridSchema) -> int | None:
    if isinstance(grid.start, datetime.date) and isinstance(grid.to, datetime.date):
        return days_of(grid.to) - days_of(grid.start)
    return None


def _spec(grid: GridSchema) -> GridSpec | None:
    days = _days(grid)
    if days is None or grid.step is None or not isinstance(grid.start, datetime.date):
        return None
    low = days_of(grid.start)
    return GridSpec(GridScale.DATES, low, low + days, days // grid.step)
