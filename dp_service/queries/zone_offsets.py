"""By how much the clocks of a zone are ahead of UTC, from one change of clocks to the next.

Queries carry these numbers, so the zones that an engine knows, and their versions, take no part in which bucket a row
is in: it is always that of the policy's calendar.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

_SECOND = datetime.timedelta(seconds=1)
# Clocks that change and change back within this time are the same before and after.
_STEP = datetime.timedelta(days=1)


@dataclass(frozen=True)
class ZoneOffset:
    """So many seconds are clocks ahead of UTC until before `until`, in UTC; None: until the end of the range."""

    seconds: int
    until: datetime.datetime | None


@lru_cache(maxsize=256)
def zone_offsets(start: datetime.datetime, end: datetime.datetime, zone: str) -> tuple[ZoneOffset, ...]:
    """Return the offsets of a zone from `start` to before `end`, in UTC, in their order; each differs from the next.

    >>> utc = datetime.timezone.utc
    >>> spring = datetime.datetime(2024, 3, 1, tzinfo=utc), datetime.datetime(2024, 5, 1, tzinfo=utc)
    >>> [(each.seconds, str(each.until)) for each in zone_offsets(*spring, "Europe/Berlin")]
    [(3600, '2024-03-31 01:00:00+00:00'), (7200, 'None')]
    """
    return tuple(_offsets(start, end, ZoneInfo(zone)))


def _offsets(start: datetime.datetime, end: datetime.datetime, zone: ZoneInfo) -> Iterator[ZoneOffset]:
    last = end - datetime.timedelta.resolution
    at, seconds = start, _seconds(start, zone)
    while at < last:
        following = last if last - at < _STEP else at + _STEP
        changed = _seconds(following, zone)
        if changed != seconds:
            yield ZoneOffset(seconds, _change(at, following, seconds, zone))
            seconds = changed
        at = following
    yield ZoneOffset(seconds, None)


def _change(
    before: datetime.datetime, after: datetime.datetime, seconds: int, zone: ZoneInfo
) -> datetime.datetime:
    """Return the first whole second at which clocks no longer show `seconds`: they change at whole seconds."""
    low = before.replace(microsecond=0)
    high = after.replace(microsecond=0) + (_SECOND if after.microsecond else datetime.timedelta(0))
    while high - low > _SECOND:
        middle = low + (high - low) // _SECOND // 2 * _SECOND
        if _seconds(middle, zone) == seconds:
            low = middle
        else:
            high = middle
    return high


def _seconds(timestamp: datetime.datetime, zone: ZoneInfo) -> int:
    offset = timestamp.astimezone(zone).utcoffset()
    return 0 if offset is None else offset // _SECOND
