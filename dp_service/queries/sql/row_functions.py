"""Functions that a question may group by: buckets and parts of time, CASE, and those of a member's rows.

DATE_TRUNC('month', time)                                    buckets of time
EXTRACT(HOUR FROM time), DATE_PART('hour', time), HOUR(time) a part of the time
CASE WHEN condition THEN value .. [ELSE value] END           the value beside the first condition that holds
condition                                                    TRUE where it holds, FALSE where its opposite does
CASE column WHEN value THEN value .. END                     the same, of comparisons
WIDTH_BUCKET(column, low, high, n)                           bins of equal width, 0 below them and n + 1 above
"""

from __future__ import annotations

from typing import NoReturn

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.dimensions import Cases, Dimension, Extracted, FirstSeen, Truncated
from dp_service.queries.filters import Bound, Filter, Range, Value, fault_of, opposite
from dp_service.queries.sql import tree
from dp_service.queries.sql.conditions import condition_of
from dp_service.queries.sql.member_functions import first_of, is_member_function, member_function
from dp_service.queries.sql.places import placed, refuse, refused
from dp_service.queries.sql.scope import Scope, integer, refused_node
from dp_service.queries.sql.words import EXTRACTIONS, PARTS, TRUNCATIONS, TWO_READINGS, is_word_of_sql
from dp_service.queries.time_parts import TimePart
from dp_service.terms import ColumnType

_BUCKET_FORM = f"DATE_TRUNC('{BucketLength.MONTH}', column)"
_BUCKET_LENGTHS = ", ".join(f"'{length}'" for length in BucketLength)
_PART_FORM = "EXTRACT(HOUR FROM column)"
_PARTS = ", ".join(part.in_sql for part in TimePart)
_WIDTH_BUCKET = "WIDTH_BUCKET"
_MOST_BINS = 98
_CONDITIONS = (
    tree.Compared | tree.Listed | tree.Between | tree.Like | tree.IsNull | tree.Not | tree.All | tree.Any
)


def is_function(node: tree.Expression) -> bool:
    """Return whether a node is a function that can be grouped by."""
    node = _uncast(node)
    if isinstance(node, tree.Case | _CONDITIONS):
        return True
    return isinstance(node, tree.Call) and (
        node.name in TRUNCATIONS
        or node.name in EXTRACTIONS
        or node.name in PARTS
        or node.name == _WIDTH_BUCKET
        or is_member_function(node)
    )


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
    node = _uncast(node)
    if isinstance(node, tree.Case | _CONDITIONS):
        return _cases(node, scope) if isinstance(node, tree.Case) else _truth(node, scope)
    if not isinstance(node, tree.Call):
        raise AssertionError("a function is a call or a CASE")
    if is_member_function(node):
        return member_function(node, scope)
    return _bins(node, scope) if node.name == _WIDTH_BUCKET else _of_time(node, scope)


def _of_time(node: tree.Call, scope: Scope) -> Dimension:
    if node.name not in TRUNCATIONS:
        part, column = _extracted(node)
        return Extracted(scope.column_name(column), part)
    length, column = _truncated(node)
    first = first_of(column)
    return (
        Truncated(scope.column_name(column), length)
        if first is None
        else FirstSeen(scope.column_name(first), length)
    )


def column_of(node: tree.Expression) -> tree.Expression:
    """Return the column that a node selects, or of which it selects a function of time; another node as it is."""
    inner = _uncast(node)
    if not isinstance(inner, tree.Call) or not is_function(inner):
        return node
    if inner.name == _WIDTH_BUCKET or is_member_function(inner):
        return node
    return _truncated(inner)[1] if inner.name in TRUNCATIONS else _extracted(inner)[1]


def _uncast(node: tree.Expression) -> tree.Expression:
    """Return the bucket that is cast to a day or a timestamp: its first moment names it. Others are no times."""
    inner = node
    while isinstance(inner, tree.Cast) and inner.to != "DOUBLE":
        inner = inner.value
    return inner if isinstance(inner, tree.Call) and inner.name in TRUNCATIONS else node


def _truncated(node: tree.Call) -> tuple[BucketLength, tree.Expression]:
    if len(node.arguments) != len(("length", "column")) or node.distinct or node.within is not None:
        refuse(
            node,
            f"DATE_TRUNC other than {_BUCKET_FORM} is not accepted: the policy says which zone's calendar it is",
        )
    unit, column = node.arguments
    if not isinstance(unit, tree.Text):
        refuse(unit, "expected DATE_TRUNC with its length in single quotes")
    for length in BucketLength:
        if unit.value.upper() == length.upper():
            return length, _without_cast(column)
    raise refused(
        unit,
        f"{_word(unit.value, 'another length')} is not offered: expected one of {_BUCKET_LENGTHS} in {_BUCKET_FORM}",
    )


def _extracted(node: tree.Call) -> tuple[TimePart, tree.Expression]:
    is_named = node.name in PARTS
    if len(node.arguments) != (1 if is_named else 2) or node.distinct or node.within is not None:
        refuse(
            node,
            f"{node.name} other than {_PART_FORM} is not accepted: the policy says which zone's calendar it is",
        )
    column = node.arguments[-1]
    if is_named:
        return PARTS[node.name], _without_cast(column)
    unit = node.arguments[0]
    if not isinstance(unit, tree.Text):
        refuse(unit, f"expected {node.name} with its part in single quotes")
    name = unit.value.upper()
    if name in TWO_READINGS:
        refuse(unit, TWO_READINGS[name])
    if name not in PARTS:
        _refuse_part(unit)
    return PARTS[name], _without_cast(column)


def _refuse_part(unit: tree.Text) -> NoReturn:
    if unit.value.upper() == "YEAR":
        refuse(unit, "a year by itself is not offered: write DATE_TRUNC('year', column)")
    refuse(
        unit, f"{_word(unit.value, 'another part')} is not offered: expected one of {_PARTS} in {_PART_FORM}"
    )


def _word(text: str, instead: str) -> str:
    return text.upper() if is_word_of_sql(text) else instead


def _without_cast(node: tree.Expression) -> tree.Expression:
    return node.value if isinstance(node, tree.Cast) else node


def _cases(node: tree.Case, scope: Scope) -> Cases:
    branches: list[tuple[Filter, Value]] = []
    otherwise = None if node.otherwise is None else _answer(node.otherwise)
    for when, then in zip(node.conditions, node.values, strict=True):
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
