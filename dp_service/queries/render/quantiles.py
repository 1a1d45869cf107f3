"""Queries for quantiles: how many values are in each cell of a public grid, in each element.

A member has one value in an element, or as many as it has rows there, and no more than `clip`:

    its total: the sum of its steps; the largest of them; their mean, floor((2 sum + n) / (2 n));
    rows: the steps whose hashes with the member and a public salt are the smallest. Equal steps are told apart by their
    number among those that are equal, so that rows are chosen, and not values.

The steps of each row are those of `render.sums`: rounded and clamped before anything else. Days are their number since
1970, in cells of equally many days, which is a linear grid. A value's cell follows from
the grid alone. Of a linear grid with C cells between low and high it is ((v - low + 1) C - 1) / (high - low), rounded
down, which the policy keeps below 2^53, so that it is exact in doubles; of another grid a search among its edges, which
the query lists. Either way there are no more cells in an answer than the grid has, whatever rows hold.
"""

from __future__ import annotations

from dp_service.queries.answer_columns import CELL_COLUMN, COUNT_COLUMN
from dp_service.queries.canonical_query import (
    CanonicalQuery,
    QueryQuantiles,
)
from dp_service.queries.policy_values import total_name
from dp_service.queries.render.dialects import Dialect, identifier
from dp_service.queries.render.sums import row_steps, within_totals
from dp_service.terms import ColumnType, GridScale, GridSpec, MemberValue
from dp_service.values.cells import Grid

STEP_COLUMN = "gris_step"
_COPY_COLUMN, _PLACE_COLUMN = "gris_copy", "gris_place"


def member_value(quantiles: QueryQuantiles, dialect: Dialect) -> str:
    """Write the value of a member from its rows in an element."""
    row = row_steps(quantiles.value, dialect)
    match quantiles.rule:
        case MemberValue.TOTAL:
            return f"SUM({row})"
        case MemberValue.LARGEST:
            return f"MAX({row})"
        case MemberValue.MEAN:
            return f"CAST(FLOOR((2 * CAST(SUM({row}) AS DOUBLE) + COUNT(*)) / CAST(2 * COUNT(*) AS DOUBLE)) AS BIGINT)"
        case MemberValue.ROWS:
            raise AssertionError("rows are chosen before members are grouped")


def chosen_rows(rows: str, query: CanonicalQuery, member_text: str, dialect: Dialect) -> str:
    """Write the rows of each member in each element that their hashes choose.

    Args:
        rows: The query for elements, members and steps of all rows that count.
        query: The question.
        member_text: The member as the text that is hashed.
        dialect: The engine's SQL.
    """
    quantiles = query.quantiles
    if quantiles is None:
        raise AssertionError("only quantiles are of rows")
    names = [identifier(dimension.name, dialect) for dimension in query.dimensions]
    member, step, copy, place = (
        identifier(name, dialect) for name in ("gris_member", STEP_COLUMN, _COPY_COLUMN, _PLACE_COLUMN)
    )
    columns = ", ".join([*names, member, step])
    told_apart = [
        f"SELECT {columns}, ROW_NUMBER() OVER (PARTITION BY {columns} ORDER BY {step}) AS {copy}",
        f"FROM ({rows}) AS {identifier('gris_rows', dialect)}",
    ]
    texts = [member_text, *(dialect.canonical_text(each, ColumnType.INT64) for each in (step, copy))]
    numbered = [
        f"SELECT {columns},",
        f"ROW_NUMBER() OVER (PARTITION BY {', '.join([*names, member])}",
        f"ORDER BY {dialect.order_hash(quantiles.salt, texts)}, {step}, {copy}) AS {place}",
        f"FROM ({' '.join(told_apart)}) AS {identifier('gris_copies', dialect)}",
    ]
    chosen = [
        f"SELECT {', '.join([*names, member])}, {step} AS {identifier(total_name(0), dialect)}",
        f"FROM ({' '.join(numbered)}) AS {identifier('gris_numbered', dialect)}",
        f"WHERE {place} <= {query.clip}",
    ]
    return " ".join(chosen)


def counts_of_cells(source: str, query: CanonicalQuery, condition: str, dialect: Dialect) -> str:
    """Write how many values are in each cell of each element, in the order of `statement`, without its limit.

    Args:
        source: The query for the values of each member in each element.
        query: The question.
        condition: Which of its rows count; empty: all.
        dialect: The engine's SQL.
    """
    quantiles = query.quantiles
    if quantiles is None:
        raise AssertionError("only values of quantiles have cells")
    cell = identifier(CELL_COLUMN, dialect)
    keys = [*(identifier(dimension.name, dialect) for dimension in query.dimensions), cell]
    selected = [*keys[:-1], f"{cell_of(quantiles, dialect)} AS {cell}"]
    of_members = [
        f"SELECT {', '.join(selected)}",
        f"FROM ({source}) AS {identifier('gris_bounded', dialect)}",
        *([f"WHERE {condition}"] if condition else []),
    ]
    clauses = [
        f"SELECT {', '.join(keys)}, COUNT(*) AS {identifier(COUNT_COLUMN, dialect)}",
        f"FROM ({' '.join(of_members)}) AS {identifier('gris_cells', dialect)}",
        f"GROUP BY {', '.join(keys)}",
        f"ORDER BY {', '.join(['COUNT(*) DESC', *(f'{key} ASC' for key in keys)])}",
    ]
    return " ".join(clauses)


def cell_of(quantiles: QueryQuantiles, dialect: Dialect) -> str:
    """Write the cell that a member's value is in; values beyond the grid are in its first or its last cell."""
    value, spec = identifier(total_name(0), dialect), quantiles.grid
    if spec.scale in (GridScale.LINEAR, GridScale.DATES):
        return _linear_cell(within_totals(value, quantiles.value), spec, len(Grid.of(spec)))
    return _searched_cell(value, Grid.of(spec).edges, 0, len(Grid.of(spec)))


def _linear_cell(value: str, spec: GridSpec, cells: int) -> str:
    width = spec.high - spec.low
    if width == cells:
        return f"CAST({value} - ({spec.low}) AS BIGINT)"
    scaled = f"CAST({value} - ({spec.low - 1}) AS DOUBLE) * {cells} - 1"
    return f"CAST(FLOOR(({scaled}) / {width}) AS BIGINT)"


def _searched_cell(value: str, edges: tuple[int, ...], first: int, end: int) -> str:
    """Write a search among the cells from one to before another: as deep as their number has bits."""
    if end - first == 1:
        return str(first)
    middle = (first + end) // 2
    below, above = _searched_cell(value, edges, first, middle), _searched_cell(value, edges, middle, end)
    return f"CASE WHEN {value} < {edges[middle]} THEN {below} ELSE {above} END"
