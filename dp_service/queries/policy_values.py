"""The block `values` of a table: the columns that may be summed or have quantiles, with their quantum and bounds.

All numbers are public and come from the policy, never from the data. What engines add up has to be exact on every one
of them, also on those that sum in doubles; that follows from the largest numbers of members and rows, which
`contributions.sums` states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from dp_service.noise.discrete_gaussian import MAX_VARIANCE
from dp_service.noise.gaussian_price import rho_of_units, variance_for
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.columns import Column, Nulls
from dp_service.queries.policy_date_grids import date_column, is_of_dates
from dp_service.queries.policy_faults import Fault
from dp_service.queries.policy_quantiles import of_totals, quantile_column, row_clamp
from dp_service.queries.policy_schema import PolicySchema
from dp_service.queries.policy_types import COUNT_SHARE, NAMES_SHARE
from dp_service.queries.structured import MAXIMUM_AGGREGATES
from dp_service.queries.table_contributions import Contributions, Sums, grid_of, promised
from dp_service.queries.tables import Policy, Table
from dp_service.queries.value_columns import (
    NumberSchema,
    QuantileColumn,
    RankedSchema,
    SummedSchema,
    ValueColumn,
    ValueSchema,
)
from dp_service.terms import ColumnType, ValueType
from dp_service.values.bounds import SUMS_IN_DOUBLES, Clamp, ValueBounds, require_exact_sums
from dp_service.values.quantum import Quantum
from gris_serving.yaml_texts import KeyPath

LARGEST_BOUND = 2**50
"""Up to here a value, and its number of steps, is rounded in doubles as it is in integers."""

_Found = Iterator[tuple[str, str]]


def total_name(place: int) -> str:
    """Return what a query calls a member's total of the value column in a place, from 0 on."""
    return f"gris_total_{place + 1}"


def sum_name(place: int) -> str:
    """Return what a query calls the centred sum of the value column in a place, from 0 on."""
    return f"gris_sum_{place + 1}"


def used_name(place: int) -> str:
    """Return what a query calls how many of a member's rows have a value that can be used, in a place from 0 on."""
    return f"gris_used_{place + 1}"


def own_count_name(place: int) -> str:
    """Return what a query calls the own count of a value column: the place-th of those that have one, from 0 on."""
    return f"gris_own_count_{place + 1}"


def number_columns(
    schemas: Mapping[str, ValueSchema], path: KeyPath, fault: Fault
) -> tuple[tuple[ValueColumn, ...], tuple[QuantileColumn, ...]]:
    """Return the columns that may be summed, and those with quantiles, without those that have a fault.

    A fault is reported. `path` is that of the table's block.
    """
    summed, ranked = [], []
    for name, schema in sorted(schemas.items()):
        at = (*path, name)
        if isinstance(schema, RankedSchema) and is_of_dates(schema):
            ranked.append(date_column(name, schema, at, fault))
            continue
        quantum = _quantum(schema, at, fault)
        if quantum is not None and isinstance(schema, SummedSchema):
            summed.append(_value_column(name, schema, quantum, at, fault))
        if quantum is not None and isinstance(schema, RankedSchema):
            ranked.append(quantile_column(name, schema, quantum, at, fault))
    return tuple(filter(None, summed)), tuple(filter(None, ranked))


def _quantum(schema: NumberSchema, path: KeyPath, fault: Fault) -> Quantum | None:
    """Return a column's quantum; None: it, or a bound, has a fault, which is reported."""
    try:
        quantum = Quantum(schema.quantum)
    except ValueError as error:
        fault((*path, "quantum"), str(error))
        return None
    found = list(_of_numbers(schema, quantum))
    for key, message in found:
        fault((*path, *key.split(".")), message)
    return None if found else quantum


def _of_numbers(schema: NumberSchema, quantum: Quantum) -> _Found:
    """Yield what is wrong with a column's quantum and the numbers that it states."""
    if schema.type is ValueType.DECIMAL and "quantum" not in schema.model_fields_set:
        yield "quantum", "expected the step of the column's values, such as 0.01: each value is rounded to it"
    if schema.type is ValueType.INT64 and quantum.size.denominator != 1:
        yield "quantum", "expected a whole number for an int64 column"
    for key, bound in schema.stated.items():
        if bound is None:
            continue
        if not isinstance(bound, Fraction):
            yield key, "expected a number: days are for a column of type date, with a grid of dates"
        elif (bound / quantum.size).denominator != 1:
            yield key, f"expected a multiple of the quantum, {_written(quantum.size)}"
        elif max(abs(bound), abs(bound / quantum.size)) > LARGEST_BOUND:
            yield key, "expected a number, and a number of quanta, from -2^50 to 2^50"
    if schema.nulls is Nulls.KEEP and schema.null_value is None:
        yield "null_value", "expected the number that stands for NULL, since NULLs are kept"


def _value_column(
    name: str, schema: SummedSchema, quantum: Quantum, path: KeyPath, fault: Fault
) -> ValueColumn | None:
    if schema.lower >= schema.upper:
        fault(
            (*path, "upper"), "expected more than lower: between them lies what one member can add to a sum"
        )
        return None
    rows = row_clamp(schema, quantum, (schema.lower, schema.upper), path, fault)
    if rows is None:
        return None
    totals = Clamp(quantum.exact_steps(schema.lower), quantum.exact_steps(schema.upper))
    bounds = ValueBounds(quantum, rows, totals)
    return schema.resolved(ValueColumn, name=name, bounds=bounds, null_value=schema.null_number)


