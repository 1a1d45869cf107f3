"""What a root account counts in, and how one currency follows another.

Amounts of two currencies are never added up. From the moment at which a new currency begins, a level at which anything
of the last one still counts has nothing left, however little that is: what a unit was worth before says nothing about
what it is worth now. When the last of it is gone by the level's own window, the level begins anew. So a new currency
gives no budget back early, whatever moment is chosen; a good moment only makes the wait short.
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

    An empty `unit_id`: nothing was charged yet. An empty `next_unit_id`: no other currency is planned.
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
        """The currency when all that is planned has come."""
        return self.at(END_OF_TIME)

    def charged(self, unit_id: str) -> Currency:
        """Return the currency after a charge in `unit_id`: the first one fixes it."""
        return self if self.unit_id else replace(self, unit_id=unit_id)

    def followed_by(self, unit_id: str, since: Microseconds) -> Currency:
        """Return the currency with another one planned, or none if `unit_id` is empty."""
        return replace(self, next_unit_id=unit_id, next_since=since)


# That of a root before its first charge.
UNUSED = Currency()


def window_before(rules: Iterable[WindowRule], now: Microseconds) -> Window:
    """Return the span around `now` at whose end a new currency begins under these rules; no end: never.

    It is the first refresh of the windows that are refreshed least often, so that most levels begin anew with it. The
    days of a sliding window are asked last: they leave after it anyway, one by one. For every moment of the span the
    answer is the same.
    """
    found = tuple(rules)
    if any(rule.period is Period.NEVER for rule in found):
        return Window(0, None)
    coarsest = next(period for period in _COARSEST if any(rule.period is period for rule in found))
    windows = [rule.around(now).window for rule in found if rule.period is coarsest]
    ends = [window.end for window in windows if window.end is not None]
    return Window(max(window.start for window in windows), min(ends))
