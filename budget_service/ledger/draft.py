"""The changes of one decision while it is made: the arithmetic of balances, without the rules."""

from __future__ import annotations

from budget_service.ledger.balances import Balance
from budget_service.ledger.outcomes import LevelStatus
from budget_service.ledger.state import EntryKind, JournalEntry, Payment, Reservation, Snapshot
from budget_service.ledger.values import NOTHING, Account, Cost, Hold, LevelLimit, Mode
from budget_service.ledger.windows import Microseconds


class Draft:
    """A snapshot brought up to `now`: its currency, lapsed reservations ended, the windows of the account's levels.

    It is made for one decision and thrown away; the snapshot stays as it was.
    """

    def __init__(self, snapshot: Snapshot, levels: tuple[LevelLimit, ...], now: Microseconds) -> None:
        if now < snapshot.root.last_time:
            raise ValueError("the ledger's time never goes back")
        self.now = now
        self.currency = snapshot.root.currency.at(now)
        self.balances = dict(snapshot.balances)
        self.opened: Reservation | None = None
        self.ended: list[str] = []
        self.journal: list[JournalEntry] = []
        self.payment: Payment | None = None
        self.unpaid: list[tuple[str, str]] = []
        self._levels = levels
        for reservation in snapshot.due:
            self._expire(reservation)
        for level in levels:
            self._refresh(level)

    @property
    def leaf(self) -> Balance:
        """The balance of the account itself, in whose windows its payments count."""
        return self.balances[self._levels[-1].level]

    def has_room(self, cost: Cost) -> bool:
        """Return whether `cost` may be added to every level without going above a limit, whatever its mode."""
        for each in self._levels:  # noqa: SIM110 - a generator takes twice as long
            if not self._has_room(self.balances[each.level], each, cost):
                return False
        return True

    def statuses(self) -> tuple[LevelStatus, ...]:
        """Return every level of the account that has a limit, from the widest."""
        return tuple([self._status(each) for each in self._levels])

    def holds(self) -> tuple[Hold, ...]:
        """Return the open windows of the account's levels."""
        return tuple(
            [Hold(each.level.depth, self.balances[each.level].window.start) for each in self._levels]
        )

    def reserve(self, reservation: Reservation) -> None:
        """Open a reservation in the last spans of its levels."""
        self._add_reserved(reservation, reservation.held)
        self.opened = reservation

    def end(self, reservation: Reservation) -> None:
        """Close a reservation; what it held returns, except to windows that have begun since."""
        self._add_reserved(reservation, reservation.held, returns=True)
        self.ended.append(reservation.reservation_id)

    def spend(self, entry: JournalEntry) -> None:
        """Add a charge to the journal and to its spans that still count. The first charge fixes the currency."""
        self.currency = self.currency.charged(entry.unit_id)
        for hold in entry.holds:
            level = entry.account.level(hold.depth)
            balance = self.balances.get(level)
            if balance is not None and balance.counts(hold.window_start):
                self.balances[level] = balance.charged(hold.window_start, entry.cost_at(hold.depth))
        self.journal.append(entry)

    def counted(self, account: Account, holds: tuple[Hold, ...]) -> tuple[Hold, ...]:
        """Return those of an account's spans that still count."""
        found = ((hold, self.balances.get(account.level(hold.depth))) for hold in holds)
        return tuple(
            hold for hold, balance in found if balance is not None and balance.counts(hold.window_start)
        )

    def has_charged(self, entry: JournalEntry) -> bool:
        """Return whether at least the cost of an entry was charged in each of its spans, all of which count."""
        return all(
            entry.cost_at(hold.depth).within(
                self.balances[entry.account.level(hold.depth)].charged_in(hold.window_start)
            )
            for hold in entry.holds
        )

    def refund(self, entry: JournalEntry) -> None:
        """Add a refund to the journal and subtract it from its spans, all of which count."""
        for hold in entry.holds:
            level = entry.account.level(hold.depth)
            self.balances[level] = self.balances[level].refunded(hold.window_start, entry.cost_at(hold.depth))
        self.journal.append(entry)

    def is_paid_in(self, start: Microseconds) -> bool:
        """Return whether payments in the leaf's span that began at `start` count, in the present currency."""
        return start >= self.currency.since and self.leaf.counts(start)

    def payment_span(self, account: Account, hold: Hold) -> Microseconds | None:
        """Return the start of the leaf's span in which a hold is paid for; None if it no longer counts."""
        balance = self.balances.get(account.level(hold.depth))
        if balance is None or not balance.counts(hold.window_start):
            return None
        is_leaf = account.level(hold.depth) == self._levels[-1].level
        return hold.window_start if is_leaf else self.leaf.window.start

    def _expire(self, reservation: Reservation) -> None:
        self.end(reservation)
        if reservation.forfeits:
            self.spend(self._forfeit(reservation))

    def _forfeit(self, reservation: Reservation) -> JournalEntry:
        return JournalEntry(
            kind=EntryKind.FORFEITED,
            account=reservation.account,
            cost=reservation.held,
            unit_id=reservation.unit_id,
            request_id=reservation.request_id,
            release_id="",
            query_id=reservation.query_id,
            time=reservation.expires_at,
            holds=reservation.holds,
        )

    def _refresh(self, each: LevelLimit) -> None:
        span = each.limit.window.around(self.now)
        last = self.balances.get(each.level)
        found = Balance.opened(span, span.window.start) if last is None else last.at(self.now, span)
        # A level in mode track does not wait for old charges to stop counting.
        if self._is_in_old_currency(found) and (found.is_empty or each.limit.mode is Mode.TRACK):
            found = Balance.opened(span, max(span.window.start, self.currency.since))
        if found is not last:
            self.balances[each.level] = found

    def _has_room(self, balance: Balance, each: LevelLimit, cost: Cost) -> bool:
        if self._is_in_old_currency(balance):
            return cost == NOTHING
        return balance.has_room(cost, each.limit.maximum)

    def _is_in_old_currency(self, balance: Balance) -> bool:
        return balance.reserved_since < self.currency.since

    def _add_reserved(self, reservation: Reservation, held: Cost, *, returns: bool = False) -> None:
        for hold in reservation.holds:
            level = reservation.account.level(hold.depth)
            balance = self.balances.get(level)
            if balance is not None and hold.window_start >= balance.reserved_since:
                reserved = balance.reserved - held if returns else balance.reserved + held
                self.balances[level] = balance.with_reserved(reserved)

    def _status(self, each: LevelLimit) -> LevelStatus:
        balance = self.balances[each.level]
        limit = each.limit
        depth = each.level.depth
        if self._is_in_old_currency(balance):
            window = balance.counted_window(as_one=True)
            return LevelStatus(depth, limit.maximum, limit.mode, window, limit.maximum, NOTHING)
        window = balance.counted_window()
        return LevelStatus(depth, limit.maximum, limit.mode, window, balance.spent, balance.reserved)
