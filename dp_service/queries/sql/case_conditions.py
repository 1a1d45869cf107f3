"""Conditions on CASE, as tools write those on a column that they calculate: the rows whose first condition answers so.

    CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END = 'middle'

are those that meet the second condition, and not the first. A row that meets no condition has what stands behind ELSE,
and NULL without it; so has one without a value, which meets neither a condition nor its opposite. Where those count,
no condition says which they are, so the text is refused, unless all of its columns keep NULL as a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dp_service.queries.columns import Nulls
from dp_service.queries.filters import (
    AllOf,
    AnyOf,
    Filter,
    In,
    IsNull,
    Value,
    column_filters,
    opposite,
    type_of,
)
from dp_service.queries.functions.cases import Cases
from dp_service.queries.sql import tree
from dp_service.queries.sql.cases import answer_of
from dp_service.queries.sql.places import refuse
from dp_service.queries.structured import MAXIMUM_FILTERS
from dp_service.queries.tables import Table
from dp_service.terms import ColumnType, Comparison

_NO_VALUE = (
    "a condition on CASE that rows without a value meet, as they meet ELSE, is not accepted: name the rows of ELSE by "
    "a WHEN of their own, such as WHEN age >= 60 THEN 'old', or compare the columns themselves"
)


@dataclass(frozen=True)
class Wanted:
    """Which answers of a CASE a condition is met by, and whether it is by none, which is NULL."""

    answers: Callable[[Value], bool]
    null: bool = False


def compared_case(node: tree.Expression) -> tree.Case | None:
    """Return the CASE that a condition is on; None: it is on something else."""
    match node:
        case tree.Compared(left=tree.Case() as found) | tree.Compared(right=tree.Case() as found):
            return found
        case tree.Listed(value=tree.Case() as found) | tree.IsNull(value=tree.Case() as found):
            return found
    return None


def wanted_of(node: tree.Expression, cases: Cases, *, holds: bool) -> Wanted:
    """Return by which answers a condition on CASE is met, or its opposite if it must not hold."""
    kind = type_of(cases.values[0])

    def literal(value: tree.Expression) -> Value:
        found = answer_of(value)
        if found is None or type_of(found) is not kind:
            refuse(value, "expected a value of the type of those behind THEN")
        return found

    match node:
        case tree.IsNull():
            return Wanted(lambda _: not holds, null=holds)
        case tree.Listed():
            listed = {literal(each) for each in node.values}
            return Wanted(lambda value: (value in listed) is holds)
        case tree.Compared(comparison=comparison) if not (
            comparison in (Comparison.EQUAL, Comparison.NOT_EQUAL) or kind is ColumnType.INT64
        ):
            refuse(node, "expected = or <> between a CASE and a text or a truth value")
        case tree.Compared(left=tree.Case(), comparison=comparison):
            right = literal(node.right)
            return Wanted(lambda value: _compared(value, comparison, right) is holds)
        case tree.Compared(comparison=comparison):
            left = literal(node.left)
            return Wanted(lambda value: _compared(left, comparison, value) is holds)
    raise AssertionError(node)


def _compared(left: Value, comparison: Comparison, right: Value) -> bool:
    if isinstance(left, int) and isinstance(right, int):
        return comparison.holds(Fraction(left), Fraction(right))
    return (left == right) is (comparison is Comparison.EQUAL)


def case_condition(node: tree.Case, cases: Cases, wanted: Wanted, table: Table) -> Filter | bool:
    """Return the rows whose answer is wanted; True: all of them, False: none.

    Args:
        node: Where the CASE stands.
        cases: The CASE.
        wanted: Which of its answers.
        table: The table, whose columns may drop NULL.

    Raises:
        QuestionError: Rows without a value would be among them, or could be.
    """
    takes = [(condition, wanted.answers(value)) for condition, value in cases.branches]
    rest = wanted.null if cases.otherwise is None else wanted.answers(cases.otherwise)
    if all(taken is rest for _, taken in takes):
        return rest
    dropping = {each.name for each in table.columns if each.nulls is Nulls.DROP}
    terms: list[Filter] = []
    size = 0
    # Where those of ELSE are wanted, the rows that are not: their opposite is met by all others.
    for place, (condition, taken) in enumerate(takes):
        if taken is rest:
            continue
        earlier = [each for each, other in takes[:place] if other is rest]
        unsure = {each.column for one in earlier for each in column_filters(one)} - _with_value(condition)
        if unsure & dropping:
            refuse(node, _NO_VALUE)
        terms.append(_without(condition, earlier))
        # Each CASE within a CASE multiplies its conditions.
        size += sum(1 for _ in column_filters(terms[-1]))
        if size > MAXIMUM_FILTERS:
            refuse(node, f"expected at most {MAXIMUM_FILTERS} conditions, with those that CASE stands for")
    found = AnyOf(tuple(terms))
    if not rest:
        return found
    if {each.column for each in column_filters(found)} & dropping:
        refuse(node, _NO_VALUE)
    return opposite(found)


def _with_value(condition: Filter) -> frozenset[str]:
    """Return the columns that have a value in each row that meets a condition."""
    match condition:
        case AllOf(parts):
            return frozenset.union(*map(_with_value, parts))
        case AnyOf(parts):
            return frozenset.intersection(*map(_with_value, parts))
        case IsNull(negated=False):
            return frozenset()
        case _:
            return frozenset({condition.column})


def _without(condition: Filter, others: list[Filter]) -> Filter:
    """Return a condition of rows that meet none of the others."""
    left = tuple(opposite(each) for each in others if not _are_apart(condition, each))
    return AllOf((condition, *left)) if left else condition


def _are_apart(one: Filter, other: Filter) -> bool:
    """Return whether no row can meet two lists of values of one column."""
    return (
        isinstance(one, In)
        and isinstance(other, In)
        and one.column == other.column
        and set(one.values).isdisjoint(other.values)
    )
