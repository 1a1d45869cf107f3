"""Splits a question's SQL into the few kinds of tokens it may hold, and refuses everything else by name.

A parser is lenient: it drops comments, joins neighbouring strings, reads look-alike letters as keywords and knows a
dozen kinds of literals. This check removes what it could misread: afterwards a text holds only ASCII names, integers,
single-quoted texts and a few signs, and parentheses only where lists, conditions and COUNT have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import NoReturn

from dp_service.queries.errors import QuestionError
from dp_service.queries.structured import FORBIDDEN_CHARACTER

MAXIMUM_LENGTH = 10_000
MAXIMUM_DEPTH = 16

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<comment>--|/\*|//|\{\#)
      | (?P<text>'(?:[^']|'')*+')
      | (?P<quoted>"[A-Za-z_][A-Za-z0-9_]*")
      | (?P<float>[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+[eE][+-]?[0-9]+)
      | (?P<number>[0-9]+)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign><>|!=|<=|>=|[(),=<>*-])
      | (?P<end>;[ \t\r\n]*\Z)""",
    re.VERBOSE,
)
_REFUSED_SIGNS = {
    ";": "several statements",
    "$": "a dollar-quoted text or a parameter",
    "&": "a prefixed text",
    "?": "a parameter",
    ":": "a cast or a parameter",
    ".": "a qualified name",
    "[": "an array",
    "#": "a comment",
    "`": "a name in backquotes",
    "'": "a text that does not end",
    '"': "a quoted name other than of ASCII letters, digits and underscores",
}
_REFUSED_KINDS = {"comment": "a comment", "float": "a number other than an integer"}
# Names that may precede an opening parenthesis; any other would be a function.
_BEFORE_PARENTHESIS = frozenset({"COUNT", "IN", "AND", "WHERE", "NOT", "BETWEEN"})
_OF_LITERALS = frozenset({"DATE", "TRUE", "FALSE"})
_CLAUSE_WORDS = frozenset(
    {"SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "LIMIT", "AND", "IN", "BETWEEN"}
)


def refuse(construct: str) -> NoReturn:
    """Refuse a construct by its name, without repeating its text."""
    raise QuestionError("sql", f"{construct} is not accepted")


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def check_tokens(text: str) -> str:
    """Return the statement without a semicolon at its end.

    Raises:
        QuestionError: The text holds something that is not accepted; the message names it.
    """
    if len(text) > MAXIMUM_LENGTH:
        raise QuestionError("sql", f"expected at most {MAXIMUM_LENGTH} characters")
    if FORBIDDEN_CHARACTER.search(text):
        refuse("a NUL or surrogate code point")
    tokens = list(_tokens(text))
    if not tokens or tokens[0].text.upper() != "SELECT":
        raise QuestionError("sql", "expected a statement that begins with SELECT")
    for left, right in pairwise(tokens):
        _check_neighbours(left, right)
    _check_depth(tokens)
    _check_between(tokens)
    return text[: tokens[-1].start] if tokens[-1].kind == "end" else text


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        kind = match.lastgroup if match is not None else None
        if match is None or kind is None:
            refuse(_REFUSED_SIGNS.get(text[position], "a character that is no part of a question"))
        if kind in _REFUSED_KINDS:
            refuse(_REFUSED_KINDS[kind])
        if kind != "space":
            yield _Token(kind, match.group(), match.start(), match.end())
        position = match.end()


def _check_neighbours(left: _Token, right: _Token) -> None:
    """Refuse pairs of tokens with a meaning of their own, such as U&'..', 0x1F, 'a' 'b' and every function."""
    touching = left.end == right.start
    if touching and left.kind == "name" and right.kind == "text":
        refuse("a prefixed text")
    if touching and left.kind == "number" and right.kind == "name":
        refuse("a number other than an integer")
    if left.kind == right.kind and left.kind in ("text", "quoted"):
        refuse("a quoted word beside another")
    # The parser overlooks these. Inside parentheses they are in the tree, and are checked there.
    if right.text == "*" and left.text != "(":
        refuse("*")
    if (left.text.upper(), right.text.upper()) == ("BY", "DISTINCT"):
        refuse("DISTINCT in GROUP BY")
    if _is_stray_comma(left, right):
        refuse("a comma that separates nothing")
    if right.text == "(" and left.kind in ("name", "quoted") and left.text.upper() not in _BEFORE_PARENTHESIS:
        refuse("a function, subquery or CTE")


def _is_stray_comma(left: _Token, right: _Token) -> bool:
    """Return whether a comma has nothing on one side, which a parser overlooks."""
    before = right.text == "," and (left.text in ("(", ",") or left.text.upper() in _CLAUSE_WORDS)
    return before or (left.text == "," and (right.text == ")" or right.text.upper() in _CLAUSE_WORDS))


def _check_depth(tokens: list[_Token]) -> None:
    """Refuse deep nesting, which would overflow the stack of a recursive parser."""
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth > MAXIMUM_DEPTH:
            refuse("deeper nesting of parentheses")


def _check_between(tokens: list[_Token]) -> None:
    """Refuse two literals after BETWEEN without an AND, which the parser would insert."""
    for i, token in enumerate(tokens):
        if token.kind == "name" and token.text.upper() == "BETWEEN":
            first = takewhile(
                lambda each: each.kind != "name" or each.text.upper() in _OF_LITERALS, tokens[i + 1 :]
            )
            if sum(each.kind in ("text", "number") for each in first) > 1:
                refuse("BETWEEN without AND")
