"""The changes of one decision while it is made: the arithmetic of balances, without the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.known_blocks import KnownBlocks
from budget_service.ledger.level_status import counted, status_of
from budget_service.ledger.outcomes import LevelStatus
from budget_service.ledger.state import (
    DayChange,
    HistoryNeededError,
    JournalEntry,
    Reservation,
    Snapshot,
    forfeit_of,
    held_since,
)
from budget_service.ledger.values import (
    NOTHING,
    Account,
    Cost,
    Hold,
    LevelLimit,
    Limit,
    Mode,
    capped_sum,
    least_left,
)
from budget_service.ledger.windows import DAY, DaySpan, Microseconds, Span, day_around


class Draft:
    """A snapshot brought up to `now`: its currency, lapsed reservations ended, the windows of the account's levels.

    It is made for one decision and thrown away; the snapshot stays as it was. The balances of a level's blocks have the
    level's own days and windows, so that each with the level's is that of a ledger of the block's own.

    Args:
        snapshot: The state of the root.
        levels: The levels of the account that have a limit.
        now: The ledger's time.
        path: All levels that charges of the request count on.

    Raises:
        HistoryNeededError: The snapshot needs the past days too.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        levels: tuple[LevelLimit, ...],
        now: Microseconds,
        path: tuple[Account, ...] = (),
    ) -> None:
        if now < snapshot.root.last_time:
            raise ValueError("the ledger's time never goes back")
        for each in levels:
            if each.level not in path:
                # Its balance was not loaded, and would be taken for empty.
                raise ValueError("a level is none of the request's account")
        self.now = now
        self.currency = snapshot.root.currency.at(now)
        self.balances = dict(snapshot.balances)
        self.opened: Reservation | None = None
        self.ended: list[str] = []
        self.journal: list[JournalEntry] = []
        self._days: dict[tuple[Account, Microseconds], DayChange] = {}
        self._snapshot = snapshot
        self._named = snapshot.blocks
        self.blocks = KnownBlocks(snapshot, now, self.currency.since)
        self._changed: dict[Account, None] = {}
        self.levels = levels
        self._path = path
        for reservation in snapshot.due:
            self.expire(reservation)
        for each in levels:
            self._refresh(each)
        if len(path) > len(levels):
            self._refresh_unlimited()

    @property
    def days(self) -> tuple[DayChange, ...]:
        """What was charged or given back on days that are over."""
        return tuple(self._days.values())

    @property
    def changed_balances(self) -> Mapping[Account, Balance | None]:
        """The balances to be written; None for a block that has nothing which may count again: its balance goes."""
        kept = {level: self.balances[level] for level in self._changed}
        before = self._snapshot.balances
        return {
            level: None if level.block and each.is_dispensable else each
            for level, each in kept.items()
            if level in before or not (level.block and each.is_dispensable)
        }

    @property
    def leaf(self) -> Balance:
        """The balance of the account itself, in whose windows its payments count."""
        return self.balances[self.levels[-1].level]

    def has_room(self, cost: Cost) -> bool:
        """Return whether `cost` may be added to every level without going above a limit, whatever its mode."""
        for each in self.levels:  # noqa: SIM110 - a generator takes twice as long
            if not self._has_room(each, cost):
                return False
        return True

    def can_count(self, cost: Cost) -> bool:
        """Return whether every level without a limit can add `cost` to what is charged and held on its present day."""
        if len(self._path) == len(self.levels):
            return True
        return all(cost.fits_above(counted) for counted in self._counted_without_limit())

    def countable(self) -> Cost:
        """Return the largest amount of each unit that every level without a limit can add."""
        return least_left(self._counted_without_limit())

    def countable_on(self, account: Account, holds: tuple[Hold, ...]) -> Cost:
        """Return the most that can be charged on these days without a limit: sums and what is held fit into 64 bits.

        Raises:
            HistoryNeededError: The snapshot needs the past days too.
        """
        counted = [
            capped_sum((most, balance.reserved))
            for hold, level in ((hold, hold.level_of(account)) for hold in holds)
            if (balance := self.balances.get(level)) is not None
            for most in (balance.spent, balance.today, self._charged_on(level, hold.window_start))
        ]
        return least_left(counted)

    def statuses(self) -> tuple[LevelStatus, ...]:
        """Return every level of the account that has a limit, from the widest, as it is for those who pay."""
        since = self.currency.since
        return tuple(
            [
                status_of(
                    each, self.balances[each.level], self.blocks.paying(each, self._own(each.level)), since
                )
                for each in self.levels
            ]
        )

    def holds(self, blocks: tuple[str, ...] = ()) -> tuple[Hold, ...]:
        """Return the present days of all levels of the account, for everybody or for some blocks alone."""
        return tuple(
            [
                Hold(level.depth, self.balances[level].day.start, block)
                for level in self._path
                for block in blocks or ("",)
            ]
        )

    def reserve(self, reservation: Reservation) -> None:
        """Open a reservation in the last spans of its levels."""
        self._add_reserved(reservation, reservation.held)
        self.opened = reservation

    def fix_currency(self, unit_id: str) -> None:
        """Have the root count in a currency, unless it counts in one already."""
        self.currency = self.currency.charged(unit_id)

    def end(self, reservation: Reservation) -> None:
        """Close a reservation; what it held returns, except to windows that have begun since."""
        self._add_reserved(reservation, reservation.held, returns=True)
        self.ended.append(reservation.reservation_id)

    def spend(self, entry: JournalEntry) -> bool:
        """Add a charge to the journal and to its spans that still count. The first charge fixes the currency.

        Returns:
            False if it takes nothing on any level: then it is no charge, and nothing is added.
        """
        if entry.takes_nothing:
            return False
        self.fix_currency(entry.unit_id)
        for hold in entry.holds:
            level = hold.level_of(entry.account)
            balance = self.balances.get(level)
            if balance is None:
                continue
            cost = entry.cost_at(hold.depth)
            self._set(level, balance.charged(hold.window_start, cost))
            if hold.window_start != balance.day.start:
                self._change_day(level, hold.window_start, cost.information, cost.calls)
        self.journal.append(entry)
        return True

    def counts_any(self, account: Account, holds: tuple[Hold, ...]) -> bool:
        """Return whether a charge with these holds counts at a limited level of its account."""
        limited = {each.level for each in self.levels}
        return any(
            level.of_block("") in limited and self.balances[level].counts(hold.window_start)
            for hold, level in ((hold, hold.level_of(account)) for hold in holds)
        )

    def has_charged(self, entry: JournalEntry) -> bool:
        """Return whether at least the cost of an entry was charged on each day that it names.

        Raises:
            HistoryNeededError: The snapshot needs the past days too.
        """
        return all(
            entry.cost_at(hold.depth).within(
                self._charged_on(hold.level_of(entry.account), hold.window_start)
            )
            for hold in entry.holds
        )

    def refund(self, entry: JournalEntry) -> None:
        """Add a refund to the journal and subtract it from its days."""
        for hold in entry.holds:
            level = hold.level_of(entry.account)
            balance, cost = self.balances[level], entry.cost_at(hold.depth)
            self._set(level, balance.refunded(hold.window_start, cost))
            if hold.window_start != balance.day.start:
                self._change_day(level, hold.window_start, -cost.information, -cost.calls)
        self.journal.append(entry)

    def expire(self, reservation: Reservation) -> None:
        """Close a reservation that has lapsed; it is charged if it forfeits."""
        self.end(reservation)
        if reservation.forfeits:
            self.spend(forfeit_of(reservation))

    def _own(self, level: Account) -> list[Balance]:
        """Return what the blocks that are named have at a level."""
        return [self.balances[block] for block in self._named.get(level, ())]

    def _set(self, level: Account, balance: Balance) -> None:
        if level.block:
            self.blocks.note(level, self.balances.get(level), balance)
        self.balances[level] = balance
        self._changed[level] = None

    def _refresh(self, each: LevelLimit) -> None:
        span, level = each.limit.window.around(self.now), each.level
        opened = Balance.opened(each.limit.window, span, self.currency.since)
        last = self.balances.get(level)
        moved = (opened, None) if last is None else last.on(self.now, span.day, self.currency.since)
        self._refresh_at(each.limit, span, level, *moved)
        self.refresh_blocks(each, self._named.get(level, ()))

    def refresh_blocks(self, each: LevelLimit, blocks: Iterable[Account]) -> None:
        """Bring blocks of a level that has been brought up to `now` up to it too."""
        span, day = each.limit.window.around(self.now), self.balances[each.level].day
        for block in blocks:
            last = self.balances.get(block)
            # Of a page of them, few are not.
            if last is not None and last.is_as_of(self.now, day, each.limit.window, self.currency.since):
                continue
            opened = replace(Balance.opened(each.limit.window, span, self.currency.since), day=day)
            self._refresh_at(each.limit, span, block, *(last or opened).moved_to(day))

    def _refresh_at(
        self, limit: Limit, span: Span, level: Account, found: Balance, ended: PastDay | None
    ) -> None:
        """Bring the balance of a level, or of a block of it, up to its present day."""
        last = self.balances.get(level)
        if last is not None:
            rolled = found.rolled(self.now, span, ended) if found.rule == limit.window else None
            found = rolled or self._rebuilt(limit, level, span, found, ended)
            self._end_day(level, ended)
            if self._is_in_old_currency(found):
                found = self._in_new_currency(limit, level, span, found)
        if found is not last:
            self._set(level, found)

    def _in_new_currency(self, limit: Limit, level: Account, span: Span, found: Balance) -> Balance:
        """Return a balance as the present currency has it, or as it is if old charges count and are waited for."""
        if found.is_empty:
            opened = Balance.opened(limit.window, span, self.currency.since)
            return replace(opened, day=found.day, open=found.open, was_charged=found.was_charged)
        # A level in mode track does not wait for old charges to stop counting. New ones may be there already.
        return found if limit.mode is Mode.ENFORCE else self._rebuilt(limit, level, span, found, None)

    def _counted_without_limit(self) -> list[Cost]:
        limited = {each.level for each in self.levels}
        paying = [
            each
            for level in self._path
            if level not in limited
            for each in (
                self.balances[level],
                *[self.balances[block] for block in self._named.get(level, ())],
            )
        ]
        return [capped_sum((each.today, each.reserved)) for each in paying]

    def _refresh_unlimited(self) -> None:
        limited = {each.level for each in self.levels}
        # Its days begin with those of the account, as they will where the level has a limit again.
        day = day_around(self.now, self.levels[-1].limit.window.zone)
        for level in self._path:
            if level not in limited:
                self._refresh_without_limit(level, day)

    def _refresh_without_limit(self, level: Account, day: DaySpan) -> None:
        last, since = self.balances.get(level), self.currency.since
        opened = Balance.without_rule(day.since(since))
        moved = (opened, None) if last is None else last.on(self.now, day, since)
        self._forget_rule(level, *moved)
        day = moved[0].day
        for block in self._named.get(level, ()):
            last = self.balances.get(block)
            moved = (Balance.without_rule(day), None) if last is None else last.moved_to(day)
            self._forget_rule(block, *moved)

    def _forget_rule(self, level: Account, found: Balance, ended: PastDay | None) -> None:
        last = self.balances.get(level)
        if ended is not None:
            self._end_day(level, ended)
        # What counts by a rule that is not in force is found anew when it is. The days of a sliding window are those of
        # its own zone, and this one may not be.
        if last is None or ended is not None or last.leaves_at is not None:
            self._set(level, found if last is None else found.forgetting_rule())

    def _end_day(self, level: Account, ended: PastDay | None) -> None:
        # A day without a charge is kept too: a reservation of it may still be settled.
        if ended is not None:
            self._change_day(level, ended.start, ended.spent.information, ended.spent.calls, ended.end)

    def _change_day(
        self, level: Account, start: Microseconds, information: int, calls: int, end: Microseconds = 0
    ) -> None:
        change = DayChange(level, start, end or start + DAY, information, calls)
        last = self._days.get((level, start))
        self._days[level, start] = change if last is None else last.followed_by(change)

    def _rebuilt(
        self, limit: Limit, level: Account, span: Span, found: Balance, ended: PastDay | None
    ) -> Balance:
        """Return the balance by a rule that it was not made for, from the past days and what is reserved now."""
        past = [*self._past(level), *([] if ended is None else [ended])]
        since, over = self.currency.since, set(self.ended)
        still_open = [each for each in self._snapshot.reservations if each.reservation_id not in over]
        every = found.rebuilt(limit.window, span, past, 0)
        every = every.with_reserved(held_since(every.reserved_since, level, still_open))
        if every.reserved_since >= since:
            return every
        fresh = found.rebuilt(limit.window, span, past, since)
        fresh = fresh.with_reserved(held_since(fresh.reserved_since, level, still_open))
        has_old = (every.spent, every.reserved) != (fresh.spent, fresh.reserved)
        return every if has_old and limit.mode is Mode.ENFORCE else fresh

    def _past(self, level: Account) -> Iterable[PastDay]:
        """Return the past days of a level as they are after what this draft has changed."""
        if self._snapshot.past is None:
            raise HistoryNeededError
        known = {day.start: day for day in self._snapshot.past.get(level, ())}
        for (changed, start), change in self._days.items():
            if changed == level:
                known[start] = change.applied(known.get(start))
        return known.values()

    def _charged_on(self, level: Account, start: Microseconds) -> Cost:
        balance = self.balances.get(level)
        if balance is None:
            return NOTHING
        if start == balance.day.start:
            return balance.today
        return next((day.spent for day in self._past(level) if day.start == start), NOTHING)

    def _has_room(self, each: LevelLimit, cost: Cost) -> bool:
        balance, maximum = self.balances[each.level], each.limit.maximum
        paying = self.blocks.paying(each, self._own(each.level))
        if paying.old is not None or self._is_in_old_currency(balance):
            return cost == NOTHING
        spent, reserved = counted(balance, paying.sums)
        fits = (
            spent.information + reserved.information + cost.information <= maximum.information
            and spent.calls + reserved.calls + cost.calls <= maximum.calls
        )
        if not fits and self._snapshot.every_block:
            self.blocks.require_reached(each)
        return fits

    def _is_in_old_currency(self, balance: Balance) -> bool:
        return balance.reserved_since < self.currency.since

    def _add_reserved(self, reservation: Reservation, held: Cost, *, returns: bool = False) -> None:
        for hold in reservation.holds:
            level = hold.level_of(reservation.account)
            balance = self.balances.get(level)
            if balance is None:
                continue
            reserved = balance.reserved
            if hold.window_start >= balance.reserved_since:
                reserved = reserved - held if returns else reserved + held
            self._set(level, balance.with_reserved(reserved, -1 if returns else 1))
