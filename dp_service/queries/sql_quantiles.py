"""Quantiles in SQL: which functions mean them, and what their arguments say.

    PERCENTILE(value, 50)              the quantile 0.5; digits after the point are allowed, as in 99.9
    PERCENTILES(value, 25, 50, 75)     several of them, a column each
    MIN(value), MAX(value)             about the smallest and the largest value

Apache Pinot computes percentiles exactly and by several sketches: PERCENTILEEST, PERCENTILETDIGEST,
PERCENTILESMARTTDIGEST and PERCENTILEKLL. All of them ask for the same number and differ in how exact it is, so here
they are other names of PERCENTILE, and so is PERCENTILE50(value) with the number in the name. Functions that return a
sketch itself (PERCENTILERAWEST), or take columns with several values in a row (PERCENTILEMV), ask for something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from sqlglot import exp

from dp_service.queries.errors import QuestionError
from dp_service.queries.sql_aliases import alias_name
from dp_service.queries.sql_nodes import Scope, only
from dp_service.queries.sql_tokens import is_rank_function, refuse
from dp_service.queries.structured import AskedQuantile
from dp_service.terms import RankFunction

_NUMBER = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,6})?")
_IN_NAME = re.compile(r"[A-Z]+?(?P<number>[0-9]{1,2})?")
_EXPECTED = "expected a percentile such as PERCENTILE(value, 50), strictly between 0 and 100"


def is_quantile(node: exp.Expr) -> bool:
    """Return whether a node asks for quantiles, or for the smallest or the largest value."""
    return isinstance(node, exp.Min | exp.Max) or (
        isinstance(node, exp.Anonymous) and is_rank_function(_name(node))
    )


def selected_quantiles(nodes: Sequence[exp.Expr], scope: Scope) -> tuple[AskedQuantile, ...]:
    """Return the quantiles that are selected, in their order.

    Raises:
        QuestionError: Something else is selected beside them, or their arguments are none of theirs.
    """
    return tuple(each for node in nodes for each in _of_node(node, scope))


def _of_node(node: exp.Expr, scope: Scope) -> Iterator[AskedQuantile]:
    function, alias = node, None
    if isinstance(node, exp.Alias):
        only(node, "this", "alias")
        function, alias = node.this, alias_name(node.args["alias"])
    if not is_quantile(function):
        raise QuestionError(
            "sql",
            "expected nothing but columns, percentiles, MIN and MAX: counts, SUM and AVG are another release, so ask "
            "for them apart",
        )
    name, (column, *numbers) = _name(function), _arguments(function)
    asked = scope.column_name(column)
    if isinstance(function, exp.Min | exp.Max):
        kind = RankFunction.SMALLEST if isinstance(function, exp.Min) else RankFunction.LARGEST
        yield AskedQuantile(kind, asked, alias=alias)
        return
    found = _IN_NAME.fullmatch(name)
    texts = [each.this for each in numbers if isinstance(each, exp.Literal) and not each.is_string]
    if found is not None and found["number"] is not None:
        texts.append(found["number"])
        numbers.append(function)
    if len(texts) != len(numbers) or not texts or (len(texts) > 1 and name != "PERCENTILES"):
        raise QuestionError("sql", _EXPECTED)
    if len(texts) > 1 and alias is not None:
        raise QuestionError("sql", "expected no alias for PERCENTILES with several percentiles")
    for text in texts:
        if not _NUMBER.fullmatch(text) or not 0 < Fraction(text) < 100:
            raise QuestionError("sql", _EXPECTED)
        yield AskedQuantile(RankFunction.QUANTILE, asked, Fraction(text) / 100, alias)


def _name(node: exp.Expr) -> str:
    return str(node.this).upper() if isinstance(node, exp.Anonymous) else node.key.upper()


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    """Return the arguments of a function: a column, and for a percentile its numbers."""
    if not isinstance(node, exp.Anonymous):
        only(node, "this")
        return [node.this]
    only(node, "this", "expressions")
    if not node.expressions:
        refuse("a function without a column")
    return list(node.expressions)
