"""Functions of time: which bucket or part they name, and what a comparison of them means of the column.

A comparison of a bucket, which its first day names, is a range of the column: from where a day of the policy's zone
begins to where another one does. A comparison of a part is the numbers of the part that meet it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction
from typing import NoReturn

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.columns import Column
from dp_service.queries.filters import AllOf, AnyOf, Bound, Filter, InPart, Range, Value, opposite
from dp_service.queries.sql import tree
from dp_service.queries.sql.literals import day_of
from dp_service.queries.sql.places import refuse, refused
from dp_service.queries.sql.scope import Scope, integer
from dp_service.queries.sql.words import PARTS, TRUNCATIONS, TWO_READINGS, is_word_of_sql
from dp_service.queries.time_parts import TimePart
from dp_service.terms import ColumnType, Comparison

_BUCKET_FORM = f"DATE_TRUNC('{BucketLength.MONTH}', column)"
_BUCKET_LENGTHS = ", ".join(f"'{length}'" for length in BucketLength)
_PART_FORM = "EXTRACT(HOUR FROM column)"
_PARTS = ", ".join(part.in_sql for part in TimePart)
_TIMES = (ColumnType.DATE, ColumnType.TIMESTAMP)


def is_bucket(node: tree.Expression) -> bool:
    """Return whether a node divides times into buckets."""
    return isinstance(node, tree.Call) and node.name in TRUNCATIONS


def uncast(node: tree.Expression) -> tree.Expression:
    """Return the bucket that is cast to a day or a timestamp: its first moment names it."""
    inner = node
    while isinstance(inner, tree.Cast):
        inner = inner.value
    return inner if isinstance(inner, tree.Call) and inner.name in TRUNCATIONS else node


def truncated(node: tree.Call) -> tuple[BucketLength, tree.Expression]:
    """Return the length of buckets, and what they are of.

    Raises:
        QuestionError: It is no length, or another form of the function.
    """
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


def extracted(node: tree.Call) -> tuple[TimePart, tree.Expression]:
    """Return the part of a time, and what it is of.

    Raises:
        QuestionError: It is no part, or one that databases count in different ways.
    """
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
        refuse(
            unit,
            "EXTRACT of a year by itself is not offered: write DATE_TRUNC('year', column) to group, or column >= "
            "'2026-01-01' AND column < '2027-01-01' to filter",
        )
    refuse(
        unit, f"{_word(unit.value, 'another part')} is not offered: expected one of {_PARTS} in {_PART_FORM}"
    )


def _word(text: str, instead: str) -> str:
    return text.upper() if is_word_of_sql(text) else instead


def _without_cast(node: tree.Expression) -> tree.Expression:
    return node.value if isinstance(node, tree.Cast) else node


def compared(operand: tree.Call, comparison: Comparison, value: tree.Expression, scope: Scope) -> Filter:
    """Return what a comparison of a function of time means of the column.

    Raises:
        QuestionError: It is compared with something else than a day, or a whole number that the part can be.
        RefusedByPolicyError: The policy does not list the column.
    """
    if is_bucket(operand):
        return _of_bucket(operand, comparison, value, scope)
    part, node = extracted(operand)
    if not isinstance(value, tree.Number):
        refuse(value, f"expected a whole number beside {operand.name}(..)")
    number = Fraction(integer(value))
    numbers = tuple(each for each in part.values if comparison.holds(Fraction(each), number))
    if not numbers:
        refuse(value, f"expected a number that a time can have: {part.values[0]} to {part.values[-1]}")
    return InPart(scope.column(node).name, part, numbers)


def _of_bucket(operand: tree.Call, comparison: Comparison, value: tree.Expression, scope: Scope) -> Filter:
    length, node = truncated(operand)
    column, day = scope.column(node), day_of(value)
    first = length.first_day(day)
    at = _ends(column, node, scope)
    match comparison:
        case Comparison.EQUAL | Comparison.NOT_EQUAL:
            if first != day:
                refuse(value, f"expected the first day of a {length}: no bucket has another one")
            within = Range(
                column.name, at(first), Bound(at(_after(first, length, value)).value, exclusive=True)
            )
            return within if comparison is Comparison.EQUAL else opposite(within)
        case Comparison.AT_LEAST | Comparison.LESS:
            edge = first if first == day else _after(first, length, value)
        case _:
            edge = _after(first, length, value)
    if comparison in (Comparison.LESS, Comparison.AT_MOST):
        return Range(column.name, None, Bound(at(edge).value, exclusive=True))
    return Range(column.name, at(edge), None)


def _after(first: datetime.date, length: BucketLength, value: tree.Expression) -> datetime.date:
    try:
        return length.day_after(first)
    except OverflowError:
        found = None
    if found is None:
        refuse(value, "expected a bucket that ends before the year 10000")
    return found


def _ends(column: Column, node: tree.Expression, scope: Scope) -> Callable[[datetime.date], Bound]:
    """Return what makes the beginning of a day the end of a range of a column."""
    time = scope.table.time

    def at(day: datetime.date) -> Bound:
        value: Value = day if column.type in _TIMES or time is None else time.first_value_from(day)
        return Bound(value)

    if column.type not in _TIMES and (time is None or time.name != column.name):
        refuse(node, f"{column.name}: expected DATE_TRUNC of a column of days or timestamps")
    return at


def listed(operand: tree.Call, values: tuple[tree.Expression, ...], scope: Scope) -> Filter:
    """Return what IN means of a function of time."""
    return AnyOf(tuple(compared(operand, Comparison.EQUAL, each, scope) for each in values))


def between(operand: tree.Call, low: tree.Expression, high: tree.Expression, scope: Scope) -> Filter:
    """Return what BETWEEN means of a function of time."""
    above = compared(operand, Comparison.AT_LEAST, low, scope)
    return AllOf((above, compared(operand, Comparison.AT_MOST, high, scope)))
