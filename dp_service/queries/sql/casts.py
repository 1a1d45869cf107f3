"""Types that stand before or behind a value, and what of them means something.

A literal becomes one of its type, and so does a text that is cast to a day or a time. Counts and parts of times are
whole numbers already. Every other cast would make another value, and is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dp_service.queries.sql import tree
from dp_service.queries.sql.forms import is_part
from dp_service.queries.sql.numbers import is_count
from dp_service.queries.sql.places import refuse
from dp_service.queries.sql.refusals import ARITHMETIC
from dp_service.queries.sql.tokens import Token
from dp_service.queries.sql.tree import Expression

if TYPE_CHECKING:
    from dp_service.queries.sql.expressions import ExpressionReader

_TIMES = ("DATE", "TIMESTAMP")
_WHOLE = ("INTEGER", "INT", "BIGINT")
# What drivers cast their literals to, each of which is of that type already.
_OF_LITERALS: dict[str, type[Expression]] = {
    **dict.fromkeys(("TEXT", "VARCHAR", "CHARACTER", "BPCHAR", "STRING"), tree.Text),
    **dict.fromkeys(("SMALLINT", "INT2", "INT4", "INT8", *_WHOLE), tree.Number),
    **dict.fromkeys(("BOOL", "BOOLEAN"), tree.Truth),
}
_WITH_OFFSET = re.compile(r"\d(?:Z|[+-]\d\d(?::?\d\d)?)\Z")
_TRUTHS = {"t": True, "true": True, "f": False, "false": False}


def cast_to(reader: ExpressionReader, first: Token, value: Expression) -> Expression:
    """Read a type behind a value: a literal becomes one of it, and a function stays what it is.

    Args:
        reader: Stands before the type.
        first: Where the value begins.
        value: What stands before it.
    """
    if (literal := _literal(reader, first, value)) is not None:
        return literal
    if reader.next.word in (*_WHOLE, "INT4", "INT8") and (is_part(value) or is_count(value)):
        reader.take()
        return value
    if _is_of_instants(reader):
        return _instant(reader, first, value)
    if reader.next.word not in _TIMES:
        refuse(
            reader.next,
            "a cast other than to DATE or TIMESTAMP is not accepted: leave it out, columns are as they are, or cast in "
            "a view in Pinot or DuckDB",
        )
    to = reader.take()
    if to.word == "TIMESTAMP" and reader.takes("WITHOUT"):
        reader.expect("TIME", "ZONE")
    if isinstance(value, tree.Text) and not value.kind:
        return tree.Text(first, to, value.value, kind=to.word)
    return tree.Cast(first, to, value, to.word)


def time_literal(reader: ExpressionReader) -> tree.Text | None:
    """Read DATE or TIMESTAMP before a text; None: neither stands here."""
    first = reader.next
    if first.word in _TIMES and reader.ahead().kind == "text":
        reader.take()
        text = reader.take()
        return tree.Text(first, text, text.value, kind=first.word)
    if not (_is_of_instants(reader) and first.word == "TIMESTAMP" and reader.ahead(4).kind == "text"):
        return None
    reader.expect("TIMESTAMP", "WITH", "TIME", "ZONE")
    text = reader.take()
    _require_offset(text, text.value)
    return tree.Text(first, text, text.value, kind="TIMESTAMP")


def _literal(reader: ExpressionReader, first: Token, value: Expression) -> Expression | None:
    """Read the type that a literal before it has; None: it has another one."""
    if not isinstance(value, _OF_LITERALS.get(reader.next.word, ())):
        return _written_as_text(reader, first, value)
    if isinstance(value, tree.Number) and not value.text.isdecimal():
        return None
    if isinstance(value, tree.Text) and value.kind:
        return None
    if reader.take().word == "CHARACTER":
        reader.expect("VARYING")
    return value


def _written_as_text(reader: ExpressionReader, first: Token, value: Expression) -> Expression | None:
    """Read the type of a number or a truth value that is written as a text, as drivers write parameters."""
    kind = _OF_LITERALS.get(reader.next.word)
    if not isinstance(value, tree.Text) or value.kind:
        return None
    digits = value.value.removeprefix("-")
    if kind is tree.Number and digits.isascii() and digits.isdecimal():
        return tree.Number(first, reader.take(), digits, negative=digits != value.value)
    if kind is tree.Truth and value.value in _TRUTHS:
        return tree.Truth(first, reader.take(), _TRUTHS[value.value])
    return None


def _is_of_instants(reader: ExpressionReader) -> bool:
    return reader.next.word == "TIMESTAMPTZ" or (reader.next.word, reader.ahead().word) == (
        "TIMESTAMP",
        "WITH",
    )


def _instant(reader: ExpressionReader, first: Token, value: Expression) -> Expression:
    """Read the type of instants behind a text that is one whatever the zone of a session."""
    to = reader.take()
    if to.word == "TIMESTAMP":
        reader.expect("WITH", "TIME", "ZONE")
    text = value.value if isinstance(value, tree.Text) and not value.kind else ""
    _require_offset(to, text)
    return tree.Text(first, reader.last, text, kind="TIMESTAMP")


def _require_offset(place: Token, text: str) -> None:
    if _WITH_OFFSET.search(text) is None:
        refuse(
            place, "TIMESTAMP WITH TIME ZONE is for texts with an offset, such as '2026-01-31 10:00:00+00'"
        )


def joined_texts(reader: ExpressionReader, first: Token, left: tree.Text) -> tree.Text:
    """Read || between texts that are written out, which together are one.

    Args:
        reader: Stands before ||.
        first: Where the text before it begins.
        left: That text.
    """
    parts = [left]
    while reader.next.text == "||" and reader.next.kind == "sign":
        sign = reader.take()
        part = reader.casted()
        if not isinstance(part, tree.Text) or part.kind or left.kind:
            refuse(sign, ARITHMETIC["||"])
        parts.append(part)
    return tree.Text(first, reader.last, "".join(each.value for each in parts))
