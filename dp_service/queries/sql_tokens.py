"""Splits a question's SQL into the few kinds of tokens it may hold, and refuses everything else by name.

A parser is lenient: it drops comments, joins neighbouring strings, reads look-alike letters as keywords and knows a
dozen kinds of literals. This check removes what it could misread: afterwards a text holds only ASCII names, names in
double quotes, integers, single-quoted texts and a few signs, and parentheses only where lists, conditions and counts
have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

from sqlglot.expressions import FUNCTION_BY_NAME

from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import FORBIDDEN_CHARACTER

MAXIMUM_LENGTH = 10_000
MAXIMUM_DEPTH = 16

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<comment>--|/\*|//|\{\#)
      | (?P<text>'(?:[^']|'')*+')
      | (?P<quoted>"(?:[^"]|"")++")
      | (?P<float>[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+[eE][+-]?[0-9]+)
      | (?P<number>[0-9]+)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign><>|!=|<=|>=|[(),.=<>*-])
      | (?P<end>;[ \t\r\n]*\Z)""",
    re.VERBOSE,
)
_REFUSED_SIGNS = {
    ";": "several statements",
    "$": "a dollar-quoted text or a parameter",
    "&": "a prefixed text",
    "?": "a parameter",
    ":": "a cast or a parameter",
    "[": "an array",
    "#": "a comment",
    "`": "a name in backquotes",
    "'": "a text that does not end",
    '"': "a name in double quotes that is empty or does not end",
}
_REFUSED_KINDS = {"comment": "a comment"}
_POINT = re.compile(r"[0-9]+\.[0-9]+")
COUNTS = frozenset({"COUNT", "DISTINCTCOUNT", "APPROX_COUNT_DISTINCT", "DISTINCTCOUNTHLL"})
"""The names of the functions that count."""
AGGREGATES = frozenset({"SUM", "AVG"})
"""The names of the functions that sum, and of those that average."""
RANKS = frozenset({"MIN", "MAX", "PERCENTILES"})
"""Names of functions that ask for one of the members' values by its rank, beside those of percentiles."""
_PERCENTILE = re.compile(r"PERCENTILE(?:EST|TDIGEST|SMARTTDIGEST|KLL)?(?:[0-9]{1,2})?")
TRUNCATIONS = frozenset({"DATE_TRUNC", "DATETRUNC"})
"""The names of the function that divides times into buckets."""
# Names that may precede an opening parenthesis; any other would be a function.
_BEFORE_PARENTHESIS = (
    COUNTS | AGGREGATES | TRUNCATIONS | {"IN", "AND", "OR", "WHERE", "NOT", "BETWEEN", "HAVING", "SETS"}
)
# Words before a parenthesis that are no function either, and what they belong to.
_CONSTRUCTS = {
    **dict.fromkeys(("FROM", "AS", "UNION", "ALL", "EXISTS"), "a subquery"),
    **dict.fromkeys(("USING", "ON", "JOIN"), "a join, or a second table,"),
    "OVER": "a window function",
}
_INSTEAD = "write PERCENTILE(value, 50), which returns a cell of a public grid"
_OTHERS = {
    **dict.fromkeys(
        ("ROLLUP", "CUBE"),
        "it asks for a total of everything as well; GROUPING SETS ((a, b), (a)) is for two columns and totals of one",
    ),
    **dict.fromkeys(
        ("PERCENTILE_CONT", "PERCENTILE_DISC", "MEDIAN", "QUANTILE", "APPROX_QUANTILE"), _INSTEAD
    ),
    **dict.fromkeys(
        ("PERCENTILERAWEST", "PERCENTILERAWTDIGEST", "PERCENTILERAWKLL"),
        f"it returns a sketch of the data; {_INSTEAD}",
    ),
    **dict.fromkeys(
        ("PERCENTILEMV", "PERCENTILEESTMV", "PERCENTILETDIGESTMV", "PERCENTILEKLLMV", "MINMV", "MAXMV"),
        f"it is of columns with several values in a row, which no policy lists; {_INSTEAD}",
    ),
}
_NO_ROWS = (
    "* is not accepted: no rows are shown, only counts: SELECT columns and COUNT(*) or COUNT(DISTINCT member)"
)

_NO_ARITHMETIC = (
    "arithmetic is not accepted: SUM, AVG and percentiles are of value columns as the policy lists them"
)
_WHOLE_IN_HAVING = (
    "HAVING compares with whole numbers in SQL: a number other than an integer is not accepted there; outside of SQL "
    "(--having, having=) decimal numbers are"
)


