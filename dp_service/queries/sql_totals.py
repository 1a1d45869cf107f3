"""GROUPING SETS: elements of two columns, and totals by one of them.

Of all that SQL groups by, only GROUPING SETS ((a, b), (a)) is accepted, in any order of the sets and of the columns.
ROLLUP (a, b) and CUBE also ask for a total of everything, which is a question of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from dp_service.queries.errors import QuestionError
from dp_service.queries.sql_nodes import Scope, only
from dp_service.queries.sql_select_list import Dimension, SelectList

_EXPECTED = (
    "expected GROUPING SETS ((a, b), (a)) alone: the two selected columns, and the one that totals are of"
)


def totals_of(grouped: Sequence[exp.Expr], select_list: SelectList, scope: Scope) -> str:
    """Return of which column a GROUP BY with GROUPING SETS asks for totals.

    Raises:
        QuestionError: It is another one than of two columns and one of them.
    """
    first, *rest = grouped
    if rest or not isinstance(first, exp.GroupingSets):
        raise QuestionError("sql", _EXPECTED)
    only(first, "expressions")
    sets = sorted((list(_members(each, select_list, scope)) for each in first.expressions), key=len)
    if list(map(len, sets)) != [1, 2] or set(sets[1]) != set(select_list.dimensions):
        raise QuestionError("sql", _EXPECTED)
    named = sets[0][0]
    if named not in select_list.dimensions:
        raise QuestionError("sql", _EXPECTED)
    return named.name


def _members(node: exp.Expr, select_list: SelectList, scope: Scope) -> Iterator[Dimension]:
    """Yield the columns of one set."""
    if isinstance(node, exp.Tuple):
        only(node, "expressions")
        parts = node.expressions
    elif isinstance(node, exp.Paren):
        only(node, "this")
        parts = [node.this]
    else:
        parts = [node]
    for each in parts:
        if isinstance(each, exp.Tuple | exp.Paren | exp.Rollup | exp.Cube | exp.GroupingSets):
            raise QuestionError("sql", _EXPECTED)
        yield select_list.at(each, "GROUPING SETS") or select_list.key(each, scope)
