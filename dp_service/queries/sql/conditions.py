"""WHERE and FILTER: conditions on columns into filters."""

from __future__ import annotations

from fractions import Fraction

from dp_service.queries.columns import Column, Nulls
from dp_service.queries.filters import (
    AllOf,
    AnyOf,
    Bound,
    Filter,
    In,
    IsNull,
    Like,
    NotIn,
    Range,
    opposite,
)
from dp_service.queries.sql import tree
from dp_service.queries.sql.forms import is_part
from dp_service.queries.sql.literals import value_of
from dp_service.queries.sql.places import placed, refuse
from dp_service.queries.sql.scope import Scope, refused_node
from dp_service.queries.sql.text_parts import pattern_text, text_condition
from dp_service.queries.sql.time_functions import between, compared, is_bucket, listed, uncast
from dp_service.terms import ColumnType, Comparison

_MAXIMUM_DIGITS = 40
TURNED = {
    Comparison.LESS: Comparison.GREATER,
    Comparison.AT_MOST: Comparison.AT_LEAST,
    Comparison.GREATER: Comparison.LESS,
    Comparison.AT_LEAST: Comparison.AT_MOST,
}
"""The comparison of two sides that change places."""


def filters_of(
    root: tree.Expression | None, scope: Scope, grouped: tuple[str, ...]
) -> tuple[Filter, ...] | None:
    """Return the conditions of WHERE or FILTER, all of which must hold; those that hold of every row say nothing.

    Args:
        root: The condition; None: there is none.
        scope: The table.
        grouped: The columns that the question groups by, whose NULLs have their own place in the answer, or none.

    Returns:
        The conditions; None: one of them, such as 1 = 0, holds of no row.

    Raises:
        QuestionError: A condition is not accepted.
        RefusedByPolicyError: The policy does not list a column.
    """
    if root is None:
        return ()
    reader = _Filters(scope)
    found = [reader.condition(each) for each in tree.conjunction(root)]
    if any(each is False for each in found):
        return None
    return tuple(
        each for each in found if not isinstance(each, bool) and not _says_nothing(each, scope, grouped)
    )


def condition_of(node: tree.Expression, scope: Scope) -> Filter | bool:
    """Return one condition; True: it holds of every row, False: of none."""
    return _Filters(scope).condition(node)


def _holds(node: tree.Expression) -> bool | None:
    """Return whether a condition holds of every row or of none, whatever it has; None: it depends on the row."""
    match node:
        case tree.Truth():
            return node.value
        case tree.Not():
            inner = _holds(node.condition)
            return None if inner is None else not inner
        case tree.Compared(left=tree.Number() as left, right=tree.Number() as right):
            # Tools write conditions that say nothing, and some that no row meets.
            return node.comparison.holds(fraction_of(left), fraction_of(right))
    return None


def _says_nothing(condition: Filter, scope: Scope, grouped: tuple[str, ...]) -> bool:
    """Return whether a condition is IS NOT NULL on a column that is grouped by, and leaves NULLs out anyway."""
    return (
        isinstance(condition, IsNull)
        and condition.negated
        and condition.column in grouped
        and scope.table.column(condition.column).nulls is Nulls.DROP
    )


