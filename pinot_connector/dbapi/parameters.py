"""Binds parameters: they become literals of the accepted SQL, so that no value can be more than a value.

Why that holds: a text is accepted here only if it falls into whole quoted words, whole comments, per cent signs,
placeholders and pieces without a quote, and placeholders stand only outside of quoted words and comments. A value
becomes one whole literal, with its quotes doubled, between spaces. So the quoted words and comments of the SQL that
results are exactly the text's own and the values', whatever the values hold. dp_service splits SQL into the same words
and comments, knows no other escape, and refuses every other kind of quoting; and of what it accepts an engine only ever
sees its own rendering.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import TypeAlias

from pinot_connector.checked_arguments import checked_text
from pinot_connector.errors import InvalidQuestion
from pinot_connector.python_values import plain_value, several

Parameters: TypeAlias = Mapping[str, object]

_PART = re.compile(
    r"""(?P<quoted>'(?:[^']|'')*+'|"[^"]*+"|`[^`]*+`|--[^\r\n]*+|/\*.*?\*/)
      | (?P<percent>%%)
      | %\((?P<name>[^()'"]*+)\)s
      | (?P<open>['"`]|/\*)
      | (?P<plain>[^'"`%/-]++|[%/-])""",
    re.VERBOSE | re.DOTALL,
)


def bound(operation: str, parameters: Parameters | None) -> str:
    """Returns SQL in which every `%(name)s` has become the literal of that parameter, and every `%%` a `%`.

    Texts, 64-bit integers, truth values, days and timestamps are values, of NumPy and pandas too (`python_values`); a
    list, a set, an array or a series of them may stand alone in the parentheses of IN. A timestamp without a zone is in
    the zone of the column that it is compared with.

    Raises:
        InvalidQuestion: the text has a placeholder in quotes or a comment, or one of these does not end; a parameter is
            missing, or is no such value. The message names the parameter and never holds its value.
    """
    text = checked_text("sql", operation)
    if not isinstance(parameters, Mapping | None):
        raise InvalidQuestion("parameters", "expected a mapping of names to values, for %(name)s")
    return "".join(_written(part, parameters or {}) for part in _PART.finditer(text))


def _written(part: re.Match[str], parameters: Parameters) -> str:
    match part.lastgroup:
        case "quoted":
            return _unescaped(part.group())
        case "percent":
            return "%"
        case "name":
            return f" {_literals(part, parameters)} "
        case "open":
            raise InvalidQuestion("sql", "expected an end of every quoted word and comment")
        case _:
            return part.group()


def _unescaped(quoted: str) -> str:
    pieces = quoted.split("%%")
    if any("%(" in piece for piece in pieces):
        raise InvalidQuestion(
            "sql", "expected placeholders outside of quotes and comments, and %% for a per cent sign before ("
        )
    return "%".join(pieces)


def _literals(part: re.Match[str], parameters: Parameters) -> str:
    name = part["name"]
    field = f"parameters.{name}"
    if name not in parameters:
        raise InvalidQuestion(field, "expected a value for this placeholder")
    value = several(parameters[name])
    if value is None:
        return literal(field, parameters[name])
    if not value or not _stands_alone(part):
        raise InvalidQuestion(field, f"expected one value, or one value or more for IN (%({name})s)")
    return ", ".join(literal(field, each) for each in value)


def _stands_alone(part: re.Match[str]) -> bool:
    before, after = part.string[: part.start()].rstrip(), part.string[part.end() :].lstrip()
    return before.endswith("(") and after.startswith(")")


def literal(field: str, given: object) -> str:
    """Returns the literal of a value, which is one word of SQL whatever the value holds.

    Raises:
        InvalidQuestion: it is no value that `bound` takes; the message begins with `field`, and never holds it.
    """
    match value := plain_value(field, given):
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case str():
            # The method of str itself: a subclass may override it.
            return "'" + str.replace(checked_text(field, value), "'", "''") + "'"
        case datetime.datetime():
            return f"TIMESTAMP '{_instant(field, value)}'"
        case datetime.date():
            return f"DATE '{datetime.date.isoformat(value)}'"


def _instant(field: str, value: datetime.datetime) -> str:
    """Returns a timestamp with a zone in UTC; one without is for dp_service to read in the column's zone."""
    try:
        plain = value if value.utcoffset() is None else value.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        plain = None
    if plain is None:
        raise InvalidQuestion(field, "expected a timestamp between the years 1 and 9999")
    return datetime.datetime.isoformat(plain, sep=" ")
