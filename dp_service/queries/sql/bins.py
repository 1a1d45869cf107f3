"""Bins of a number: WIDTH_BUCKET, and FLOOR of what a column is divided by.

WIDTH_BUCKET(column, low, high, n)   n bins of equal width, 0 below them and n + 1 above
FLOOR(column / 10) * 10              bins by their lower ends, FLOOR(column / 10) by their place

The bins of FLOOR follow from the bounds of a value column, or from the listed values of another one. Beyond the bounds
a number is in the first bin or in the last.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor

from dp_service.queries.columns import Column
from dp_service.queries.filters import Bound, Filter, In, Range
from dp_service.queries.functions.bins import MAXIMUM_EDGES, Binned
from dp_service.queries.functions.whole_bins import WholeBins
from dp_service.queries.sql import tree
from dp_service.queries.sql.conditions import fraction_of
from dp_service.queries.sql.places import placed, refuse
from dp_service.queries.sql.scope import Scope, integer
from dp_service.queries.sql.words import DIFFERENCES
from dp_service.queries.value_columns import QuantileColumn, ValueColumn
from dp_service.terms import ColumnType

_WIDTH_BUCKET, _FLOOR = "WIDTH_BUCKET", "FLOOR"
_MOST_BINS = 98
_DAYS_BETWEEN = (
    "days between two columns are not accepted in WIDTH_BUCKET: make a column of them, in a view in Pinot or DuckDB, "
    "and write WIDTH_BUCKET(column, low, high, n)"
)
_WITHOUT_ENDS = (
    "FLOOR is of a column with bounds in the policy's values, or of listed integers, so that it is known which bins "
    "there are: write WIDTH_BUCKET(column, low, high, n)"
)


def is_bins(node: tree.Call) -> bool:
    """Return whether a function has bins of a number."""
    return node.name in (_WIDTH_BUCKET, _FLOOR)


def bins_of(node: tree.Call, scope: Scope) -> Binned | WholeBins:
    """Return the bins of a number.

    Raises:
        QuestionError: They are of another column, or too many.
        RefusedByPolicyError: The policy does not list the column.
    """
    with placed(node):
        return _of_width(node, scope) if node.name == _FLOOR else _of_buckets(node, scope)


def _numbers(operand: tree.Expression, scope: Scope) -> ValueColumn | QuantileColumn | None:
    """Return a column of numbers; None: the policy lists it for conditions and groups alone."""
    name = scope.column_name(operand)
    return scope.table.numbers_of(name) if scope.table.has_numbers(name) else None


def _of_buckets(node: tree.Call, scope: Scope) -> Binned | WholeBins:
    if len(node.arguments) != len(("column", "low", "high", "n")) or node.distinct or node.within is not None:
        refuse(node, "expected WIDTH_BUCKET(column, low, high, number of bins)")
    operand, low, high, number = node.arguments
    if not all(isinstance(each, tree.Number) for each in (low, high, number)):
        refuse(node, "expected WIDTH_BUCKET with numbers behind the column")
    first, last = (fraction_of(each) for each in (low, high) if isinstance(each, tree.Number))
    count = integer(number) if isinstance(number, tree.Number) else 0
    if not (first < last and 1 <= count <= _MOST_BINS):
        refuse(node, f"expected WIDTH_BUCKET with low below high and 1 to {_MOST_BINS} bins")
    edges = tuple(first + (last - first) * place / count for place in range(count + 1))
    if isinstance(operand, tree.Call) and operand.name in DIFFERENCES:
        refuse(operand, _DAYS_BETWEEN)
    found = _numbers(operand, scope)
    if found is not None and all(each.name != found.name for each in scope.table.columns):
        return Binned(found.name, edges, tuple(range(len(edges) + 1)))
    column = scope.column(operand)
    if column.type is not ColumnType.INT64:
        refuse(operand, f"{column.name}: expected WIDTH_BUCKET of a column of numbers")
    return _of_integers(column, edges)


def _of_integers(column: Column, edges: tuple[Fraction, ...]) -> WholeBins:
    """Return the bins of whole numbers."""
    # A whole number is below an edge exactly if it is below the edge rounded up.
    whole = [-floor(-edge) for edge in edges]
    below: list[Filter] = [Range(column.name, None, Bound(edge, exclusive=True)) for edge in whole]
    ranges = [*below, Range(column.name, Bound(whole[-1]), None)]
    return WholeBins(column.name, tuple((each, place) for place, each in enumerate(ranges)))


def _of_width(node: tree.Call, scope: Scope) -> Binned | WholeBins:
    operand, width_node, *scaled = node.arguments
    width = fraction_of(width_node) if isinstance(width_node, tree.Number) else Fraction(0)
    if width <= 0:
        refuse(width_node, "expected bins of a width above 0")
    step = width if scaled else Fraction(1)
    if step.denominator != 1:
        refuse(width_node, "expected bins of a whole width, for their lower ends are whole numbers")
    found = _numbers(operand, scope)
    if found is None:
        return _of_listed(scope.column(operand), width, int(step), operand)
    rows, size = found.bounds.rows, found.bounds.quantum.size
    first, last = floor(rows.low * size / width), floor(rows.high * size / width)
    if not 1 <= last - first <= MAXIMUM_EDGES:
        refuse(
            width_node,
            f"{found.name}: expected a width that divides its bounds, {rows.low * size} to {rows.high * size}, into 2 "
            f"to {MAXIMUM_EDGES + 1} bins",
        )
    edges = tuple(place * width for place in range(first + 1, last + 1))
    return Binned(found.name, edges, tuple(place * int(step) for place in range(first, last + 1)))


def _of_listed(column: Column, width: Fraction, step: int, operand: tree.Expression) -> WholeBins:
    """Return the bins of listed integers."""
    if column.type is not ColumnType.INT64 or column.domain is None:
        refuse(operand, f"{column.name}: {_WITHOUT_ENDS}")
    bins: dict[int, list[int]] = {}
    for value in map(int, column.domain):  # type: ignore[arg-type]
        bins.setdefault(floor(value / width) * step, []).append(value)
    if len(bins) > MAXIMUM_EDGES:
        refuse(
            operand,
            f"{column.name}: expected a width that divides its values into at most {MAXIMUM_EDGES} bins",
        )
    return WholeBins(
        column.name, tuple((In(column.name, tuple(values)), label) for label, values in bins.items())
    )
