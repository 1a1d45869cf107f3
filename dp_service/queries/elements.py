"""From values of policies and questions to values in elements, where a day is a number."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from dp_service.queries.filters import Value
from dp_service.terms import Element, Scalar

_UNIX_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
_UNIX_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


def days_of(date: datetime.date) -> int:
    """Return the number of days from 1970-01-01 to a day."""
    return date.toordinal() - _UNIX_EPOCH_ORDINAL


def date_of(days: int) -> datetime.date:
    """Return the day that is `days` after 1970-01-01.

    Raises:
        ValueError, OverflowError: The day is outside the years 1 to 9999.
    """
    return datetime.date.fromordinal(days + _UNIX_EPOCH_ORDINAL)


def microseconds_of(timestamp: datetime.datetime) -> int:
    """Return the number of microseconds from 1970-01-01T00:00Z to a timestamp, which has a zone."""
    return (timestamp - _UNIX_EPOCH) // _MICROSECOND


def timestamp_of(microseconds: int) -> datetime.datetime:
    """Return the timestamp, in UTC, that is so many microseconds after 1970-01-01T00:00Z.

    Raises:
        OverflowError: It is outside the years 1 to 9999.
    """
    return _UNIX_EPOCH + microseconds * _MICROSECOND


def scalars(values: Sequence[Value]) -> tuple[Scalar, ...]:
    """Return values in the form that they have in elements."""
    return tuple(days_of(value) if isinstance(value, datetime.date) else value for value in values)


def elements_of_domain(domain: Sequence[tuple[Value, ...]]) -> tuple[Element, ...]:
    """Return a domain as elements in ascending order."""
    return tuple(sorted(map(scalars, domain)))
