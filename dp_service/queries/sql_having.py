"""HAVING of a question's SQL: conditions on what was released of an element.

HAVING count|SUM(value)|AVG(value)|alias comparison integer [AND ..], or BETWEEN two integers
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from sqlglot import exp

from dp_service.parameters.release import HavingCondition
from dp_service.queries.errors import QuestionError
from dp_service.queries.sql_nodes import only, strip_parentheses, whole_number
from dp_service.terms import Comparison

_COMPARISONS: dict[type, Comparison] = {
    exp.EQ: Comparison.EQUAL,
    exp.NEQ: Comparison.NOT_EQUAL,
    exp.LT: Comparison.LESS,
    exp.LTE: Comparison.AT_MOST,
    exp.GT: Comparison.GREATER,
    exp.GTE: Comparison.AT_LEAST,
}
_EXPECTED = (
    "expected HAVING with the count, or a sum or an average that is selected, compared with whole numbers by =, <>, <, "
    "<=, >, >= or BETWEEN, joined by AND"
)

Named = Callable[[exp.Expr], int | None]
"""Returns the place of the sum or average that a node names, None for the count."""


def parse_having(root: exp.Expr, named: Named) -> Iterator[HavingCondition]:
    """Yield the conditions of a HAVING clause.

    Args:
        root: The clause's condition.
        named: What a node names; it raises QuestionError for what is not selected.

    Raises:
        QuestionError: A condition is not accepted.
    """
    # A stack rather than recursion: a conjunction of a thousand conditions is a tree a thousand deep.
    waiting = [root]
    while waiting:
        node = strip_parentheses(waiting.pop())
        if isinstance(node, exp.And):
            only(node, "this", "expression")
            waiting += [node.expression, node.this]
        elif isinstance(node, exp.Between):
            only(node, "this", "low", "high")
            place = named(strip_parentheses(node.this))
            yield HavingCondition(place, Comparison.AT_LEAST, _number(node.args["low"]))
            yield HavingCondition(place, Comparison.AT_MOST, _number(node.args["high"]))
        elif type(node) in _COMPARISONS:
            only(node, "this", "expression")
            place = named(strip_parentheses(node.this))
            yield HavingCondition(place, _COMPARISONS[type(node)], _number(node.expression))
        else:
            raise QuestionError("sql", _EXPECTED)


def _number(node: exp.Expr) -> Fraction:
    stripped, sign = strip_parentheses(node), 1
    if isinstance(stripped, exp.Neg):
        only(stripped, "this")
        stripped, sign = stripped.this, -1
    number = whole_number(stripped)
    if number is None:
        raise QuestionError("sql", _EXPECTED)
    return Fraction(sign * number)
