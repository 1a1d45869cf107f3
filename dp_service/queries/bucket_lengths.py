"""How long a bucket of time is, and on which day of the calendar it begins."""

from __future__ import annotations

import datetime
from enum import StrEnum

_LAST_YEAR = datetime.date.max.year
_ONE_DAY = datetime.timedelta(days=1)


class BucketLength(StrEnum):
    """The length of a bucket, by its name in SQL."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"

    def first_day(self, day: datetime.date) -> datetime.date:
        """Return the first day of the bucket that a day is in.

        >>> [str(length.first_day(datetime.date(2024, 12, 31))) for length in BucketLength]
        ['2024-12-31', '2024-12-30', '2024-12-01', '2024-10-01', '2024-01-01']
        """
        match self:
            case BucketLength.DAY:
                return day
            case BucketLength.WEEK:
                # The first day of year 1 is a Monday, so no week begins before it.
                return day - datetime.timedelta(days=day.weekday())
            case BucketLength.MONTH:
                return day.replace(day=1)
            case BucketLength.QUARTER:
                return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
            case BucketLength.YEAR:
                return day.replace(month=1, day=1)

    def day_after(self, first: datetime.date) -> datetime.date:
        """Return the first day after a bucket that begins with `first`.

        Raises:
            OverflowError: It is after the year 9999.
        """
        match self:
            case BucketLength.DAY:
                return first + _ONE_DAY
            case BucketLength.WEEK:
                return first + 7 * _ONE_DAY
            case BucketLength.MONTH:
                return _months_later(first, 1)
            case BucketLength.QUARTER:
                return _months_later(first, 3)
            case BucketLength.YEAR:
                return _months_later(first, 12)


def _months_later(first: datetime.date, months: int) -> datetime.date:
    year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
    if year > _LAST_YEAR:
        raise OverflowError("a bucket ends after the year 9999")
    return datetime.date(year, month + 1, 1)
