"""Converts values of this package to what JSON can hold."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from operator import attrgetter, methodcaller
from types import NoneType
from typing import Any, get_args, get_type_hints

from pinot_connector.coverage import FORMS, AnyEnds

# The largest integer that a double holds with all below it.
MOST_EXACT_INTEGER = 2**53 - 1
# The metadata of a field that JSON has only where it is not empty.
ONLY_SAID = {"only_said": True}


def to_json(value: object) -> Any:
    """Returns a value in terms of dict, list, str, int, float, bool and None.

    Enums become their values, exact numbers "p/q", days and timestamps ISO 8601, dataclasses one entry a public field:
    under its name, and where it is a choice of several dataclasses, under that of the one that is chosen (`one_look`).
    Ends beside a number are one entry each, by its name.
    Integers beyond 2^53 - 1 become texts: many programs read JSON numbers as doubles, which changes such integers.

    Raises:
        TypeError: a value of another type.
    """
    # To mypy classes have no hash.
    return _conversion(type(value))(value)  # type: ignore[arg-type]


@cache
def _conversion(kind: Any) -> Callable[[Any], Any]:
    """Returns what converts values of a type."""
    if issubclass(kind, Enum):
        return attrgetter("value")
    if issubclass(kind, NoneType | float | str):
        return lambda value: value
    if issubclass(kind, int | Fraction):
        return _number
    if issubclass(kind, datetime.date):
        return methodcaller("isoformat")
    if issubclass(kind, Sequence):
        return _of_ends if issubclass(kind, FORMS) else lambda items: [to_json(item) for item in items]
    if is_dataclass(kind):
        return partial(_entries, _fields(kind))  # type: ignore[arg-type]
    raise TypeError(f"{kind.__name__} has no plain form")


def _of_ends(ends: AnyEnds) -> dict[str, Any]:
    return {name: to_json(end) for name, end in ends._asdict().items()}


def _entries(named: Iterable[tuple[str, bool, bool]], value: Any) -> dict[str, Any]:
    held = ((name, is_choice, getattr(value, name), only_said) for name, is_choice, only_said in named)
    return {
        _snake(type(part).__name__) if is_choice else name: to_json(part)
        for name, is_choice, part, only_said in held
        if part or not only_said
    }


@cache
def _fields(kind: Any) -> tuple[tuple[str, bool, bool], ...]:
    """Returns the public fields of a dataclass, whether each is a choice of several dataclasses, and only if said."""
    hints = get_type_hints(kind)
    public = ((field.name, bool(field.metadata.get("only_said"))) for field in fields(kind))
    return tuple(
        (name, sum(map(is_dataclass, get_args(hints[name]))) > 1, only_said)
        for name, only_said in public
        if name[0] != "_"
    )


def _snake(name: str) -> str:
    return re.sub("(?<!^)(?=[A-Z])", "_", name).lower()


def _number(value: int | Fraction) -> int | str:
    """Return a number that every reader of JSON reads as it is, or its text."""
    return value if isinstance(value, int) and abs(value) <= MOST_EXACT_INTEGER else str(value)
