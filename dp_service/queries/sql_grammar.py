"""Which tokens may follow one another, and in which order clauses come.

sqlglot forgives what is no SQL: a comma that separates nothing, two directions after one another, a missing AND, a
clause before another that it belongs behind, words that it cannot place. What it makes of such a text may be another
question than the author's, or than another engine's. So every text that has become a question is held against this
table as well: a token may be followed only by what is listed for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NoReturn

from dp_service.queries.errors import QuestionError
from dp_service.queries.sql_keywords import KEYWORDS
from dp_service.queries.sql_tokens import AGGREGATES, COUNTS, TRUNCATIONS, Token, is_rank_function, refuse

_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT")
_RESERVED = frozenset({*_CLAUSES, "BY", "AND", "OR", "NOT", "IN", "BETWEEN", "AS", "ASC", "DESC"})
_TABLE = "a table"
_START, _END = "the beginning", "the end"
_NAME, _NUMBER, _TEXT, _TRUTH, _COMPARISON = "a name", "a number", "a text", "a truth value", "a comparison"
_COUNT = "a count"
_BUCKET = "DATE_TRUNC"
_FUNCTIONS = {**dict.fromkeys(COUNTS | AGGREGATES, _COUNT), **dict.fromkeys(TRUNCATIONS, _BUCKET)}
_POSITION = "FIRST or LAST"
_POSITIONS = ("FIRST", "LAST")

_LITERALS = {"quoted": _NAME, "number": _NUMBER, "float": _NUMBER, "text": _TEXT}
_TYPED = ("DATE", "TIMESTAMP")
_VALUES = frozenset({_NUMBER, _TEXT, _TRUTH, *_TYPED, "-", "("})
_AFTER_CONDITION = frozenset({"AND", "OR", "GROUP", "HAVING", "ORDER", "LIMIT", ")", _END})
_AFTER_KEY = frozenset({",", "HAVING", "ORDER", "LIMIT", "ASC", "DESC", "NULLS", _END})
_OPERATORS = frozenset({_COMPARISON, "IN", "NOT", "BETWEEN"})
_CONDITION = frozenset({_NAME, "NOT", "("})

_FOLLOWING: dict[str, frozenset[str]] = {
    _START: frozenset({"SELECT"}),
    "SELECT": frozenset({_NAME, _COUNT, _BUCKET}),
    "FROM": frozenset({_TABLE}),
    # Only a table and a count may have an alias without AS.
    _TABLE: frozenset({_NAME, "AS", "WHERE", "GROUP", "ORDER", "LIMIT", _END}),
    "WHERE": _CONDITION,
    "GROUP": frozenset({"BY"}),
    "ORDER": frozenset({"BY"}),
    "BY": frozenset({_NAME, _NUMBER, _COUNT, _BUCKET, "GROUPING"}),
    "GROUPING": frozenset({"SETS"}),
    "SETS": frozenset({"("}),
    "HAVING": frozenset({_NAME, _COUNT, "("}),
    "LIMIT": frozenset({_NUMBER}),
    "AS": frozenset({_NAME}),
    # AND stands between two conditions and between the ends of BETWEEN.
    "AND": _CONDITION | _VALUES | {_COUNT},
    "OR": _CONDITION,
    "NOT": _CONDITION | {"IN"},
    "IN": frozenset({"("}),
    "BETWEEN": _VALUES,
    _COMPARISON: _VALUES,
    "ASC": frozenset({",", "NULLS", "LIMIT", _END}),
    "DESC": frozenset({",", "NULLS", "LIMIT", _END}),
    "NULLS": frozenset({_POSITION}),
    _POSITION: frozenset({",", "LIMIT", _END}),
    **dict.fromkeys(_TYPED, frozenset({_TEXT})),
    _COUNT: frozenset({"("}),
    _BUCKET: frozenset({"("}),
    "DISTINCT": frozenset({_NAME}),
    "-": frozenset({_NUMBER}),
    "*": frozenset({")"}),
    ".": frozenset({_NAME}),
    ",": _VALUES | {_NAME, _COUNT, _BUCKET},
    "(": _CONDITION | _VALUES | {_COUNT, "*", "DISTINCT"},
    ")": _AFTER_CONDITION | _AFTER_KEY | _OPERATORS | {_NAME, "AS", "FROM"},
    _NAME: _AFTER_CONDITION | _AFTER_KEY | _OPERATORS | {".", "AS", "FROM", "WHERE"},
    _NUMBER: _AFTER_CONDITION | _AFTER_KEY,
    _TEXT: _AFTER_CONDITION | {","},
    _TRUTH: _AFTER_CONDITION | {","},
    _END: frozenset(),
}


def check_grammar(tokens: Sequence[Token]) -> None:
    """Refuse what a parser forgives.

    Raises:
        QuestionError: Two tokens do not follow one another in SQL, or clauses are out of order; the message says which.
    """
    kinds = [_START, *_kinds(tokens), _END]
    clauses = [kind for kind in kinds if kind in _CLAUSES]
    if clauses != sorted(set(clauses), key=_CLAUSES.index):
        raise QuestionError("sql", f"expected each clause once, in the order {', '.join(_CLAUSES)}")
    _check_buckets(kinds)
    for i, (left, right) in enumerate(pairwise(kinds)):
        if "," in (left, right) and right not in _FOLLOWING[left]:
            refuse("a comma that separates nothing")
        if right not in _FOLLOWING[left]:
            _refuse_neighbours(_named(tokens, i - 1, left), _named(tokens, i, right))


def _check_buckets(kinds: Sequence[str]) -> None:
    """Refuse a bucket whose length is a name: to another engine it could be that of a column."""
    for place, kind in enumerate(kinds):
        if kind == _BUCKET and kinds[place + 2 : place + 3] != [_TEXT]:
            raise QuestionError("sql", "expected DATE_TRUNC with its length in single quotes")


def _refuse_neighbours(left: str, right: str) -> NoReturn:
    if left == right == _NAME:
        raise QuestionError("sql", "two names beside each other: a comma or AS is missing between them")
    refuse(f"{right} after {left}")


def _named(tokens: Sequence[Token], place: int, kind: str) -> str:
    """Return how a message calls a token: a word of SQL by itself, but no word of the author's own."""
    word = tokens[place].text.upper() if kind in (_NAME, _TABLE) else ""
    return word if KEYWORDS.fullmatch(word) else kind


