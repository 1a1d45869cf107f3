"""Values as results show them: those of elements, and numbers with their intervals."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from gris_api.dp.v1 import dp_pb2

from pinot_connector.coverage import Coverage, Ends, InCells
from pinot_connector.days import date_of
from pinot_connector.engines.base import ColumnType, Element
from pinot_connector.errors import IntegrityError
from pinot_connector.value_parameters import ShownNumber
from pinot_connector.views import exact

ShownScalar: TypeAlias = str | int | bool | datetime.date


@dataclass(frozen=True)
class AggregateValue:
    """A sum, an average or a quantile with the ends beside it; all are exact, in the column's units.

    The ends of a quantile are those of the public cell that was chosen, and its value is the middle of that. How far
    its rank may be off says `PrivateResult.rank_errors`.
    """

    value: Fraction
    interval: Ends[Fraction]


@dataclass(frozen=True)
class DayValue:
    """A quantile of a column of days with the first and the last day of its cell; else as an `AggregateValue`."""

    value: datetime.date
    interval: Ends[datetime.date]


ShownValue: TypeAlias = AggregateValue | DayValue


def numbers_of(
    message: dp_pb2.AggregateValues,
) -> dp_pb2.SumSteps | dp_pb2.ExactNumbers:
    """Returns the numbers of a sum or an average, in the form in which a message has them.

    Raises:
        IntegrityError: it has them in none that this version knows.
    """
    if message.HasField("steps"):
        return message.steps
    if not message.HasField("exact"):
        raise IntegrityError("a service says something that this version does not know")
    return message.exact


def aggregate_values(message: dp_pb2.AggregateValues, shown: ShownNumber) -> list[AggregateValue | None]:
    """Returns the sums or averages of a message, None where there is none to show.

    Args:
        message: the numbers, of each as many.
        shown: what they are.

    Raises:
        IntegrityError: one of them is no number.
    """
    numbers = numbers_of(message)
    if isinstance(numbers, dp_pb2.ExactNumbers):
        return exact_values(numbers, shown.coverage)
    # Fractions are divided only once: this is what takes the time of a long list.
    step, over = shown.quantum.numerator, 2 * shown.quantum.denominator
    values, lower, upper = (
        [Fraction(each * step, over) for each in column]
        for column in (numbers.values, numbers.lower, numbers.upper)
    )
    return list(map(AggregateValue, values, map(shown.coverage.ends, lower, upper)))


def exact_values(
    message: dp_pb2.ExactNumbers | dp_pb2.QuantileValues, covers: Coverage | InCells
) -> list[AggregateValue | None]:
    """Returns the values that exact numbers are, None where there is none to show.

    Raises:
        IntegrityError: one of them is no number.
    """
    ends = zip(message.values, message.lower, message.upper, strict=True)
    return [
        AggregateValue(exact(value), covers.ends(exact(lower), exact(upper))) if value else None
        for value, lower, upper in ends
    ]


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
