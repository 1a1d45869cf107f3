"""Lists of values as PostgreSQL's drivers write them: `= ANY(ARRAY[..])` is IN.

ARRAY['a', 'b'], ARRAY[1, 2]::bigint[]
'{a,"b c"}', '{1,2}'::int[]                    the same as PostgreSQL writes it, its values as texts unless it is cast
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dp_service.queries.filters import MAXIMUM_VALUES
from dp_service.queries.sql import tree
from dp_service.queries.sql.casts import cast_to
from dp_service.queries.sql.places import refuse, refused
from dp_service.queries.sql.tokens import Token
from dp_service.queries.sql.tree import Expression
from dp_service.terms import Comparison

if TYPE_CHECKING:
    from dp_service.queries.sql.expressions import ExpressionReader

_OTHER = "a comparison with several values is accepted as = ANY(ARRAY['a', 'b']): write IN, NOT IN, or compare with one"
_EXPECTED = "expected values, as in = ANY(ARRAY['a', 'b']): ask for those of a subquery first"
_EMPTY = "expected 1 value or more in a list"
_BLANKS = " \t\r\n\f\v"
_VALUE = re.compile(
    rf"""[{_BLANKS}]*+"(?P<quoted>(?:[^"\\]|\\.)*+)"[{_BLANKS}]*+|(?P<plain>[^",{{}}\\]++)""", re.DOTALL
)


def is_quantified(reader: ExpressionReader) -> bool:
    """Return whether ANY, SOME or ALL comes next, behind a comparison."""
    return reader.next.word in ("ANY", "SOME", "ALL") and reader.ahead().text == "("


def quantified(reader: ExpressionReader, first: Token, sign: Comparison, value: Expression) -> Expression:
    """Read ANY and its values.

    Args:
        reader: Stands before that word.
        first: Where the condition begins.
        sign: The comparison before it.
        value: What is compared.
    """
    word = reader.take()
    if word.word != "ANY" or sign is not Comparison.EQUAL:
        refuse(word, _OTHER)
    return tree.Listed(first, reader.last, value, reader.in_parentheses(lambda: _array(reader)))


def _array(reader: ExpressionReader) -> tuple[Expression, ...]:
    if reader.next.text == "(":
        return reader.in_parentheses(lambda: _array(reader))
    if reader.takes("ARRAY", "["):
        found = reader.values("]")
    elif reader.next.kind == "text":
        found = _written(reader.take())
    else:
        refuse(reader.next, _EXPECTED)
    return _of_type(reader, found) if reader.takes("::") else found


def _of_type(reader: ExpressionReader, values: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Read the type of an array, which is that of each value."""
    place = reader.place
    found = []
    for each in values:
        reader.place = place
        found.append(cast_to(reader, each.first, each))
    reader.expect("[", "]")
    return tuple(found)


def _written(token: Token) -> tuple[Expression, ...]:
    """Return the values of an array that is written as a text."""
    text = token.value.strip()
    if not (text.startswith("{") and text.endswith("}")):
        refuse(token, _EXPECTED)
    found, place, end = list[Expression](), 1, len(text) - 1
    if not text[1:end].strip():
        refuse(token, _EMPTY)
    while (value := _VALUE.match(text, place, end)) is not None:
        found.append(_value(token, value))
        place = value.end() + 1
        if len(found) > MAXIMUM_VALUES:
            refuse(token, f"expected at most {MAXIMUM_VALUES:,} values in a list")
        if value.end() == end:
            return tuple(found)
        if text[value.end()] != ",":
            break
    raise refused(token, _EXPECTED)


def _value(token: Token, value: re.Match[str]) -> Expression:
    if value["plain"] is None:
        return tree.Text(token, token, re.sub(r"\\(.)", r"\1", value["quoted"], flags=re.DOTALL))
    plain = value["plain"].strip(_BLANKS)
    if not plain:
        refuse(token, _EXPECTED)
    return tree.Null(token, token) if plain.upper() == "NULL" else tree.Text(token, token, plain)
