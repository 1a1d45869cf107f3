"""Values as results show them: those of elements, and numbers with their intervals."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias

from pinot_connector.days import date_of
from pinot_connector.engines.base import ColumnType, Element
from pinot_connector.errors import IntegrityError

ShownScalar: TypeAlias = str | int | bool | datetime.date


@dataclass(frozen=True)
class AggregateValue:
    """A sum, an average or a quantile with its interval, both ends inclusive; all are exact, in the column's units.

    The interval of a quantile is the public cell that was chosen, and its value is the middle of that. How far its rank
    may be off says `PrivateResult.rank_errors`.
    """

    value: Fraction
    interval: tuple[Fraction, Fraction]


@dataclass(frozen=True)
class DayValue:
    """A quantile of a column of days with the first and the last day of its cell; else as an `AggregateValue`."""

    value: datetime.date
    interval: tuple[datetime.date, datetime.date]


ShownValue: TypeAlias = AggregateValue | DayValue

_DIGITS = 2
_MOST_DIGITS = 12


def written(
    value: Fraction | datetime.date, interval: tuple[Fraction | datetime.date, Fraction | datetime.date]
) -> tuple[str, str, str]:
    """Returns a value and both ends of its interval as people read them: decimals, or days as YYYY-MM-DD.

    Two digits behind the point, or as many as show two of the interval's width. What is written holds the interval: its
    lower end is rounded down, and its upper end up.
    """
    lower, upper = interval
    if not (isinstance(value, Fraction) and isinstance(lower, Fraction) and isinstance(upper, Fraction)):
        return str(value), str(lower), str(upper)
    digits = _digits(value, upper - lower)
    scale = 10**digits
    steps = round(value * scale), floor(lower * scale), ceil(upper * scale)
    nearest, below, above = (_decimal(each, digits) for each in steps)
    return nearest, below, above


def _digits(value: Fraction, width: Fraction) -> int:
    digits = _DIGITS
    if width > 0:
        while width * 10**digits < 10:
            digits += 1
        return digits
    while digits < _MOST_DIGITS and (value * 10**digits).denominator > 1:
        digits += 1
    return digits


def _decimal(steps: int, digits: int) -> str:
    whole, rest = divmod(abs(steps), 10**digits)
    sign = "-" if steps < 0 else ""
    return f"{sign}{whole}.{rest:0{digits}d}" if rest else f"{sign}{whole}"


def shown_values(kind: ColumnType, values: Sequence[Element]) -> Sequence[ShownScalar]:
    """Returns values as they are shown: numbers of days since 1970-01-01 as days.

    Raises:
        IntegrityError: a day outside the years 1 to 9999.
    """
    if kind is not ColumnType.DATE:
        return values
    try:
        return [date_of(int(days)) for days in values]
    except (ValueError, OverflowError):
        raise IntegrityError("dp_service sent a day outside the years 1 to 9999") from None
