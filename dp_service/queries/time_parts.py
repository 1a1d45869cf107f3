"""Parts of a time that come again: its hour, its weekday, its month, as a zone's clocks and calendar show them."""

from __future__ import annotations

import datetime
from enum import StrEnum

_MONTHS_OF_A_QUARTER = 3


class TimePart(StrEnum):
    """A part of a time, by its name in a policy; each is a whole number."""

    HOUR = "hour"
    WEEKDAY = "weekday"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"

    @property
    def values(self) -> range:
        """All numbers that it can be: weeks are those of ISO 8601, and weekdays from Monday, 1, to Sunday, 7."""
        return _VALUES[self]

    @property
    def in_sql(self) -> str:
        """Its name in SQL: a weekday is that of ISO 8601, for DOW counts from Sunday or from Monday."""
        return "ISODOW" if self is TimePart.WEEKDAY else self.upper()

    def of(self, local: datetime.datetime) -> int:
        """Return the part of what clocks show: what an engine's own function has to agree with.

        >>> [part.of(datetime.datetime(2024, 12, 30, 23, 59)) for part in TimePart]
        [23, 1, 30, 1, 12, 4]
        """
        match self:
            case TimePart.HOUR:
                return local.hour
            case TimePart.WEEKDAY:
                return local.isoweekday()
            case TimePart.DAY:
                return local.day
            case TimePart.WEEK:
                return local.isocalendar().week
            case TimePart.MONTH:
                return local.month
            case TimePart.QUARTER:
                return (local.month - 1) // _MONTHS_OF_A_QUARTER + 1


_VALUES = {
    TimePart.HOUR: range(24),
    TimePart.WEEKDAY: range(1, 8),
    TimePart.DAY: range(1, 32),
    TimePart.WEEK: range(1, 54),
    TimePart.MONTH: range(1, 13),
    TimePart.QUARTER: range(1, 5),
}
