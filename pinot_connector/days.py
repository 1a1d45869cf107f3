"""Days as numbers, as messages and engines hold them: the days since 1970-01-01."""

from __future__ import annotations

import datetime

_EPOCH = datetime.date(1970, 1, 1).toordinal()


def days_of(date: datetime.date) -> int:
    """Returns the number of days from 1970-01-01 to a day."""
    return date.toordinal() - _EPOCH


def date_of(days: int) -> datetime.date:
    """Returns the day that is `days` after 1970-01-01.

    Raises:
        ValueError, OverflowError: a day outside the years 1 to 9999.
    """
    return datetime.date.fromordinal(days + _EPOCH)


FIRST_DAY, LAST_DAY = days_of(datetime.date.min), days_of(datetime.date.max)
"""The years 1 to 9999, beyond which Python has no days."""
