"""How much a guarantee counts of a level: its limit or what was spent, in each window that an account's meets."""

from __future__ import annotations

import datetime

from pinot_connector.budgets import Cost, Level, Mode

MAX_UNITS = 2**53
_HOUR, _DAY = datetime.timedelta(hours=1), datetime.timedelta(days=1)


def used(level: Level) -> Cost:
    """Returns what counts against a level's limit: what was spent, and what open reservations hold."""
    spent, reserved = level.spent, level.reserved
    return Cost(spent.information + reserved.information, spent.calls + reserved.calls, level.limit.unit_id)


def larger(one: Cost, other: Cost) -> Cost:
    """Returns the larger of two costs in each unit, in the currency of the first."""
    return Cost(max(one.information, other.information), max(one.calls, other.calls), one.unit_id)


def counted(level: Level) -> Cost:
    """Returns what may have been paid for in one window of a level.

    That is its limit, or what counts against it where that is more: a limit that was lowered, or enforced only later,
    takes back nothing that was shown.
    """
    return larger(level.limit, used(level))


def counted_within(shared: Level, own: Level) -> Cost | None:
    """Returns what may be paid for at a shared level while a window of `own` lasts; None: nothing bounds it."""
    times = windows_met(shared, own)
    if shared.mode is not Mode.ENFORCE or times is None:
        return None
    once = counted(shared)
    total = Cost(once.information * times, once.calls * times, once.unit_id)
    return total if max(total.information, total.calls) <= MAX_UNITS else None


def windows_met(shared: Level, own: Level) -> int | None:
    """Returns an upper bound of how many windows of `shared` a window of `own` meets; None: there is none.

    Windows that are the same count once, a shared one that is never refreshed too; others at least twice, since the
    next window may lie across two even if the present one does not.
    """
    if shared.window_end is None or (shared.window_start, shared.window_end) == (
        own.window_start,
        own.window_end,
    ):
        return 1
    if own.window_end is None or own.window_start is None or shared.window_start is None:
        return None
    length = _least_length(shared.window_end - shared.window_start)
    before = shared.window_start - own.window_start
    after = own.window_end - shared.window_end
    return max(2, 1 + _times(before, length) + _times(after, length))


def _least_length(told: datetime.timedelta) -> datetime.timedelta:
    """Returns what no window of a level is shorter than, by the one that is told of it.

    Of a sliding window the ledger tells the span from the oldest charge that counts to the first that leaves: less than
    two windows. None slides by one day, and no two months differ by half.
    """
    return min(told, _DAY) if told <= _DAY + _HOUR else told / 2


def _times(span: datetime.timedelta, length: datetime.timedelta) -> int:
    # Days of a time zone differ by an hour.
    return -(-(span + _HOUR) // length) if span > datetime.timedelta() else 0
