"""Functions of one row that a question may group by: buckets and parts of time, and CASE.

DATE_TRUNC('month', time)                                    buckets of time
EXTRACT(HOUR FROM time), DATE_PART('hour', time), HOUR(time) a part of the time
CASE WHEN condition THEN value .. [ELSE value] END           the value beside the first condition that holds
condition                                                    TRUE where it holds, FALSE where its opposite does
CASE column WHEN value THEN value .. END                     the same, of comparisons
WIDTH_BUCKET(column, low, high, n)                           bins of equal width, 0 below them and n + 1 above
"""

from __future__ import annotations

from dp_service.queries.dimensions import Cases, Dimension, Extracted, Truncated
from dp_service.queries.filters import Bound, Filter, Range, Value, fault_of, opposite
from dp_service.queries.sql import tree
from dp_service.queries.sql.conditions import condition_of
from dp_service.queries.sql.places import placed, refuse
from dp_service.queries.sql.scope import Scope, integer, refused_node
from dp_service.queries.sql.time_functions import extracted, is_bucket, is_part, truncated, uncast
from dp_service.terms import ColumnType

_WIDTH_BUCKET = "WIDTH_BUCKET"
_MOST_BINS = 98
_CONDITIONS = (
    tree.Compared | tree.Listed | tree.Between | tree.Like | tree.IsNull | tree.Not | tree.All | tree.Any
)


def is_function(node: tree.Expression) -> bool:
    """Return whether a node is a function of one row that can be grouped by."""
    node = uncast(node)
    if isinstance(node, tree.Case | _CONDITIONS) or is_bucket(node) or is_part(node):
        return True
    return isinstance(node, tree.Call) and node.name == _WIDTH_BUCKET


def dimension_of(node: tree.Expression, scope: Scope) -> Dimension:
    """Return what a node groups by: a column, or a function of a row.

    Raises:
        QuestionError: It is something else.
        RefusedByPolicyError: The policy does not list a column.
    """
    if not is_function(node):
        if not isinstance(node, tree.Name):
            raise refused_node(node)
        return scope.column_name(node)
    node = uncast(node)
    if isinstance(node, tree.Case):
        return _cases(node, scope)
    if isinstance(node, _CONDITIONS):
        return _truth(node, scope)
    if not isinstance(node, tree.Call):
        raise AssertionError("a function is a call or a CASE")
    if node.name == _WIDTH_BUCKET:
        return _bins(node, scope)
    if is_bucket(node):
        length, column = truncated(node)
        return Truncated(scope.column_name(column), length)
    part, column = extracted(node)
    return Extracted(scope.column_name(column), part)


def column_of(node: tree.Expression) -> tree.Expression:
    """Return the column that a node selects, or of which it selects a function of time; another node as it is."""
    inner = uncast(node)
    if isinstance(inner, tree.Call) and is_bucket(inner):
        return truncated(inner)[1]
    return extracted(inner)[1] if isinstance(inner, tree.Call) and is_part(inner) else node


def _cases(node: tree.Case, scope: Scope) -> Cases:
    branches: list[tuple[Filter, Value]] = []
    conditions, values, rest = node.conditions, node.values, node.otherwise
    # What follows ELSE may be the next question of the same kind, as IF writes it.
    while isinstance(rest, tree.Case):
        conditions, values, rest = conditions + rest.conditions, values + rest.values, rest.otherwise
    otherwise = None if rest is None else _answer(rest)
    for when, then in zip(conditions, values, strict=True):
        found = condition_of(when, scope)
        if isinstance(found, bool):
            refuse(when, "a condition in CASE that every row meets, or none, is not accepted: leave it out")
        value = _answer(then)
        if value is None:
            refuse(
                then,
                "NULL behind THEN is not accepted: without ELSE, rows that meet no condition are left out",
            )
        branches.append((found, value))
    with placed(node):
        return Cases(tuple(branches), otherwise)


def _truth(node: tree.Expression, scope: Scope) -> Cases:
    """Return a condition as what is grouped by: rows for which it is neither true nor false are left out."""
    found = condition_of(node, scope)
    if isinstance(found, bool):
        refuse(node, "a condition that every row meets, or none, is not accepted here: leave it out")
    with placed(node):
        return Cases(((found, True), (opposite(found), False)), None)


def _answer(node: tree.Expression) -> Value | None:
    """Return the literal that a CASE answers with; None: NULL."""
    match node:
        case tree.Text(value=text, kind=""):
            found: Value | None = text
        case tree.Truth(value=truth):
            found = truth
        case tree.Number():
            found = integer(node)
        case tree.Null():
            return None
        case _:
            refuse(node, "expected a text in single quotes, an integer, TRUE or FALSE behind THEN and ELSE")
    if fault := fault_of(found):
        refuse(node, fault)
    return found


def _bins(node: tree.Call, scope: Scope) -> Cases:
    """Return the bins of WIDTH_BUCKET: 0 below the first, then 1 to n, and n + 1 from the end on."""
    if len(node.arguments) != len(("column", "low", "high", "n")) or node.distinct or node.within is not None:
        refuse(node, "expected WIDTH_BUCKET(column, low, high, number of bins)")
    operand, *numbers = node.arguments
    if not all(isinstance(each, tree.Number) for each in numbers):
        refuse(node, "expected WIDTH_BUCKET with whole numbers behind the column")
    low, high, count = (integer(each) for each in numbers if isinstance(each, tree.Number))
    column = scope.column(operand)
    if column.type is not ColumnType.INT64:
        refuse(operand, f"{column.name}: expected WIDTH_BUCKET of a column of integers")
    if not (low < high and 1 <= count <= _MOST_BINS):
        refuse(node, f"expected WIDTH_BUCKET with low below high and 1 to {_MOST_BINS} bins")
    # A whole number is below an edge exactly if it is below the edge rounded up.
    edges = [low + -(-(high - low) * place // count) for place in range(count + 1)]
    # Without ELSE: a row without a number is in no bin.
    below = [Range(column.name, None, Bound(edge, exclusive=True)) for edge in edges]
    ranges = [*below, Range(column.name, Bound(edges[-1]), None)]
    with placed(node):
        return Cases(tuple((each, place) for place, each in enumerate(ranges)), None)
