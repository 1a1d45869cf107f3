"""Transactions over dictionaries: what is loaded is compared with what is there when it is written, as by revisions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.block_sums import BlockPage, BlocksRow
from budget_service.ledger.state import JournalEntry, PaidQuery, Reservation, RootRecord, StoredOutcome
from budget_service.ledger.values import Account
from budget_service.ledger.windows import Microseconds
from budget_service.stores import row_transactions
from budget_service.stores.interface import Clock
from budget_service.stores.transactions import Changes, Loaded, PaymentKey, RootKey, Transaction, Wanted
from budget_service.stores.wanted import held_levels


def page_of(balances: Collection[Account], level: Account, after: str) -> BlockPage:
    """Return the next blocks of a level that have balances."""
    found = sorted(each for each in balances if each.block > after and each.of_block("") == level)
    most = row_transactions.BLOCKS_AT_ONCE
    return BlockPage(level, after, tuple(found[:most]), is_last=len(found) < most)


async def at_once() -> None:
    """Take no time."""
    await asyncio.sleep(0)


@dataclass
class MemoryTransactions:
    """Everything in dictionaries; `trip` is awaited for each round trip."""

    clock: Clock
    expired_at_once: int = 1000
    trip: Callable[[], Awaitable[None]] = at_once
    revision: int = 0
    roots: dict[str, RootRecord] = field(default_factory=dict)
    balances: dict[Account, Balance] = field(default_factory=dict)
    outcomes: dict[RootKey, StoredOutcome] = field(default_factory=dict)
    payments: dict[PaymentKey, PaidQuery] = field(default_factory=dict)
    reservations: dict[RootKey, Reservation] = field(default_factory=dict)
    journal: list[JournalEntry] = field(default_factory=list)
    past: dict[Account, dict[Microseconds, PastDay]] = field(default_factory=dict)
    rows: dict[Account, BlocksRow] = field(default_factory=dict)

    @asynccontextmanager
    async def transaction(self, wanted: Wanted) -> AsyncIterator[Transaction]:
        """Note the revision and load."""
        loaded, revision = await self.load(wanted), self.revision
        yield _Transaction(self, loaded, revision)

    async def load(self, wanted: Wanted) -> Loaded:
        """Give no more than is wanted."""
        await self.trip()
        clock = self.clock()
        loaded = Loaded(clock, {each: self.roots[each] for each in wanted.roots if each in self.roots}, {})
        for root in wanted.roots:
            now = self.roots.get(root, RootRecord()).now(clock)
            due = [
                each
                for (name, _), each in self.reservations.items()
                if name == root and each.expires_at <= now
            ]
            due.sort(key=lambda each: (each.expires_at, each.reservation_id))
            loaded.due[root] = tuple(due[: self.expired_at_once])
            loaded.due_further |= {root} if len(due) > self.expired_at_once else set()
        loaded.outcomes = {key: self.outcomes[key] for key in wanted.outcomes if key in self.outcomes}
        loaded.payments = {key: self.payments.get(key) for key in wanted.payments}
        for key, payer in wanted.reservations:
            found = loaded.reservations[key] = self.reservations.get(key)
            if found is not None:
                paid_for = (payer, "query", found.query_id)
                loaded.payments[paid_for] = self.payments.get(paid_for)
        open_ = [each for each in loaded.reservations.values() if each is not None]
        held = held_levels([*open_, *(each for due in loaded.due.values() for each in due)])
        loaded.balances = {
            level: self.balances[level] for level in (*wanted.levels, *held) if level in self.balances
        }
        named = [*wanted.levels, *held]
        loaded.rows = {level.of_block(""): self.rows.get(level.of_block("")) for level in named}
        blocks = [each for each in self.balances if each.block and each.of_block("") in wanted.blocks]
        loaded.balances |= {each: self.balances[each] for each in blocks}
        loaded.blocks = {
            level: frozenset([each for each in blocks if each.of_block("") == level])
            for level in wanted.blocks
        }
        if wanted.page is not None:
            loaded.page = page_of(self.balances, *wanted.page)
            blocks += loaded.page.blocks
            loaded.balances |= {each: self.balances[each] for each in loaded.page.blocks}
        if wanted.history:
            loaded.past = {level: dict(self.past.get(level, {})) for level in (*wanted.levels, *blocks)}
            loaded.open = {
                root: tuple(each for (name, _), each in self.reservations.items() if name == root)
                for root in wanted.roots
            }
        return loaded

    async def write(self, changes: Changes, revision: int) -> bool:
        """Write all changes if nobody has written since; there are no stored limits here."""
        await self.trip()
        if revision != self.revision:
            return False
        self.revision += 1
        self.roots |= changes.roots
        for level, balance in changes.balances.items():
            self.balances.pop(level, None)
            self.balances |= {} if balance is None else {level: balance}
        self.rows |= changes.rows
        self.outcomes |= changes.outcomes
        for (level, start), day in changes.days.items():
            days = self.past.setdefault(level, {})
            days[start] = day.applied(days.get(start))
        self.journal += changes.journal
        for key, payment in changes.payments.items():
            self.payments.pop(key, None)
            if payment is not None:
                self.payments[key] = PaidQuery(payment.release_id, payment.window_start)
        for name, reservation in changes.reservations.items():
            self.reservations.pop(name, None)
            self.reservations |= {} if reservation is None else {name: reservation}
        return True


@dataclass
class _Transaction:
    store: MemoryTransactions
    loaded: Loaded
    revision: int

    async def commit(self, changes: Changes, committed: Callable[[], None]) -> bool:
        is_done = await self.store.write(changes, self.revision)
        if is_done:
            committed()
        return is_done
