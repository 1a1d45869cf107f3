"""What counts against the limit of one level, and how it moves on with time.

With a calendar window everything since its start counts, until its end. With a sliding window the level keeps a sum for
each day with charges, and each day stops counting by itself.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from budget_service.ledger.values import NOTHING, Cost
from budget_service.ledger.windows import Microseconds, Span, Window


class Day(Struct, frozen=True, gc=False):
    """The charges of an earlier span that began at `start`. They count at least until `leaves_at`."""

    start: Microseconds
    leaves_at: Microseconds
    spent: Cost

    def counts(self, now: Microseconds, span: Span) -> bool:
        """Return whether the sum still counts. A changed rule may keep it longer, but never drops it sooner."""
        return now < self.leaves_at or self.start >= span.counts_from


class Balance(Struct, frozen=True, gc=False):
    """What counts against the limit of one level.

    `window` is the last span that charges were admitted in: the whole window of a calendar rule, or one day of a
    sliding one, which then has a `leaves_at`. `spent` is all that counts, with the sums of `earlier` days; `reserved`
    is held by the open reservations that were admitted in spans since `reserved_since`.
    """

    window: Window
    spent: Cost = NOTHING
    reserved: Cost = NOTHING
    reserved_since: Microseconds = 0
    leaves_at: Microseconds | None = None
    earlier: tuple[Day, ...] = ()

    @staticmethod
    def opened(span: Span, start: Microseconds) -> Balance:
        """Return an empty balance in a span that begins at `start`."""
        window = Window(start, span.window.end)
        return Balance(window, reserved_since=start, leaves_at=span.leaves_at)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing counts."""
        return self.spent == NOTHING and self.reserved == NOTHING

    def counted_window(self, *, as_one: bool = False) -> Window:
        """Return the span from the oldest charge that counts to the time when budget returns.

        Args:
            as_one: Budget returns only when the last charge no longer counts.

        Returns:
            The span, without an end if budget never returns.
        """
        if not self.earlier and self.leaves_at is None:
            return self.window
        start = min((self.window.start, *(day.start for day in self.earlier)))
        if self.leaves_at is None or self.window.end is None:
            return Window(start, self.window.end)
        leaving = [day.leaves_at for day in self.earlier if day.spent != NOTHING]
        if self.today != NOTHING or not leaving:
            leaving.append(self.leaves_at)
        # A day that a changed rule keeps longer is examined again when the next day begins.
        first = max(leaving) if as_one else min(leaving)
        return Window(start, max(first, self.window.end))

    @property
    def today(self) -> Cost:
        """What was charged in the last span itself."""
        rest = self.spent
        for day in self.earlier:
            rest = rest - day.spent
        return rest

    @property
    def last_end(self) -> Microseconds | None:
        """When a charge of the present span stops counting; None if never."""
        return self.window.end if self.leaves_at is None else self.leaves_at

    def counts(self, start: Microseconds) -> bool:
        """Return whether charges of the span that began at `start` count."""
        return start == self.window.start or any(day.start == start for day in self.earlier)

    def has_room(self, cost: Cost, maximum: Cost) -> bool:
        """Return whether `cost` may be added without going above `maximum`."""
        spent, reserved = self.spent, self.reserved
        return (
            spent.information + reserved.information + cost.information <= maximum.information
            and spent.calls + reserved.calls + cost.calls <= maximum.calls
        )

    def at(self, now: Microseconds, span: Span) -> Balance:
        """Return the balance at `now`.

        A changed configuration gives no budget back at once: charges count until both the old and the new rule drop
        them. Only the end of a calendar window is the earlier one of the two.

        Args:
            now: The ledger's time.
            span: The span around `now` by today's configuration.
        """
        if self.leaves_at is None and span.leaves_at is None and self.window == span.window:
            return self
        window = self.window.at(now, span.window)
        is_over = window.start != self.window.start
        if self.leaves_at is None and span.leaves_at is None:
            return Balance.opened(span, window.start) if is_over else replace(self, window=window)
        if self.leaves_at is None:
            return Balance.opened(span, window.start) if is_over else self._sliding(now, window, span)
        moved = self._with_day_ended(window) if is_over else self
        if span.leaves_at is None:
            # The end of a day does not end a calendar window.
            return moved._without_old_days(now, span, Window(window.start, span.window.end), None)
        return moved._sliding(now, window, span)

    def charged(self, start: Microseconds, cost: Cost) -> Balance:
        """Return the balance after a charge that was admitted in the span that began at `start`, which counts."""
        earlier = self.earlier
        if start != self.window.start:
            earlier = tuple(
                replace(day, spent=day.spent + cost) if day.start == start else day for day in earlier
            )
        spent = self.spent + cost
        return Balance(self.window, spent, self.reserved, self.reserved_since, self.leaves_at, earlier)

    def charged_in(self, start: Microseconds) -> Cost:
        """Return what was charged in the span that began at `start`, which counts."""
        if start == self.window.start:
            return self.today
        return next(day.spent for day in self.earlier if day.start == start)

    def refunded(self, start: Microseconds, cost: Cost) -> Balance:
        """Return the balance without a part of what was charged in the span that began at `start`, which counts."""
        earlier = tuple(
            replace(day, spent=day.spent - cost) if day.start == start != self.window.start else day
            for day in self.earlier
        )
        return replace(self, spent=self.spent - cost, earlier=earlier)

    def with_reserved(self, reserved: Cost) -> Balance:
        """Return the balance with another sum of what is held."""
        window, spent, since = self.window, self.spent, self.reserved_since
        return Balance(window, spent, reserved, since, self.leaves_at, self.earlier)

    def _sliding(self, now: Microseconds, window: Window, span: Span) -> Balance:
        return self._without_old_days(now, span, window, max(self.leaves_at or 0, span.leaves_at or 0))

    def _with_day_ended(self, window: Window) -> Balance:
        # A day without a charge is kept too: a reservation of it may still be settled.
        day = Day(self.window.start, self.leaves_at or 0, self.today)
        return replace(self, window=window, leaves_at=0, earlier=(*self.earlier, day))

    def _without_old_days(
        self, now: Microseconds, span: Span, window: Window, leaves_at: Microseconds | None
    ) -> Balance:
        earlier = tuple(day for day in self.earlier if day.counts(now, span))
        spent = self.today
        for day in earlier:
            spent = spent + day.spent
        return replace(self, window=window, spent=spent, leaves_at=leaves_at, earlier=earlier)
