"""Conditions on what is released, from texts such as `count >= 100` and `sum:amount < 2500.50`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from gris_api.dp.v1 import question_pb2

from pinot_connector.errors import InvalidQuestion

_COMPARISONS = {
    "=": question_pb2.COMPARISON_EQUAL,
    "<>": question_pb2.COMPARISON_NOT_EQUAL,
    "!=": question_pb2.COMPARISON_NOT_EQUAL,
    "<": question_pb2.COMPARISON_LESS,
    "<=": question_pb2.COMPARISON_AT_MOST,
    ">": question_pb2.COMPARISON_GREATER,
    ">=": question_pb2.COMPARISON_AT_LEAST,
}
_CONDITION = re.compile(
    r"\s*(.*?[^<>=!\s])\s*(<>|!=|<=|>=|=|<|>)\s*(-?[0-9]+(?:\.[0-9]+|/[0-9]+)?)\s*", re.DOTALL
)
# A number has conditions of its own in parentheses, or behind "where".
_PARENTHESISED = re.compile(r"\(.*\)|\bwhere\b.*", re.DOTALL | re.IGNORECASE)
_COMPARED = re.compile("[<>=!]")
_COUNT = "count"

Placed = Callable[[str], int]
"""Returns the position of the number that a name stands for; it raises InvalidQuestion for any other."""


def having_conditions(texts: Sequence[str], placed: Placed) -> Iterator[question_pb2.HavingCondition]:
    """Yields the conditions of a question.

    Args:
        texts: each a number that is released, how it is compared, and a number: `count`, `sum:<column>`,
            `avg:<column>` or another one that is asked for; `=`, `<>`, `<`, `<=`, `>` or `>=`; a decimal number or
            `p/q`.
        placed: where the numbers are.

    Raises:
        InvalidQuestion: a text is no condition, or is on a number that the question does not ask for.
    """
    for text in texts:
        found = _CONDITION.fullmatch(text)
        if found is None or _COMPARED.search(_PARENTHESISED.sub("", found[1])):
            raise InvalidQuestion(
                "having",
                "expected conditions such as count >= 100 or sum:COLUMN < 2500.50: count, sum:COLUMN or avg:COLUMN, "
                "then =, <>, <, <=, > or >=, then a number",
            )
        name, comparison, bound = found.groups()
        built = question_pb2.HavingCondition(comparison=_COMPARISONS[comparison], bound=bound)
        if name != _COUNT:
            built.aggregate = placed(name)
        yield built
