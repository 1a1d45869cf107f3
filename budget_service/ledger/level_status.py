"""The state of a level with a limit, for those who pay, from its balance and those of their blocks."""

from __future__ import annotations

from collections.abc import Sequence

from budget_service.ledger.balances import Balance
from budget_service.ledger.outcomes import LevelStatus
from budget_service.ledger.values import NOTHING, Cost, LevelLimit, part_taken
from budget_service.ledger.windows import Microseconds, Window


def status_of(
    each: LevelLimit, balance: Balance, own: Sequence[Balance], others: Sequence[Balance], since: Microseconds
) -> LevelStatus:
    """Return the state of a level.

    Args:
        each: The level and its limit.
        balance: What everybody has paid there.
        own: What each block that pays has paid alone.
        others: What further blocks have paid of which something in an older currency may count: under another division
            their members may be of the blocks that pay.
        since: When the present currency began. Where charges in an older one still count, nothing is left.
    """
    limit, depth = each.limit, each.level.depth
    old = [
        paid.counted_window(as_one=True) for paid in (balance, *own, *others) if paid.reserved_since < since
    ]
    if old:
        ends = [window.end for window in old if window.end is not None]
        window = Window(min(each.start for each in old), max(ends) if len(ends) == len(old) else None)
        spent, reserved = limit.maximum, NOTHING
    else:
        window = _window_of(balance, own, limit.maximum)
        spent, reserved = balance.counted_with(own)
    return LevelStatus(depth, limit.maximum, limit.mode, window, spent, reserved)


def _window_of(balance: Balance, own: Sequence[Balance], limit: Cost) -> Window:
    """Return the span from the oldest charge that counts to when the block that is shortest has budget again.

    Of several that are as short, to when the last one has.
    """
    window = balance.counted_window()
    if not own:
        return window
    taken = [part_taken(limit, each.spent, each.reserved) for each in own]
    most = max(taken)
    windows = [each.counted_window() for each, part in zip(own, taken, strict=True) if part == most]
    shortest = max(windows, key=lambda each: each.until)
    ends = [end for end in (window.end, shortest.end) if end is not None]
    return Window(min([window.start, *[each.counts_from for each in own]]), min(ends, default=None))
