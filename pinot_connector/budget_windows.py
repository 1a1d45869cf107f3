"""How much a guarantee counts on a level: its limit, in every window that overlaps the account's."""

from __future__ import annotations

import datetime

from pinot_connector.budgets import Cost, Level, Mode

MAX_UNITS = 2**53
_HOUR, _DAY = datetime.timedelta(hours=1), datetime.timedelta(days=1)


def used(level: Level) -> Cost:
    """Returns what counts against a level's limit: what was spent, and what open reservations hold."""
    spent, reserved = level.spent, level.reserved
    return Cost(spent.information + reserved.information, spent.calls + reserved.calls, level.limit.unit_id)


def covers(budget: Cost, spent: Cost) -> bool:
    """Returns whether no more was spent than a budget, in either unit."""
    return spent.information <= budget.information and spent.calls <= budget.calls


def counted(level: Level, largest: Cost | None) -> Cost | None:
    """Returns what may be paid for in one window of a level: the largest limit it had there; None if nothing bounds it.

    That is also where more counts against it than any limit that is known of. What was spent does not take its place:
    when to have spent it was the analysts' choice, and a guarantee needs a budget that was fixed beforehand.
    """
    if largest is None or not covers(largest, used(level)):
        return None
    # Of a shared level what is reserved is not reported, but whether it is too much for the present limit.
    return None if level.over_limit and covers(level.limit, largest) else largest


def counted_within(shared: Level, once: Cost | None, own: Level) -> Cost | None:
    """Returns what may be paid for on a shared level during a window of `own`; None: nothing bounds it.

    `once` is what `counted` says of the shared level.
    """
    times = overlapping_windows(shared, own)
    if shared.mode is not Mode.ENFORCE or times is None or once is None:
        return None
    total = Cost(once.information * times, once.calls * times, once.unit_id)
    return total if max(total.information, total.calls) <= MAX_UNITS else None


def overlapping_windows(shared: Level, own: Level) -> int | None:
    """Returns an upper bound on how many windows of `shared` overlap one of `own`; None: there is none.

    Equal windows, and a shared window that never ends, count once. All others count at least twice: the account's next
    window may overlap two even if the present one does not.
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


def _least_length(reported: datetime.timedelta) -> datetime.timedelta:
    """Returns a length that no window of a level is shorter than, from the window that the ledger reports.

    For a sliding window the ledger reports the span from the oldest charge that counts to the first that leaves: less
    than two windows. No window slides by one day, and no two months differ by half.
    """
    return min(reported, _DAY) if reported <= _DAY + _HOUR else reported / 2


def _times(span: datetime.timedelta, length: datetime.timedelta) -> int:
    # Days of a time zone differ by an hour.
    return -(-(span + _HOUR) // length) if span > datetime.timedelta() else 0
