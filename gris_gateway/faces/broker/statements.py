"""What clients send of a question: SQL with options before, behind and beside it, as Pinot takes them.

Options of Pinot's engine have no meaning here and are left out, so that a question is the same with and without them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pinot_connector.errors import InvalidQuestion

# Nothing here is tried twice: each repetition keeps what it has, so that no text takes long.
_COMMENT = r"--[^\r\n]*+|/\*(?:(?!\*/).)*+(?:\*/)?"
_GAP = rf"(?:\s++|{_COMMENT})*+"
_VALUE = r"(?:'[^']*+'|[^,;'()\s]++)"
_NAME = r"[A-Za-z_][\w.]*+"
_FLAGS = re.IGNORECASE | re.DOTALL
_SET = re.compile(rf"{_GAP}SET\s++\"?(?P<name>{_NAME})\"?\s*+=\s*+(?P<value>{_VALUE})\s*+;", _FLAGS)
_EQUAL = rf"{_NAME}\s*+=\s*+{_VALUE}\s*+"
_OPTION = re.compile(rf"OPTION\s*+\(\s*+(?P<pairs>{_EQUAL}(?:,\s*+{_EQUAL})*+)\)\Z", _FLAGS)
_PAIR = re.compile(rf"(?P<name>{_NAME})\s*+=\s*+(?P<value>{_VALUE})\s*+(?:,\s*+|\Z)", _FLAGS)
# Comments, what is quoted, and the word outside of both.
_PART = re.compile(rf"'(?:[^']|'')*+'|\"[^\"]*+\"|(?P<comment>{_COMMENT})|\b(?P<word>OPTION)\b", _FLAGS)
# JDBC puts the first behind statements without a limit, and the second behind prepared ones.
_NO_LIMIT = re.compile(r"(?<!\s)\s++LIMIT\s++(?:1000000|2147483647)\Z", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,12})?")
MAX_CHARACTERS = 200_000
"""No statement that dp_service accepts is longer."""

_MAX_ERROR = "max_error"
_OWN = "gris"
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Asked:
    """A question as it was sent.

    Attributes:
        sql: The SQL, without options.
        intervals: Whether columns for the ends of intervals are wanted.
        confidence: That of intervals; None: the gateway's.
        max_cost: The most information units that it may cost; None: whatever the budget holds.
    """

    sql: str
    intervals: bool
    confidence: float | None
    max_cost: int | None


def asked_in(body: bytes) -> Asked:
    """Return the question that a POST holds: a JSON object with `sql` and, maybe, `queryOptions`.

    Raises:
        InvalidQuestion: It is no such object, or an option is not what is expected.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise InvalidQuestion("", "expected a JSON object with sql")
    return asked(given.get("sql"), given.get("queryOptions"))


def asked(sql: Any, options: Any = None) -> Asked:
    """Return the question that a text of SQL and a text of options (`a=b;c=d`) make.

    Raises:
        InvalidQuestion: One is no text, or an option is not what is expected.
    """
    if not isinstance(sql, str) or not sql.strip():
        raise InvalidQuestion("sql", "expected a statement, as a text")
    if not isinstance(options, str | None):
        raise InvalidQuestion("queryOptions", "expected a text, such as timeoutMs=1000;grisIntervals=true")
    if max(len(sql), len(options or "")) > MAX_CHARACTERS:
        raise InvalidQuestion("sql", f"expected at most {MAX_CHARACTERS:,} characters")
    found = dict(_listed(options or ""))
    begin = 0
    while (first := _SET.match(sql, begin)) is not None:
        found[first["name"].casefold()] = first["value"]
        begin = first.end()
    parts = list(_PART.finditer(sql, begin))
    words = [each.start() for each in parts if each["word"]]
    comments = {each.end(): each.start() for each in parts if each["comment"]}
    end = _end(sql, len(sql), comments)
    while words and (last := _OPTION.match(sql, words.pop(), end)) is not None:
        found |= {pair["name"].casefold(): pair["value"] for pair in _PAIR.finditer(last["pairs"])}
        end = _end(sql, last.start(), comments)
    return _with_options(
        _NO_LIMIT.sub("", sql[begin:end]), {name: value.strip("'") for name, value in found.items()}
    )


def _end(sql: str, end: int, comments: Mapping[int, int]) -> int:
    """Return where a statement ends that something ends behind: comments, semicolons and blanks are no part of it."""
    while True:
        if end in comments:
            end = comments[end]
        elif end and (sql[end - 1].isspace() or sql[end - 1] == ";"):
            end -= 1
        else:
            return end


def _listed(options: str) -> list[tuple[str, str]]:
    pairs = (each.partition("=") for each in options.split(";") if each.strip())
    return [(name.strip().casefold(), value.strip()) for name, _, value in pairs]


def _with_options(sql: str, options: Mapping[str, str]) -> Asked:
    own = {name: value for name, value in options.items() if name.startswith(_OWN)}
    known = ("grisintervals", "grisconfidence", "grismaxcost")
    if unknown := own.keys() - set(known):
        raise InvalidQuestion(
            unknown.pop(), "expected grisIntervals, grisConfidence or grisMaxCost; other options are Pinot's"
        )
    intervals, confidence, most = (own.get(name) for name in known)
    if (exactness := options.get(_MAX_ERROR)) is not None:
        # dp_service reads it.
        sql = f"{sql} OPTION({_MAX_ERROR}={exactness})"
    if intervals is not None and intervals.lower() not in _TRUTH:
        raise InvalidQuestion("grisIntervals", "expected true or false")
    return Asked(
        sql,
        intervals is not None and _TRUTH[intervals.lower()],
        None if confidence is None else float(_number("grisConfidence", confidence, "0.9")),
        None if most is None else _whole("grisMaxCost", most),
    )


def _number(name: str, text: str, example: str) -> Fraction:
    if _NUMBER.fullmatch(text) is None:
        raise InvalidQuestion(name, f"expected a number, such as {example}")
    return Fraction(text)


def _whole(name: str, text: str) -> int:
    number = _number(name, text, "20")
    if number.denominator != 1:
        raise InvalidQuestion(name, "expected a whole number of information units, such as 20")
    return number.numerator
