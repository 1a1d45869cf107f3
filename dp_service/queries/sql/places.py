"""Where in a text something is refused: line, column, and a caret under it.

The line is shown without anybody's literals: of its words only those that a question has, names of functions, and names
that the policy lists; all else is dots. An error ends up in logs, which must not contain filters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import NoReturn, Protocol, TypeVar

from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.filters import FORBIDDEN_CHARACTER
from dp_service.queries.sql.words import REFUSED, is_read

MAXIMUM_LENGTH = 262_144
_WIDTH = 76
T = TypeVar("T")
_PIECE = re.compile(
    r"""(?P<hidden>'(?:[^']|'')*+'?|"(?:[^"]|"")*+"?|`(?:[^`]|``)*+`?|/\*.*?(?:\*/|\Z)|--[^\r\n]*)
      | (?P<function>[A-Za-z_][A-Za-z0-9_]*+(?=[ ]*\())
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*+)
      | (?P<sign>[ \t\r\n(),.;=<>*+/%:|!-]+?)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


class Placed(Protocol):
    """Something that stands in a text."""

    @property
    def start(self) -> int:
        """The place of its first character."""

    @property
    def end(self) -> int:
        """The place behind its last character."""


class Span:
    """Some characters of a text."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class RefusedHereError(Exception):
    """What is refused at a place; `located` makes it the error that callers see."""

    def __init__(self, at: Placed, error: QuestionError | RefusedByPolicyError) -> None:
        super().__init__()
        self.at, self.error = at, error


def refused(at: Placed, message: str) -> RefusedHereError:
    """Return the refusal of what stands at a place, to be raised; the message repeats no text but words of SQL."""
    return RefusedHereError(at, QuestionError("sql", message))


def refuse(at: Placed, message: str) -> NoReturn:
    """Raise the same."""
    raise refused(at, message)


@contextmanager
def placed(at: Placed) -> Iterator[None]:
    """Give the errors of the policy the place of the name or value that they are about."""
    try:
        yield
    except (QuestionError, RefusedByPolicyError) as error:
        raise RefusedHereError(at, error) from None


def located(read: Callable[[], T], text: str, names: Collection[str], *, field: str = "sql") -> T:
    """Return what is read of a text; what is refused becomes an error with line, column and caret.

    Args:
        read: Reads the text.
        text: The statement, or a condition.
        names: The words of it that may be shown, beside those of SQL.
        field: What the text is called in a question.

    Raises:
        QuestionError: Something was refused, or the text is too long.
        RefusedByPolicyError: The policy refused something.
    """
    if FORBIDDEN_CHARACTER.search(text):
        raise QuestionError(field, "a NUL or surrogate code point is not accepted")
    if (length := len(text.encode())) > MAXIMUM_LENGTH:
        raise QuestionError(field, f"expected at most {MAXIMUM_LENGTH:,} bytes of SQL, got {length:,}")
    try:
        return read()
    except RefusedHereError as refusal:
        message = f"{_place(text, refusal.at)}: {refusal.error}\n{_excerpt(text, refusal.at, names)}"
        found = _with_message(refusal.error, message, field)
    # Outside of the handler: nothing of a text may be the context of an error.
    raise found


def _with_message(
    error: QuestionError | RefusedByPolicyError, message: str, field: str
) -> QuestionError | RefusedByPolicyError:
    if isinstance(error, RefusedByPolicyError):
        return RefusedByPolicyError(error.rule, message)
    return QuestionError(field, message)


def _place(text: str, at: Placed) -> str:
    line, column = text.count("\n", 0, at.start) + 1, at.start - _line_start(text, at.start) + 1
    return f"line {line}, column {column}"


def _line_start(text: str, place: int) -> int:
    return text.rfind("\n", 0, place) + 1


def _excerpt(text: str, at: Placed, names: Collection[str]) -> str:
    """Return the part of the line around a place, without literals, and carets below it."""
    first = max(_line_start(text, at.start), at.start - _WIDTH // 2)
    line = _without_literals(text, names)[first : first + _WIDTH].split("\n", 1)[0]
    line = line.replace("\t", " ").replace("\r", " ")
    before = at.start - first
    width = max(1, min(at.end - at.start, len(line) - before))
    return f"  {line.rstrip()}\n  {' ' * before}{'^' * width}"


def _without_literals(text: str, names: Collection[str]) -> str:
    """Return a text of the same length, with dots for all that may be somebody's."""
    return "".join(_piece(match, names) for match in _PIECE.finditer(text))


def _piece(match: re.Match[str], names: Collection[str]) -> str:
    piece, kind = match[0], match.lastgroup
    if kind == "sign" or (kind in ("word", "function") and piece in names):
        return piece
    if kind in ("word", "function") and (is_read(piece) or (kind == "function" and piece.upper() in REFUSED)):
        return piece
    if kind == "hidden" and piece[1:-1] in names and piece[0] in '"`':
        return piece
    return "".join(each if each in "\n'\"`" else "." for each in piece)
