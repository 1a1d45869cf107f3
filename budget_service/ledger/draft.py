"""The changes of one decision while it is being made: the arithmetic of balances, without the rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from budget_service.ledger.outcomes import LevelStatus
from budget_service.ledger.state import Balance, EntryKind, Hold, JournalEntry, Payment, Reservation, Snapshot
from budget_service.ledger.values import Account, LevelLimit
from budget_service.ledger.windows import Microseconds, Window


class Draft:
    """A snapshot brought up to `now`: lapsed reservations ended, the windows of the account's levels refreshed.

    It is made for one decision and thrown away; the snapshot stays as it was.
    """

    def __init__(self, snapshot: Snapshot, levels: tuple[LevelLimit, ...], now: Microseconds) -> None:
        if now < snapshot.root.last_time:
            raise ValueError("the ledger's time never goes back")
        self.now = now
        self.unit_id = snapshot.root.unit_id
        self.balances = dict(snapshot.balances)
        self.opened: Reservation | None = None
        self.ended: list[str] = []
        self.journal: list[JournalEntry] = []
        self.payment: Payment | None = None
        self._levels = levels
        for reservation in snapshot.due:
            self._expire(reservation)
        for level in levels:
            self._refresh(level)

    @property
    def leaf_window(self) -> Window:
        """The open window of the account itself, in which its payments count."""
        return self.balances[self._levels[-1].level].window

    def statuses(self) -> tuple[LevelStatus, ...]:
        """Return every level of the account that has a limit, from the widest."""
        return tuple(self._status(level) for level in self._levels)

    def holds(self) -> tuple[Hold, ...]:
        """Return the open windows of the account's levels."""
        return tuple(Hold(each.level.depth, self.balances[each.level].window.start) for each in self._levels)

    def reserve(self, reservation: Reservation) -> None:
        """Open a reservation."""
        for level in self._open_levels(reservation.account, reservation.holds):
            balance = self.balances[level]
            self.balances[level] = replace(balance, reserved=balance.reserved + reservation.held)
        self.opened = reservation

    def end(self, reservation: Reservation) -> None:
        """Close a reservation; what it held returns to those windows it was held in that are still open."""
        for level in self._open_levels(reservation.account, reservation.holds):
            balance = self.balances[level]
            self.balances[level] = replace(balance, reserved=balance.reserved - reservation.held)
        self.ended.append(reservation.reservation_id)

    def spend(self, entry: JournalEntry) -> None:
        """Write a charge and count it in those of its windows that are still open; the first one fixes the currency."""
        self.unit_id = self.unit_id or entry.unit_id
        for level in self._open_levels(entry.account, entry.holds):
            balance = self.balances[level]
            self.balances[level] = replace(balance, spent=balance.spent + entry.cost)
        self.journal.append(entry)

    def is_open(self, account: Account, hold: Hold) -> bool:
        """Tell whether the window of a hold is the level's last one."""
        balance = self.balances.get(account.level(hold.depth))
        return balance is not None and balance.window.start == hold.window_start

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
        configured = each.limit.window.around(self.now)
        last = self.balances.get(each.level)
        if last is None:
            self.balances[each.level] = Balance(configured)
            return
        window = last.window.at(self.now, configured)
        same = window.start == last.window.start
        self.balances[each.level] = replace(last, window=window) if same else Balance(window)

    def _open_levels(self, account: Account, holds: Iterable[Hold]) -> list[Account]:
        return [account.level(hold.depth) for hold in holds if self.is_open(account, hold)]

    def _status(self, each: LevelLimit) -> LevelStatus:
        balance = self.balances[each.level]
        limit = each.limit
        depth = each.level.depth
        return LevelStatus(depth, limit.maximum, limit.mode, balance.window, balance.spent, balance.reserved)
