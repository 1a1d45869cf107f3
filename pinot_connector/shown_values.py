"""Values as results show them: those of elements, and numbers with their intervals."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
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
