"""The block `quantiles` of a table: the columns whose quantiles may be asked for, each with its public grid.

All numbers are public and come from the policy, never from the data. What engines compute has to be exact on every one
of them, also on those that compute in doubles: members' totals and means by the largest number of rows, and the cell of
a value by the grid itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from dp_service.queries.columns import Nulls
from dp_service.queries.policy_date_grids import date_column, is_of_dates
from dp_service.queries.policy_faults import Fault
from dp_service.queries.policy_schema import PolicySchema
from dp_service.queries.policy_values import LARGEST_BOUND, null_value
from dp_service.queries.tables import Policy, Table
from dp_service.queries.value_columns import GridSchema, QuantileColumn, QuantileSchema
from dp_service.terms import ColumnType, GridScale, GridSpec, ValueType
from dp_service.values.bounds import SUMS_IN_DOUBLES, Clamp, ValueBounds
from dp_service.values.cells import Grid
from dp_service.values.quantum import Quantum
from gris_serving.yaml_texts import KeyPath

MAXIMUM_LISTED_CELLS = 2_000
"""The most cells of a geometric grid: a query lists its edges, and has to fit into a message."""

_Found = Iterator[tuple[str, str]]


def quantile_columns(
    schemas: Mapping[str, QuantileSchema], path: KeyPath, fault: Fault
) -> tuple[QuantileColumn, ...]:
    """Return the columns with quantiles, by name, without those that have a fault, which is reported."""
    found = (_column(name, schema, (*path, name), fault) for name, schema in sorted(schemas.items()))
    return tuple(column for column in found if column is not None)


def _column(name: str, schema: QuantileSchema, path: KeyPath, fault: Fault) -> QuantileColumn | None:
    if is_of_dates(schema):
        return date_column(name, schema, path, fault)
    try:
        quantum = Quantum(schema.quantum)
    except ValueError as error:
        fault((*path, "quantum"), str(error))
        return None
    found = [
        *_of_keys(schema.grid),
        *([] if (ends := _ends(schema)) is None else _of_numbers(schema, quantum, ends)),
    ]
    for key, message in found:
        fault((*path, *key.split(".")), message)
    if found or ends is None:
        return None
    spec = _spec(schema, quantum, ends)
    problem = next(_of_grid(spec), None)
    if problem is not None:
        fault((*path, "grid"), problem)
        return None
    row_lower, row_upper = _row_bounds(schema, ends)
    rows = Clamp(quantum.exact_steps(row_lower), quantum.exact_steps(row_upper))
    edges = Grid.of(spec).edges
    bounds = ValueBounds(quantum, rows, Clamp(edges[0], edges[-1] - 1))
    return schema.resolved(QuantileColumn, name=name, bounds=bounds, spec=spec, null_value=null_value(schema))


def _ends(schema: QuantileSchema) -> tuple[Fraction, Fraction] | None:
    start, to = schema.grid.start, schema.grid.to
    return (start, to) if isinstance(start, Fraction) and isinstance(to, Fraction) else None


def _of_keys(grid: GridSchema) -> _Found:
    """Yield keys of a grid of dates, and such as it does not need."""
    for key, end in {"grid.from": grid.start, "grid.to": grid.to}.items():
        if not isinstance(end, Fraction):
            yield key, "expected a number: days are for a column of type date, with a grid of dates"
    if grid.step is not None:
        yield "grid.step", "expected none: only a grid of dates has it"
    if grid.cells is None:
        yield "grid.cells", "expected the number of cells"


def _spec(schema: QuantileSchema, quantum: Quantum, ends: tuple[Fraction, Fraction]) -> GridSpec:
    low, high = map(quantum.exact_steps, ends)
    return GridSpec(schema.grid.scale, low, high, schema.grid.cells or 0)


def _row_bounds(schema: QuantileSchema, ends: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """Return the bounds of a row; by default those of the grid, and 0 as well, for rows are added up to totals."""
    lower, upper = min(ends[0], Fraction(0)), max(ends[1], Fraction(0))
    return (
        lower if schema.row_lower is None else schema.row_lower,
        upper if schema.row_upper is None else schema.row_upper,
    )


def _of_numbers(schema: QuantileSchema, quantum: Quantum, ends: tuple[Fraction, Fraction]) -> _Found:
    """Yield what is wrong with a column's quantum, grid and bounds."""
    if schema.type is ValueType.INT64 and quantum.size.denominator != 1:
        yield "quantum", "expected a whole number for an int64 column"
    stated = {
        "grid.from": ends[0],
        "grid.to": ends[1],
        "row_lower": schema.row_lower,
        "row_upper": schema.row_upper,
        "null_value": schema.null_value,
    }
    for key, bound in stated.items():
        if bound is None:
            continue
        if (bound / quantum.size).denominator != 1:
            yield key, "expected a multiple of the quantum"
        elif max(abs(bound), abs(bound / quantum.size)) > LARGEST_BOUND:
            yield key, "expected a number, and a number of quanta, from -2^50 to 2^50"
    if ends[0] >= ends[1]:
        yield "grid.to", "expected more than from"
    row_lower, row_upper = _row_bounds(schema, ends)
    if row_lower >= row_upper:
        yield "row_upper", "expected more than row_lower"
    if schema.nulls is Nulls.KEEP and schema.null_value is None:
        yield "null_value", "expected the number that stands for NULL, since NULLs are kept"


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


def check_quantiles(policy: Policy, schema: PolicySchema, fault: Fault) -> None:
    """Report what the blocks `quantiles` have wrong beside the rest of their tables."""
    for table in policy.tables:
        path: KeyPath = ("tables", table.name)
        if not schema.tables[table.name].quantiles:
            continue
        if not table.measures.distinct_members:
            fault(
                (*path, "measures", "distinct_members"),
                "expected true: quantiles are of the rows of members, or of one value for each",
            )
        for column in table.quantiles:
            for message in _of_column(column, table):
                fault((*path, "quantiles", column.name), message)


def _of_column(column: QuantileColumn, table: Table) -> Iterator[str]:
    if column.name == table.member:
        yield "expected a column other than the member column"
    sums, rows = None if table.contributions is None else table.contributions.sums, column.bounds.rows
    # Of a mean, twice the sum and the number of rows are added.
    most = 0 if sums is None or column.type is ValueType.DATE else sums.max_rows
    if most * (2 * max(abs(rows.low), abs(rows.high)) + 1) >= SUMS_IN_DOUBLES:
        yield (
            "expected a coarser quantum, narrower bounds of rows or a smaller max_rows in contributions.sums: a "
            "member's total could reach 2^53 quanta, beyond which an engine that sums in doubles is not exact"
        )
    listed = next((each for each in table.columns if each.name == column.name), None)
    if listed is not None and column.type is ValueType.DATE:
        if listed.type is not ColumnType.DATE:
            yield (
                f"expected the type that the table's columns give, {listed.type}, since the column is listed there "
                "too"
            )
    elif listed is not None and (
        listed.type is not ColumnType.INT64
        or column.type is not ValueType.INT64
        or listed.null_value != column.null_value
    ):
        yield (
            "expected the type, int64, and the null_value that the table's columns give, "
            "since the column is listed there too"
        )
    summed = next((each for each in table.values if each.name == column.name), None)
    if summed is not None and (summed.type, summed.null_value) != (column.type, column.null_value):
        yield "expected the type and the null_value that the table's values give, since the column is listed there too"
