"""Columns of numbers with quantiles, each with its public grid.

All numbers are public and come from the policy, never from the data. What engines compute has to be exact on every one
of them, also on those that compute in doubles: members' totals and means by the largest number of rows, and the cell of
a value by the grid itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dp_service.queries.policy_faults import Fault
from dp_service.queries.tables import Table
from dp_service.queries.value_columns import GridSchema, NumberSchema, QuantileColumn, RankedSchema
from dp_service.terms import GridScale, GridSpec, ValueType
from dp_service.values.bounds import SUMS_IN_DOUBLES, Clamp, ValueBounds
from dp_service.values.cells import Grid
from dp_service.values.quantum import Quantum
from gris_serving.yaml_texts import KeyPath

MAXIMUM_LISTED_CELLS = 2_000
"""The most cells of a geometric grid: a query lists its edges, and has to fit into a message."""

_Found = Iterator[tuple[str, str]]


def quantile_column(
    name: str, schema: RankedSchema, quantum: Quantum, path: KeyPath, fault: Fault
) -> QuantileColumn | None:
    """Return a column of numbers with quantiles; None if its grid has a fault, which is reported."""
    grid, start, to = schema.grid, schema.grid.start, schema.grid.to
    found = list(_of_keys(grid))
    if found or not isinstance(start, Fraction) or not isinstance(to, Fraction):
        for key, message in found:
            fault((*path, "grid", key), message)
        return None
    spec = GridSpec(grid.scale, quantum.exact_steps(start), quantum.exact_steps(to), grid.cells or 0)
    problem = next(_of_grid(spec), None)
    if problem is not None:
        fault((*path, "grid"), problem)
        return None
    rows = row_clamp(schema, quantum, (start, to), path, fault)
    if rows is None:
        return None
    edges = Grid.of(spec).edges
    bounds = ValueBounds(quantum, rows, Clamp(edges[0], edges[-1] - 1))
    return schema.resolved(
        QuantileColumn, name=name, bounds=bounds, spec=spec, rows=grid.rows, null_value=schema.null_number
    )


def row_clamp(
    schema: NumberSchema, quantum: Quantum, ends: tuple[Fraction, Fraction], path: KeyPath, fault: Fault
) -> Clamp | None:
    """Return the clamp of a column's rows, which add up to what is between two ends; None: a fault is reported."""
    low, high = schema.row_bounds(*ends)
    if low >= high:
        fault((*path, "row_upper"), "expected more than row_lower")
        return None
    return Clamp(quantum.exact_steps(low), quantum.exact_steps(high))


def _of_keys(grid: GridSchema) -> _Found:
    """Yield keys of a grid of dates, and ends that are none."""
    if grid.step is not None:
        yield "step", "expected none: only a grid of dates has it"
    if grid.cells is None:
        yield "cells", "expected the number of cells"
    if isinstance(grid.start, Fraction) and isinstance(grid.to, Fraction) and grid.start >= grid.to:
        yield "to", "expected more than from"


def _of_grid(spec: GridSpec) -> Iterator[str]:
    """Yield that there is no such grid, or that engines could not find the cell of a value exactly."""
    if spec.scale is GridScale.GEOMETRIC and spec.cells > MAXIMUM_LISTED_CELLS:
        yield f"expected at most {MAXIMUM_LISTED_CELLS} cells of a geometric grid: a query lists all of them"
        return
    try:
        size = len(Grid.of(spec))
    except ValueError as error:
        yield str(error)
        return
    if spec.scale is GridScale.LINEAR and (spec.high - spec.low + 1) * size >= SUMS_IN_DOUBLES:
        yield (
            "expected fewer cells, a coarser quantum or a narrower grid: the number of cells times that of quanta "
            "could reach 2^53, beyond which an engine that computes in doubles is not exact"
        )


def of_totals(column: QuantileColumn, table: Table) -> Iterator[str]:
    """Yield that a member's total or mean could be too large to be exact."""
    sums, rows = None if table.contributions is None else table.contributions.sums, column.bounds.rows
    # Of a mean, twice the sum and the number of rows are added.
    most = 0 if sums is None or column.type is ValueType.DATE else sums.max_rows
    if most * (2 * rows.largest + 1) >= SUMS_IN_DOUBLES:
        yield (
            "expected a coarser quantum, narrower bounds of rows or a smaller max_rows in contributions.sums: a "
            "member's total could reach 2^53 quanta, beyond which an engine that sums in doubles is not exact"
        )
