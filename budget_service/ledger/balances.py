"""What counts against the limit of one level, and how it moves on with time.

With a calendar window everything since its start counts, until its end. With a sliding window the level keeps a sum for
each day with charges, and each day stops counting by itself.

Every level of an account has a balance as soon as anything is charged or reserved below it, whether it has a limit or
not. Whatever its rule, it also counts by the day: what was charged on the present day, and the sums of all days before,
which are kept apart (`PastDay`). From them a level that meets its first limit, or another window, gets its balance.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from budget_service.ledger.values import NOTHING, Cost, capped_sum
from budget_service.ledger.windows import DaySpan, Microseconds, Span, Window, WindowRule


class Day(Struct, frozen=True, gc=False, array_like=True):
    """The charges of an earlier span that began at `start`. They count at least until `leaves_at`."""

    start: Microseconds
    leaves_at: Microseconds
    spent: Cost

    def counts(self, now: Microseconds, span: Span) -> bool:
        """Return whether the sum still counts."""
        return now < self.leaves_at or self.start >= span.counts_from


class PastDay(Struct, frozen=True, gc=False):
    """What was charged at a level on a day that is over. The day is named by its `start`."""

    start: Microseconds
    end: Microseconds
    spent: Cost


class Balance(Struct, frozen=True, gc=False, array_like=True):
    """What counts against the limit of one level.

    `rule` is the window rule that the balance was made for; without one only `day`, `today` and `reserved` mean
    anything. `window` is the last span that charges were admitted in: the whole window of a calendar rule, or one day
    of a sliding one, which then has a `leaves_at`. `spent` is all that counts, with the sums of `earlier` days;
    `reserved` is held by the open reservations that were admitted on days since `reserved_since`. `day` is the present
    day, on which `today` was charged; charges and reservations name the day that admitted them by its start. `open`
    reservations hold something of it, on whatever day.
    """

    window: Window
    day: DaySpan
    rule: WindowRule | None = None
    spent: Cost = NOTHING
    reserved: Cost = NOTHING
    reserved_since: Microseconds = 0
    leaves_at: Microseconds | None = None
    earlier: tuple[Day, ...] = ()
    today: Cost = NOTHING
    open: int = 0
    was_charged: bool = False

    @staticmethod
    def opened(rule: WindowRule, span: Span, since: Microseconds = 0) -> Balance:
        """Return an empty balance for what is charged in a span, from `since` on."""
        window, day = span.window.since(since), span.day.since(since)
        return Balance(window, day, rule, reserved_since=window.start, leaves_at=span.leaves_at)

    @staticmethod
    def without_rule(day: DaySpan) -> Balance:
        """Return an empty balance of a level that has no limit."""
        return Balance(Window(*day), day)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing counts."""
        return self.spent == NOTHING and self.reserved == NOTHING

    @property
    def is_unused(self) -> bool:
        """Return whether nothing is charged or reserved, neither in the window nor today."""
        return self.is_empty and self.today == NOTHING

    @property
    def is_dispensable(self) -> bool:
        """Return whether there is nothing that counts, or may by another rule or once a reservation is settled."""
        return self.is_unused and not self.was_charged and not self.open

    @property
    def counts_from(self) -> Microseconds:
        """When the first day begins that may count."""
        if self.leaves_at is None:
            # Of a balance that was rebuilt, a day may count that had begun before the window.
            return min(self.window.start, self.reserved_since)
        return min((self.window.start, *(day.start for day in self.earlier)))

    def counted_window(self, *, as_one: bool = False) -> Window:
        """Return the span from the oldest charge that counts to the time when budget returns.

        Args:
            as_one: Budget returns only when the last charge no longer counts.

        Returns:
            The span, without an end if budget never returns.
        """
        start = self.counts_from
        if self.leaves_at is None:
            return self.window if start == self.window.start else Window(start, self.window.end)
        leaving = [day.leaves_at for day in self.earlier if day.spent != NOTHING]
        if self.today != NOTHING or not leaving:
            leaving.append(self.leaves_at)
        first = max(leaving) if as_one else min(leaving)
        return Window(start, max(first, self.day.end))

    @property
    def last_end(self) -> Microseconds | None:
        """When a charge of the present span stops counting; None if never."""
        return self.window.end if self.leaves_at is None else self.leaves_at

    def counts(self, start: Microseconds) -> bool:
        """Return whether charges of the day that began at `start` count."""
        if self.leaves_at is None:
            return self.rule is not None and start >= self.reserved_since
        return start == self.day.start or any(day.start == start for day in self.earlier)

    def rule_counts_from(self) -> Microseconds:
        """Return when the first day begins that counts by the rule, whatever the balance says; see `counts`."""
        # The balance was last brought up to date at some time of its present day.
        return self.day.end if self.rule is None else self.rule.around(self.day.end - 1).counts_from

    def on(self, now: Microseconds, day: DaySpan, since: Microseconds) -> tuple[Balance, PastDay | None]:
        """Return the balance with its present day at `now`, and the day that has ended, if one has.

        Days do not overlap: each charge is in one. Where the zone of the days changes, a day may begin at any time.

        Args:
            now: The ledger's time.
            day: The day around `now` in the zone of the level's limit.
            since: When the present currency began: a day has charges of one currency.
        """
        first = max(day.start, since)
        if self.day.start >= first and now < self.day.end:
            return self, None
        # Replicas with different zones may have charged since the day began by this one: it begins now.
        start = first if self.day.start < since else now
        if now >= self.day.end:
            start = max(first, self.day.end)
        return self.moved_to(DaySpan(start, max(day.end, start + 1)))

    def moved_to(self, day: DaySpan) -> tuple[Balance, PastDay | None]:
        """Return the balance with a present day that is this one or has begun later, and the day that has ended."""
        if day == self.day:
            return self, None
        ended = PastDay(self.day.start, min(self.day.end, day.start), self.today)
        return replace(self, day=day, today=NOTHING), ended

    def is_as_of(self, now: Microseconds, day: DaySpan, rule: WindowRule, since: Microseconds) -> bool:
        """Return whether the balance is that of `now` already, by a rule, in the currency since a time."""
        is_in_window = self.leaves_at is not None or self.window.end is None or now < self.window.end
        return self.day == day and self.reserved_since >= since and is_in_window and self.rule == rule

    def rolled(self, now: Microseconds, span: Span, ended: PastDay | None) -> Balance | None:
        """Return the balance at `now` by its own rule, whose span that is; None if only the past days tell.

        Args:
            now: The ledger's time.
            span: The span around `now`.
            ended: The day that has just ended.
        """
        if span.leaves_at is not None:
            return self if ended is None else self._slid(now, span, ended)
        if self.window.end is None or now < self.window.end:
            return self
        if ended is None or ended.end > span.window.start:
            return None
        start = span.window.start
        return replace(self, window=span.window, spent=NOTHING, reserved=NOTHING, reserved_since=start)

    def _slid(self, now: Microseconds, span: Span, ended: PastDay) -> Balance:
        # A day without a charge is kept too: a reservation of it may still be settled.
        days = (*self.earlier, Day(ended.start, self.leaves_at or 0, ended.spent))
        earlier = tuple(day for day in days if day.counts(now, span))
        spent = capped_sum((self.today, *(day.spent for day in earlier)))
        return replace(self, window=Window(*self.day), spent=spent, leaves_at=span.leaves_at, earlier=earlier)

    def rebuilt(self, rule: WindowRule, span: Span, past: Iterable[PastDay], since: Microseconds) -> Balance:
        """Return the balance that another rule has made of the same charges, without what is reserved.

        A day that is partly in the window counts as a whole.

        Args:
            rule: The rule.
            span: Its span around now.
            past: The days before the present one.
            since: Where charges before do not count because a new currency has begun; 0: they do.
        """
        counted = [each for each in past if each.end > span.counts_from and each.start >= since]
        spent = capped_sum((self.today, *(each.spent for each in counted)))
        window = span.window.since(since) if span.leaves_at is None else Window(*self.day)
        first = min((max(span.counts_from, since), self.day.start, *(each.start for each in counted)))
        sliding = () if span.leaves_at is None else counted
        earlier = tuple(Day(each.start, rule.leaves_at(each.end), each.spent) for each in sliding)
        return replace(
            self,
            rule=rule,
            window=window,
            spent=spent,
            reserved=NOTHING,
            reserved_since=first,
            leaves_at=span.leaves_at,
            earlier=earlier,
        )

    def forgetting_rule(self) -> Balance:
        """Return the balance without what only counts by its rule."""
        empty = Balance.without_rule(self.day)
        return replace(
            empty,
            reserved=self.reserved,
            reserved_since=self.reserved_since,
            today=self.today,
            open=self.open,
            was_charged=self.was_charged,
        )

    def charged(self, start: Microseconds, cost: Cost) -> Balance:
        """Return the balance after a charge that was admitted on the day that began at `start`.

        If that is not the present day, the sum of the past one has to be changed too.
        """
        is_present = start == self.day.start
        today = self.today + cost if is_present else self.today
        if not self.counts(start):
            return replace(self, today=today, was_charged=True)
        earlier = self.earlier
        if earlier and not is_present:
            earlier = tuple(
                replace(day, spent=day.spent + cost) if day.start == start else day for day in earlier
            )
        return Balance(
            self.window,
            self.day,
            self.rule,
            self.spent + cost,
            self.reserved,
            self.reserved_since,
            self.leaves_at,
            earlier,
            today,
            self.open,
            True,
        )

    def refunded(self, start: Microseconds, cost: Cost) -> Balance:
        """Return the balance without a part of what was charged on the day that began at `start`; see `charged`."""
        today = self.today - cost if start == self.day.start else self.today
        if not self.counts(start):
            return replace(self, today=today)
        earlier = tuple(
            replace(day, spent=day.spent - cost) if day.start == start != self.day.start else day
            for day in self.earlier
        )
        return replace(self, spent=self.spent - cost, earlier=earlier, today=today)

    def with_reserved(self, reserved: Cost, opened: int = 0) -> Balance:
        """Return the balance with another sum of what is held, and so many more open reservations."""
        return Balance(
            self.window,
            self.day,
            self.rule,
            self.spent,
            reserved,
            self.reserved_since,
            self.leaves_at,
            self.earlier,
            self.today,
            self.open + opened,
            self.was_charged,
        )
