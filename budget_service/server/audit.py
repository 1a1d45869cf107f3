"""Verifies a whole ledger page by page while it is in use, and makes the base of what may be trimmed of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import NamedTuple

from budget_service.ledger.base import Base, LevelFacts, is_trimmable
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Account
from budget_service.ledger.verification import (
    Difference,
    Rebuilt,
    RebuiltStates,
    block_differences,
    held_by_level,
)
from budget_service.ledger.windows import Microseconds
from budget_service.server.pacing import in_turns
from budget_service.stores.interface import Store, StoreUnavailableError
from budget_service.tuning import DEFAULTS, Tuning

MAX_DIFFERENCES = 1000
# How often something is read again because an administrator has changed it meanwhile.
MAX_ATTEMPTS = 16


@dataclass
class Verification:
    """How much was compared, and the first differences."""

    entries: int = 0
    balances: int = 0
    different: int = 0
    differences: list[Difference] = field(default_factory=list)

    def add(self, other: Verification) -> None:
        """Add what was compared elsewhere."""
        self.entries += other.entries
        self.balances += other.balances
        self.different += other.different
        self.differences += other.differences[: MAX_DIFFERENCES - len(self.differences)]

    def note(self, difference: Difference) -> None:
        """Count a difference, and keep it if there are few."""
        self.different += 1
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(difference)


class Trim(NamedTuple):
    """Up to which position, and to which time, entries may be trimmed."""

    position: str
    until: Microseconds


NOTHING = Trim("", 0)


async def verify(
    store: Store, root: str, found: Verification, tuning: Tuning = DEFAULTS, *, trim: Trim = NOTHING
) -> Base:
    """Add up a root's journal from its base and compare every balance with the sums, and every account's state.

    The journal is read up to the position of each page of balances: no entry is ever changed or put before another one.
    Where it was trimmed meanwhile, entries may have been dropped before they were read, and all is compared again.

    Args:
        store: The ledger.
        root: The root account's name.
        found: Counts what was compared, and collects the differences.
        tuning: Sets the length of a page.
        trim: What may be trimmed.

    Returns:
        The base that stands for what may be trimmed, to be written if nothing differs.

    Raises:
        StoreError: The store failed.
    """
    for _ in range(MAX_ATTEMPTS):
        last, compared = await store.base(root), Verification()
        trimmed = await _verify_from(last, store, root, compared, Trimmed(last, trim), tuning=tuning)
        if (await store.base(root)).entries == last.entries:
            found.add(compared)
            return trimmed
    raise StoreUnavailableError("the journal was trimmed each time that it was read")


class Trimmed:
    """Makes the base of what may be trimmed of a journal: `add` its entries from the last base on, in order."""

    def __init__(self, last: Base, trim: Trim) -> None:
        self._last, self._to = last, trim
        self._until = max(last.until, trim.until)
        self._rebuilt, self._states = Rebuilt.after(last), RebuiltStates.after(last)
        self._rebuilt.until = self._until
        self._facts = defaultdict(LevelFacts, last.facts)
        self._position = last.position
        self._ended = False

    def add(self, position: str, entry: JournalEntry) -> None:
        """Take an entry into the base, if it and all before may be trimmed."""
        is_exported = int(position) <= int(self._to.position or "0")
        self._ended = self._ended or not (is_exported and is_trimmable(entry, self._until))
        if self._ended:
            return
        self._position = position
        self._rebuilt.add(entry)
        self._states.add(entry)
        if entry.kind is EntryKind.LIMIT:
            self._facts[entry.account.text].limited(entry)
        for depth in {hold.depth for hold in entry.holds if entry.kind.is_charge}:
            self._facts[entry.account.level(depth).text].charged(entry, depth)

    @property
    def base(self) -> Base:
        """Return the base."""
        rebuilt = self._rebuilt
        if rebuilt.entries == self._last.entries:
            return self._last
        return Base(
            position=self._position,
            entries=rebuilt.entries,
            digest=rebuilt.digest,
            until=self._until,
            time=rebuilt.time,
            ahead=rebuilt.ahead,
            currency=rebuilt.currency,
            closed=sorted(each.text for each in self._states.closed),
            spent=rebuilt.sums(),
            facts=dict(self._facts),
        ).sealed()


async def _verify_from(
    last: Base, store: Store, root: str, found: Verification, trimmed: Trimmed, *, tuning: Tuning
) -> Base:
    rebuilt, states, seen = Rebuilt.after(last), RebuiltStates.after(last), set[Account]()
    after, position, unexplained = "", last.position, 0
    early: set[Account] | None = None
    while early is None or after:
        page = await store.balances(root, after, tuning.journal_page)
        if page.position:
            async for each, entry in entries(store, root, position, page.position, tuning):
                rebuilt.add(entry)
                states.add(entry)
                trimmed.add(each, entry)
        # A journal without entries in the store has no position of its own.
        position, after = page.position or position, page.after
        # Levels that are newer than the first page may be absent from it.
        if early is None:
            early, unexplained = set(rebuilt.spent), page.unexplained_time
        held = held_by_level(page.reservations)
        for level, balance in page.balances:
            days, held_there = page.past.get(level, ()), held.get(level, ())
            for difference in (
                *rebuilt.differences(level, balance, days, held_there, page.root.currency.since),
                *block_differences(level, balance, page.rows),
            ):
                found.note(difference)
        seen.update(level for level, _ in page.balances)
    account = Account((root,))
    for difference in (
        *rebuilt.journal_differences(account, page.root),
        *rebuilt.currency_differences(account, page.root.currency),
        *rebuilt.time_differences(account, page.root, unexplained),
    ):
        found.note(difference)
    async for level in in_turns(list(rebuilt.spent)):
        if level in early and level not in seen:
            for difference in rebuilt.missing(level):
                found.note(difference)
    await _verify_states(store, root, position, states, found=found, tuning=tuning)
    found.entries += rebuilt.entries
    found.balances += len(seen)
    return trimmed.base


async def _verify_states(
    store: Store, root: str, position: str, states: RebuiltStates, *, found: Verification, tuning: Tuning
) -> None:
    """Compare the closed accounts with `states`, those of the journal up to a position, and with what came since."""
    end = position
    for _ in range(MAX_ATTEMPTS):
        kept = await store.all_limits(root)
        async for each, entry in entries(store, root, end, "", tuning):
            states.add(entry)
            end = each
        # Where nothing has changed a state meanwhile, what was read last are the states of the journal that was read.
        if kept.version == (await store.all_limits(root)).version:
            for difference in states.differences(kept.closed):
                found.note(difference)
            return
    raise StoreUnavailableError("accounts were closed or opened each time that they were read")


async def entries(
    store: Store, root: str, after: str, until: str, tuning: Tuning = DEFAULTS
) -> AsyncIterator[tuple[str, JournalEntry]]:
    """Give the entries of a root after one position, up to another, with their positions. Raises StoreError."""
    while True:
        page = await store.journal(root, after, until, tuning.journal_page)
        for each in page:
            yield each
        if len(page) < tuning.journal_page:
            return
        after = page[-1][0]