def _written(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else f"{float(number):g}"


def check_values(policy: Policy, schema: PolicySchema, fault: Fault) -> None:
    """Report what the blocks `values` have wrong beside the rest of their tables."""
    for table in policy.tables:
        path: KeyPath = ("tables", table.name)
        stated = schema.tables[table.name].values
        for key, message in _of_table(table, [*stated.values()]):
            fault((*path, *key.split(".")), message)
        for name in stated:
            for message in _of_names(name, table):
                fault((*path, "values", name), message)
        for ranked in table.quantiles:
            for message in of_totals(ranked, table):
                fault((*path, "values", ranked.name), message)
        bounded = table.contributions
        if bounded is None or bounded.sums is None:
            continue
        for column in table.values:
            at: KeyPath = (*path, "values", column.name)
            for message in _of_exactness(column, table, bounded.sums):
                fault(at, message)
            for key, message in _of_noise(column, policy, table, bounded):
                fault((*at, key), message)


def _of_names(name: str, table: Table) -> Iterator[str]:
    """Yield what is wrong with a column that the table's columns list as well."""
    if name == table.member:
        yield "expected a column other than the member column"
    listed = next((each for each in table.columns if each.name == name), None)
    column = next((each for each in table.numbers if each.name == name), None)
    if listed is None or column is None:
        return
    if ValueType.DATE is column.type and listed.type is not ColumnType.DATE:
        yield f"expected the type that the table's columns give, {listed.type}, since the column is listed there too"
    elif column.type is not ValueType.DATE and not _agree(listed, column):
        yield (
            "expected the type, int64, and the null_value that the table's columns give, "
            "since the column is listed there too"
        )


def _of_table(table: Table, stated: list[ValueSchema]) -> _Found:
    """Yield what a table with values lacks, or a table without them must not have."""
    bounded = table.contributions
    if not stated:
        if bounded is not None and bounded.sums is not None:
            yield (
                "contributions.sums",
                "expected values as well: the columns that may be summed, or have quantiles",
            )
        return
    if not table.measures.distinct_members:
        yield (
            "measures.distinct_members",
            "expected true: sums and quantiles are released of who can be counted",
        )
    if not any(isinstance(each, SummedSchema) for each in stated):
        return
    if bounded is None:
        yield "values", "expected contributions as well: only what a bounded member adds can be summed"
    elif bounded.sums is None:
        yield (
            "contributions.sums",
            "expected max_members and max_rows, the largest numbers of members and rows of the table: sums must be "
            "exact on every engine",
        )


def _of_exactness(column: ValueColumn, table: Table, sums: Sums) -> Iterator[str]:
    if not all(_is_exact(column.bounds, tau, sums) for tau in (None, *_summed_rows(column, table))):
        yield (
            "expected a coarser quantum, narrower bounds, or smaller numbers in contributions.sums: sums could reach "
            "2^53 quanta, beyond which an engine that sums in doubles is not exact"
        )


def _summed_rows(column: ValueColumn, table: Table) -> tuple[int, ...]:
    """Return how many rows of a member count in an average of a column; empty: averages are of members' totals."""
    if column.rows is not None:
        return (column.rows,)
    return tuple(each.tau for each in table.measures.offered if each.measure is Measure.EVENTS)


def _is_exact(bounds: ValueBounds, rows_of_member: int | None, sums: Sums) -> bool:
    try:
        require_exact_sums(
            bounds,
            members=sums.max_members,
            rows_of_member=rows_of_member,
            rows=sums.max_rows,
            below=SUMS_IN_DOUBLES,
        )
    except ValueError:
        return False
    return True


def _agree(listed: Column, column: ValueColumn | QuantileColumn) -> bool:
    return (
        listed.type is ColumnType.INT64
        and column.type is ValueType.INT64
        and listed.null_value == column.null_value
    )


def _of_noise(column: ValueColumn, policy: Policy, table: Table, bounded: Contributions) -> _Found:
    """Yield that no such noise can be drawn. A prepared copy, which has periods, has no values."""
    if bounded.sums is None:
        return
    rho = rho_of_units(policy.currency.epsilon_per, bounded.allowed_units[0])
    counted = 1 if bounded.longest_list is None else 1 - NAMES_SHARE
    # As many as one question may ask for.
    least = counted * (1 - COUNT_SHARE) / min(len(table.values), MAXIMUM_AGGREGATES)
    # In elements of several columns too large a noise is refused with the question.
    elements = promised(bounded) or table.most_typical
    bounds = column.bounds
    of_rows = table.measures.most_squared(elements) if column.rows is None else max(column.rows**2, elements)
    for key, clamp, moved in (
        ("upper", bounds.totals, elements),
        ("upper", bounds.of_sum(None).totals, elements),
        ("row_upper", bounds.rows.finer, of_rows),
    ):
        width = clamp.width * clamp.grid(grid_of(bounded))
        # A count of its own takes part of an average's share.
        if variance_for(width**2 * moved, rho * least * (1 - clamp.count_share)) > MAX_VARIANCE:
            yield (
                key,
                "expected narrower bounds, fewer rows or more units: the noise is too large to be drawn",
            )
            return