def _kinds(tokens: Sequence[Token]) -> Iterator[str]:
    for i, token in enumerate(tokens):
        if token.kind == "end":
            return
        before = tokens[i - 1].text.upper() if i else ""
        after = tokens[i + 1] if i + 1 < len(tokens) else None
        kind = _kind(token, before, after)
        yield _TABLE if kind == _NAME and before == "FROM" else kind


def _kind(token: Token, before: str, after: Token | None) -> str:
    """Return how the table calls a token; some words mean something beside certain others only."""
    if token.kind == "sign":
        return token.text if token.text in "(),.*-" else _COMPARISON
    if token.kind != "name":
        return _LITERALS[token.kind]
    word, following = token.text.upper(), "" if after is None else after.text.upper()
    if word in ("TRUE", "FALSE"):
        return _TRUTH
    if following == "(" and (word in _FUNCTIONS or is_rank_function(word)):
        return _FUNCTIONS.get(word, _COUNT)
    if before == "NULLS" and word in _POSITIONS:
        return _POSITION
    means_something = (
        word in _RESERVED
        or (word in _TYPED and after is not None and after.kind == "text")
        or (word == "NULLS" and following in _POSITIONS)
        or (word == "DISTINCT" and before == "(")
        or (word == "GROUPING" and before == "BY" and following == "SETS")
        or (word == "SETS" and before == "GROUPING" and following == "(")
    )
    return word if means_something else _NAME
