"""Converts values of this package to what JSON can hold."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

# The largest integer that a double holds with all below it.
MOST_EXACT_INTEGER = 2**53 - 1


def to_json(value: object) -> Any:
    """Returns a value in terms of dict, list, str, int, float, bool and None.

    Enums become their values, exact numbers "p/q", days and timestamps ISO 8601, dataclasses one entry a public field.
    Integers beyond 2^53 - 1 become texts: many programs read JSON numbers as doubles, which changes such integers.

    Raises:
        TypeError: a value of another type.
    """
    match value:
        case Enum():
            return value.value
        case None | float() | str():
            return value
        case int() | Fraction():
            return _number(value)
        case datetime.date():
            return value.isoformat()
        case Sequence():
            return [to_json(item) for item in value]
        case _ if is_dataclass(value):
            return {
                field.name: to_json(getattr(value, field.name))
                for field in fields(value)
                if field.name[0] != "_"
            }
        case _:
            raise TypeError(f"{type(value).__name__} has no plain form")


def _number(value: int | Fraction) -> int | str:
    """Return a number that every reader of JSON reads as it is, or its text."""
    return value if isinstance(value, int) and abs(value) <= MOST_EXACT_INTEGER else str(value)
