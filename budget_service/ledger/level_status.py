"""The state of a level with a limit, for those who pay, from its balance and the sums of their blocks."""

from __future__ import annotations

from budget_service.ledger.balances import Balance
from budget_service.ledger.block_sums import NO_SUMS, Paying, Sums
from budget_service.ledger.outcomes import LevelStatus
from budget_service.ledger.values import NOTHING, Cost, LevelLimit, capped_sum, part_taken
from budget_service.ledger.windows import Microseconds, Window


def status_of(each: LevelLimit, balance: Balance, paying: Paying, since: Microseconds) -> LevelStatus:
    """Return the state of a level.

    Args:
        each: The level and its limit.
        balance: What everybody has paid there.
        paying: What the blocks that pay have paid alone.
        since: When the present currency began. Where charges in an older one still count, nothing is left.
    """
    limit, depth = each.limit, each.level.depth
    old = None if balance.reserved_since >= since else balance.counted_window(as_one=True)
    if window := Window.around_both(old, paying.old):
        spent, reserved = limit.maximum, NOTHING
    else:
        window = _window_of(balance, paying, limit.maximum)
        spent, reserved = counted(balance, paying.sums)
    return LevelStatus(depth, limit.maximum, limit.mode, window, spent, reserved)


def counted(balance: Balance, own: Sums) -> tuple[Cost, Cost]:
    """Return the most that is spent for a member of some blocks, and what reservations add to that at most.

    The unit of a sum is that of the block which has most of it, so that the two amounts may be of different ones.

    Args:
        balance: What everybody has paid at the level.
        own: The largest sums of the blocks, beside what everybody has.
    """
    if own is NO_SUMS:
        return balance.spent, balance.reserved
    # Neither part of a sum is negative, and both together are the most that is spent and reserved for one block.
    return capped_sum((balance.spent, own.spent)), capped_sum((balance.reserved, own.taken - own.spent))


def _window_of(balance: Balance, paying: Paying, limit: Cost) -> Window:
    """Return the span from the oldest charge that counts to when the block that is shortest has budget again.

    Of several that are as short, to when the last one has.
    """
    window = balance.counted_window()
    if not paying.named:
        return window
    taken = [part_taken(limit, each.sums.taken) for each in paying.named]
    most = max(taken)
    windows = [each.window for each, part in zip(paying.named, taken, strict=True) if part == most]
    shortest = max(windows, key=lambda each: each.until)
    ends = [end for end in (window.end, shortest.end) if end is not None]
    return Window(min(window.start, paying.start), min(ends, default=None))
