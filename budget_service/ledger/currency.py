"""The currency of a root account, and how one currency follows another.

Amounts of two currencies are never added up. When a new currency begins, a level at which anything of the old one
still counts has nothing left, however little that is: the value of an old unit says nothing about the value of a new
one. The level begins anew when the last old charge stops counting by the level's own window. So a new currency never
gives budget back early; a well chosen time only makes the wait short.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from budget_service.ledger.windows import Microseconds, Period, Window, WindowRule

# The first of these that a root has is refreshed least often of all it has.
_COARSEST = (Period.MONTH, Period.WEEK, Period.DAY, Period.SLIDING)
END_OF_TIME: Microseconds = 2**63 - 1


class Currency(Struct, frozen=True, gc=False):
    """A root counts in `unit_id` since `since`, and from `next_since` on in `next_unit_id`.

    An empty `unit_id`: nothing was charged yet, nor lent to a region. An empty `next_unit_id`: no other currency is
    planned.
    """

    unit_id: str = ""
    since: Microseconds = 0
    next_unit_id: str = ""
    next_since: Microseconds = 0

    def at(self, now: Microseconds) -> Currency:
        """Return the currency as it is at `now`."""
        if self.next_unit_id and now >= self.next_since:
            return Currency(self.next_unit_id, self.next_since)
        return self

    @property
    def at_last(self) -> Currency:
        """The currency after the planned one, if any, has begun."""
        return self.at(END_OF_TIME)

    def charged(self, unit_id: str) -> Currency:
        """Return the currency after a charge in `unit_id`, or a share that is lent: the first one fixes it."""
        return self if self.unit_id else replace(self, unit_id=unit_id)

    def followed_by(self, unit_id: str, since: Microseconds) -> Currency:
        """Return the currency with another one planned, or none if `unit_id` is empty."""
        return replace(self, next_unit_id=unit_id, next_since=since)


# The currency of a root before its first charge, or share.
UNUSED = Currency()


def window_before(rules: Iterable[WindowRule], now: Microseconds) -> Window:
    """Return the span around `now` at whose end a new currency begins.

    That is the first refresh of the windows that are refreshed least often, so that most levels begin anew with it.
    Days of sliding windows come last in this order: they stop counting one by one anyway. The answer is the same for
    every time in the span.

    Args:
        rules: The windows of all limits of the root.
        now: The ledger's time.

    Returns:
        The span; without an end if the currency can never begin.
    """
    found = tuple(rules)
    if any(rule.period is Period.NEVER for rule in found):
        return Window(0, None)
    coarsest = next(period for period in _COARSEST if any(rule.period is period for rule in found))
    windows = [rule.around(now).window for rule in found if rule.period is coarsest]
    ends = [window.end for window in windows if window.end is not None]
    return Window(max(window.start for window in windows), min(ends))
