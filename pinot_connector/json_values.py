"""Converts values of this package to what JSON can hold."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any


def to_json(value: object) -> Any:
    """Returns a value in terms of dict, list, str, int, float, bool and None.

    Enums become their values, exact numbers "p/q", days and timestamps ISO 8601, dataclasses one entry a field.

    Raises:
        TypeError: a value of another type.
    """
    match value:
        case Enum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
        case Fraction():
            return str(value)
        case datetime.date():
            return value.isoformat()
        case Sequence():
            return [to_json(item) for item in value]
        case _ if is_dataclass(value):
            return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
        case _:
            raise TypeError(f"{type(value).__name__} has no plain form")