class _Filters:
    """Reads the conditions of one question."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def condition(self, node: tree.Expression, *, holds: bool = True) -> Filter | bool:
        """Return what a condition means, or its opposite if it must not hold; True: every row meets it, False: none."""
        of_all = _holds(node)
        if of_all is not None:
            return of_all is holds
        match node:
            case tree.All() | tree.Any():
                # Of what must not hold, one part has to fail where all would have to hold, and all where one would.
                return self._joined(
                    node, AllOf if isinstance(node, tree.All) is holds else AnyOf, holds=holds
                )
            case tree.Not():
                return self.condition(node.condition, holds=not holds)
        with placed(node):
            found = self._of_time(node) or text_condition(node, self._scope) or self._on_column(node)
        return found if holds else opposite(found)

    def _joined(self, node: tree.All | tree.Any, kind: type[AllOf | AnyOf], *, holds: bool) -> Filter | bool:
        """Return conditions joined by AND or OR, of which one that always holds, or never, may decide."""
        found = [self.condition(each, holds=holds) for each in node.parts]
        decides = kind is AnyOf
        parts = tuple(each for each in found if not isinstance(each, bool))
        if decides in [each for each in found if isinstance(each, bool)]:
            return decides
        if not parts:
            return not decides
        return parts[0] if len(parts) == 1 else kind(parts)

    def _on_column(self, node: tree.Expression) -> Filter:
        match node:
            case tree.Listed():
                column = self._column(node.value)
                return In(column.name, tuple(value_of(value, column) for value in node.values))
            case tree.Between():
                column = self._column(node.value)
                low, high = (Bound(value_of(end, column)) for end in (node.low, node.high))
                return Range(column.name, low, high)
            case tree.Compared():
                return self._comparison(node)
            case tree.Name():
                return self._truth(node)
            case tree.Like():
                return self._like(node)
            case tree.IsNull():
                return IsNull(self._column(node.value).name)
        raise refused_node(node)

    def _of_time(self, node: tree.Expression) -> Filter | None:
        """Return what a condition on a function of time means; None: it is on something else."""
        match node:
            case tree.Compared():
                left, right, comparison = _turned(node)
                operand = _function_of_time(left)
                return None if operand is None else compared(operand, comparison, right, self._scope)
            case tree.Listed(value=value):
                operand = _function_of_time(value)
                return None if operand is None else listed(operand, node.values, self._scope)
            case tree.Between(value=value):
                operand = _function_of_time(value)
                return None if operand is None else between(operand, node.low, node.high, self._scope)
        return None

    def _comparison(self, node: tree.Compared) -> Filter:
        left, right, comparison = _turned(node)
        column = self._column(left)
        value = value_of(right, column)
        match comparison:
            case Comparison.EQUAL:
                return In(column.name, (value,))
            case Comparison.NOT_EQUAL:
                return NotIn(column.name, (value,))
            case Comparison.LESS | Comparison.AT_MOST:
                return Range(column.name, None, Bound(value, exclusive=comparison is Comparison.LESS))
            case _:
                return Range(column.name, Bound(value, exclusive=comparison is Comparison.GREATER), None)

    def _truth(self, node: tree.Name) -> In:
        column = self._column(node)
        if column.type is not ColumnType.BOOL:
            refuse(
                node,
                "a column alone is a condition only if its values are TRUE and FALSE: compare it with a value",
            )
        return In(column.name, (True,))

    def _like(self, node: tree.Like) -> Like:
        column = self._column(node.value)
        if column.type is not ColumnType.STRING:
            refuse(node, f"{column.name}: expected LIKE on a column of texts alone")
        return Like(column.name, pattern_text(node, str(value_of(node.pattern, column))), node.folds)

    def _column(self, node: tree.Expression) -> Column:
        """Return the column of a condition, the only side that may have one."""
        if isinstance(node, tree.Case):
            raise refused_node(node)
        if not isinstance(node, tree.Name):
            refuse(
                node,
                "a condition that does not begin with a column is not accepted: compare each column apart, joined by "
                "AND or OR",
            )
        return self._scope.column(node)


def _turned(node: tree.Compared) -> tuple[tree.Expression, tree.Expression, Comparison]:
    """Return what is compared, with what, and how: the side that may have a column comes first."""
    if _is_compared(node.right) and not _is_compared(node.left):
        return node.right, node.left, TURNED.get(node.comparison, node.comparison)
    return node.left, node.right, node.comparison


def _is_compared(node: tree.Expression) -> bool:
    return isinstance(node, tree.Name) or _function_of_time(node) is not None


def _function_of_time(node: tree.Expression) -> tree.Call | None:
    inner = uncast(node)
    return inner if isinstance(inner, tree.Call) and (is_bucket(inner) or is_part(inner)) else None


def fraction_of(node: tree.Number) -> Fraction:
    """Return the number that is written.

    Raises:
        QuestionError: It has more than 40 digits, or is beyond 10^-40 to 10^40.
    """
    exponent = node.text.lower().partition("e")[2]
    if len(node.text) > _MAXIMUM_DIGITS or abs(int(exponent or 0)) > _MAXIMUM_DIGITS:
        refuse(node, "expected a decimal number of at most 40 digits")
    number = Fraction(node.text)
    return -number if node.negative else number
