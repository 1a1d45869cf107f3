"""Values as Python, NumPy and pandas have them, brought to the types that columns have.

Neither library is needed here: their scalars are known by the methods that they share.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence, Set
from decimal import Decimal
from numbers import Integral
from typing import Any

from pinot_connector.errors import InvalidQuestion
from pinot_connector.json_values import MOST_EXACT_INTEGER

# No integer of 64 bits has more.
_DIGITS = 20
_MIDNIGHT = datetime.time()
_EXPECTED = "expected a text, a 64-bit integer, a truth value, a day or a timestamp"


def plain_value(field: str, value: Any) -> str | int | bool | datetime.date:
    """Returns the value of a column that a value stands for.

    Whole floats and decimals are integers; a time at midnight without a zone is the day that begins then.

    Args:
        field: what errors call the value: the parameter, or the column.
        value: of Python, NumPy or pandas.

    Raises:
        InvalidQuestion: it stands for none; the message says of which type it is, and never what it is.
    """
    match value := _of_python(field, value):
        case float() | Decimal():
            return _whole(field, value)
        case datetime.datetime() if getattr(value, "nanosecond", 0):
            raise InvalidQuestion(field, "expected timestamps of whole microseconds")
        case datetime.datetime() if value.tzinfo is None and value.time() == _MIDNIGHT:
            return value.date()
        case str() | bool() | datetime.date():
            return value
        case Integral():
            return _of_64_bits(field, int(value))
    raise _refused(field, value)


def several(value: Any) -> list[Any] | None:
    """Returns the values of a list, a tuple, a set, an array or a column of a frame; None: it is a single value."""
    if isinstance(value, Sequence | Set) and not isinstance(value, str | bytes | bytearray):
        return list(value)
    return list(value) if getattr(value, "ndim", 0) == 1 and hasattr(value, "__array__") else None


def _of_python(field: str, value: Any) -> Any:
    """Returns what Python has for a scalar of NumPy."""
    kind = type(value)
    if kind.__name__ in ("timedelta64", "NaTType"):
        raise _refused(field, value)
    if kind.__name__ == "datetime64":
        return _microseconds(field, value)
    if kind.__name__ in ("bool", "bool_"):
        return bool(value)
    is_float = kind.__module__ == "numpy" and hasattr(value, "is_integer") and not isinstance(value, Integral)
    return float(value) if is_float else value


def _whole(field: str, value: float | Decimal) -> int:
    of_decimal = isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _DIGITS
    is_finite = of_decimal or (isinstance(value, float) and math.isfinite(value))
    if not is_finite or value != int(value):
        raise InvalidQuestion(field, f"{_EXPECTED}, got {type(value).__name__}: a number that is not whole")
    if isinstance(value, float) and abs(value) > MOST_EXACT_INTEGER:
        raise InvalidQuestion(
            field, f"expected integers beyond {MOST_EXACT_INTEGER} as int: a float changes them"
        )
    return _of_64_bits(field, int(value))


def _of_64_bits(field: str, value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise InvalidQuestion(field, f"{_EXPECTED}, got a larger integer")
    return value


def _microseconds(field: str, value: Any) -> datetime.date:
    """Returns a day or a time of NumPy, whose unit may be finer than Python's."""
    found = value.astype("datetime64[us]")
    if found != value:
        raise InvalidQuestion(field, "expected timestamps of whole microseconds, and no NaT")
    plain = found.item()
    if not isinstance(plain, datetime.date):
        raise InvalidQuestion(field, "expected a timestamp between the years 1 and 9999")
    return plain


def _refused(field: str, value: object) -> InvalidQuestion:
    return InvalidQuestion(field, f"{_EXPECTED}, got {type(value).__name__}")