def is_rank_function(word: str) -> bool:
    """Return whether a name in capitals is that of a function that asks for a value by its rank."""
    return word in RANKS or _PERCENTILE.fullmatch(word) is not None


def refuse(construct: str) -> NoReturn:
    """Refuse a construct by its name, without repeating its text."""
    raise QuestionError("sql", f"{construct} is not accepted")


@dataclass(frozen=True)
class Token:
    """A token of a statement: its kind, its text, and where it begins and ends."""

    kind: str
    text: str
    start: int
    end: int


def check_tokens(text: str) -> list[Token]:
    """Return the tokens of a statement.

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
    _check_points(tokens)
    _check_products(tokens)
    _check_depth(tokens)
    return tokens


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        kind = match.lastgroup if match is not None else None
        if match is None or kind is None:
            refuse(_REFUSED_SIGNS.get(text[position], "a character that is no part of a question"))
        if kind in _REFUSED_KINDS:
            refuse(_REFUSED_KINDS[kind])
        if kind != "space":
            yield Token(kind, match.group(), match.start(), match.end())
        position = match.end()


def _check_points(tokens: list[Token]) -> None:
    """Refuse numbers with a decimal point but behind the column of a percentile, as in PERCENTILE(amount, 99.9)."""
    of_percentile = in_having = False
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.text == "(" and before is not None:
            of_percentile = _PERCENTILE.match(before.text.upper()) is not None
        elif token.text == ")":
            of_percentile = False
        in_having = token.text.upper() == "HAVING" or (in_having and token.text.upper() != "ORDER")
        if token.kind == "float" and not (
            of_percentile and before is not None and before.text == "," and _POINT.fullmatch(token.text)
        ):
            if in_having:
                raise QuestionError("sql", _WHOLE_IN_HAVING)
            refuse("a number other than an integer")


def _check_products(tokens: list[Token]) -> None:
    """Refuse stars that the parser overlooks. Those right behind a parenthesis are in the tree, and checked there."""
    inside = False
    for left, right in pairwise(tokens):
        if left.text == "(":
            inside = True
        elif left.text == ")":
            inside = False
        if right.text == "*" and left.text != "(":
            raise QuestionError("sql", _NO_ARITHMETIC if inside else _NO_ROWS)


def _check_neighbours(left: Token, right: Token) -> None:
    """Refuse pairs of tokens with a meaning of their own, such as U&'..', 0x1F, 'a' 'b' and every function."""
    touching = left.end == right.start
    if touching and left.kind == "name" and right.kind == "text":
        refuse("a prefixed text")
    if touching and left.kind == "number" and right.kind == "name":
        refuse("a number other than an integer")
    if left.kind == right.kind == "text":
        refuse("a quoted word beside another")
    if (left.text.upper(), right.text.upper()) == ("BY", "DISTINCT"):
        refuse("DISTINCT in GROUP BY")
    if right.text == "(" and left.kind in ("name", "quoted") and not _may_precede(left):
        _refuse_function(left)


def _may_precede(token: Token) -> bool:
    """Return whether a name may stand before an opening parenthesis."""
    word = token.text.upper()
    return word in _BEFORE_PARENTHESIS or (token.kind == "name" and is_rank_function(word))


def _refuse_function(token: Token) -> NoReturn:
    word = token.text.upper()
    if token.kind == "name" and word in _OTHERS:
        raise QuestionError("sql", f"{word}(..) is not accepted: {_OTHERS[word]}")
    if token.kind == "name" and word in _CONSTRUCTS:
        refuse(_CONSTRUCTS[word])
    # Nothing but the name of a function that SQL has: a word of a mangled text may be somebody's literal.
    named = f"{word}(..)" if token.kind == "name" and word in FUNCTION_BY_NAME else "a function"
    raise QuestionError(
        "sql",
        f"{named} is not accepted: COUNT(DISTINCT member) and COUNT(*) are, SUM and AVG of value columns, DATE_TRUNC "
        "of the time column, and no other function but percentiles, MIN and MAX of columns with a grid",
    )


def _check_depth(tokens: list[Token]) -> None:
    """Refuse deep nesting, which would overflow the stack of a recursive parser."""
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth > MAXIMUM_DEPTH:
            refuse("deeper nesting of parentheses")
