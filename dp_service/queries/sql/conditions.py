"""WHERE and HAVING: conditions on columns into filters, conditions on numbers into what is shown of a release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from dp_service.parameters.release import HavingCondition
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
from dp_service.queries.sql.literals import value_of
from dp_service.queries.sql.numbers import is_count, measure_of
from dp_service.queries.sql.places import placed, refuse
from dp_service.queries.sql.scope import Scope, refused_node
from dp_service.queries.sql.words import EXTRACTIONS, PARTS
from dp_service.terms import ColumnType, Comparison

_MAXIMUM_DIGITS = 40
_TURNED = {
    Comparison.LESS: Comparison.GREATER,
    Comparison.AT_MOST: Comparison.AT_LEAST,
    Comparison.GREATER: Comparison.LESS,
    Comparison.AT_LEAST: Comparison.AT_MOST,
}
_OPPOSITE = {
    Comparison.EQUAL: Comparison.NOT_EQUAL,
    Comparison.NOT_EQUAL: Comparison.EQUAL,
    Comparison.LESS: Comparison.AT_LEAST,
    Comparison.AT_MOST: Comparison.GREATER,
    Comparison.GREATER: Comparison.AT_MOST,
    Comparison.AT_LEAST: Comparison.LESS,
}
_HAVING = (
    "expected HAVING with the count, or a sum or an average that is selected, compared with numbers by =, <>, <, <=, "
    ">, >= or BETWEEN, joined by AND; conditions on columns are in WHERE"
)


def filters_of(
    root: tree.Expression | None, scope: Scope, grouped: tuple[str, ...]
) -> tuple[Filter, ...] | None:
    """Return the conditions of WHERE, all of which must hold; those that hold of every row say nothing.

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
            return node.comparison.holds(_fraction(left), _fraction(right))
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

    def condition(self, node: tree.Expression) -> Filter | bool:
        """Return what a condition means; True: it holds of every row, False: of none."""
        holds = _holds(node)
        if holds is not None:
            return holds
        match node:
            case tree.All():
                return self._joined(node, AllOf, decides=False)
            case tree.Any():
                return self._joined(node, AnyOf, decides=True)
            case tree.Not():
                found = self.condition(node.condition)
                return (not found) if isinstance(found, bool) else opposite(found)
            case _:
                with placed(node):
                    return self._on_column(node)

    def _joined(
        self, node: tree.All | tree.Any, kind: type[AllOf | AnyOf], *, decides: bool
    ) -> Filter | bool:
        """Return conditions joined by AND or OR, of which one that always holds, or never, may decide."""
        found = [self.condition(each) for each in node.parts]
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

    def _comparison(self, node: tree.Compared) -> Filter:
        left, right, comparison = node.left, node.right, node.comparison
        if isinstance(right, tree.Name) and not isinstance(left, tree.Name):
            left, right, comparison = right, left, _TURNED.get(comparison, comparison)
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
        return Like(column.name, str(value_of(node.pattern, column)), node.folds)

    def _column(self, node: tree.Expression) -> Column:
        """Return the column of a condition, the only side that may have one."""
        if isinstance(node, tree.Call) and (node.name in PARTS or node.name in EXTRACTIONS):
            refuse(
                node,
                f"a condition on {node.name}(..) is not accepted: group by it, or write a range of the column, such as "
                "column >= '2026-01-01' AND column < '2027-01-01'",
            )
        if not isinstance(node, tree.Name):
            refuse(
                node,
                "a condition that does not begin with a column is not accepted: compare each column apart, joined by "
                "AND or OR",
            )
        return self._scope.column(node)


def having_of(
    root: tree.Expression, place_of: Callable[[tree.Expression], int | None]
) -> Iterator[HavingCondition]:
    """Yield the conditions of a HAVING clause.

    Args:
        root: The clause's condition.
        place_of: The place of the sum or average that a node names, None for the count.

    Raises:
        QuestionError: A condition is not accepted.
    """
    for part in tree.conjunction(root):
        node = _without_not(part)
        match node:
            case tree.Not(condition=tree.IsNull(value=number)):
                # What is released has a value.
                place_of(number)
            case tree.Compared(right=tree.Number() as number):
                yield HavingCondition(place_of(node.left), node.comparison, _fraction(number))
            case tree.Compared(left=tree.Number() as number):
                turned = _TURNED.get(node.comparison, node.comparison)
                yield HavingCondition(place_of(node.right), turned, _fraction(number))
            case tree.Between(low=tree.Number() as low, high=tree.Number() as high):
                place = place_of(node.value)
                yield HavingCondition(place, Comparison.AT_LEAST, _fraction(low))
                yield HavingCondition(place, Comparison.AT_MOST, _fraction(high))
            case _:
                refuse(node, _HAVING)


def says_that_rows_are(root: tree.Expression, scope: Scope) -> bool:
    """Return whether a condition is COUNT(..) > 0, which tools write of a total that is shown if there are rows."""
    match root:
        case tree.Compared(
            comparison=sign, left=left, right=tree.Number(text="0" | "1" as text, negative=False)
        ):
            least = {"0": Comparison.GREATER, "1": Comparison.AT_LEAST}[text]
            if isinstance(left, tree.Call) and is_count(left) and sign is least:
                measure_of(left, scope)
                return True
    return False


def _without_not(node: tree.Expression) -> tree.Expression:
    """Return a comparison with its opposite in the place of NOT before it; there is no third truth of a number."""
    if isinstance(node, tree.Not) and isinstance(node.condition, tree.Compared):
        return replace(node.condition, comparison=_OPPOSITE[node.condition.comparison])
    return node


def _fraction(node: tree.Number) -> Fraction:
    if len(node.text) > _MAXIMUM_DIGITS or "e" in node.text.lower():
        refuse(node, "expected a decimal number of at most 40 digits")
    number = Fraction(node.text)
    return -number if node.negative else number
