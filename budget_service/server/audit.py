"""Reads a whole ledger page by page while it is in use: verification and usage reports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

from budget_service.ledger.state import JournalEntry
from budget_service.ledger.usage import Usage
from budget_service.ledger.values import Account
from budget_service.ledger.verification import (
    Checkpoint,
    Difference,
    Rebuilt,
    RebuiltStates,
    Sum,
    held_by_level,
    next_digest,
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


async def verify(store: Store, root: str, found: Verification, tuning: Tuning = DEFAULTS) -> Checkpoint:
    """Add up a root's journal from its checkpoint and compare every balance with the sums, and every account's state.

    The journal only grows, so it is read up to the position of each page of balances. Where a checkpoint was made
    meanwhile, what it covers may have been archived before it was read, and all is compared again.

    Args:
        store: The ledger.
        root: The root account's name.
        found: Counts what was compared, and collects the differences.
        tuning: Sets the length of a page.

    Returns:
        The checkpoint to be written if nothing differs.

    Raises:
        StoreError: The store failed.
    """
    for _ in range(MAX_ATTEMPTS):
        last, compared = await store.checkpoint(root), Verification()
        verified = await _verify_from(last, store, root, compared, tuning)
        if (await store.checkpoint(root, ())).position == last.position:
            found.add(compared)
            return verified
    raise StoreUnavailableError("a checkpoint was made each time that the journal was read")


async def _verify_from(
    last: Checkpoint, store: Store, root: str, found: Verification, tuning: Tuning
) -> Checkpoint:
    rebuilt, states, seen = (
        Rebuilt.after(replace(last, spent={})),
        RebuiltStates(set(last.closed)),
        set[Account](),
    )
    async for level, spans in in_turns(last.spent.items()):
        rebuilt.continue_from(level, spans)
    after, position, unexplained = "", last.position, 0
    early: set[Account] | None = None
    while early is None or after:
        page = await store.balances(root, after, tuning.journal_page)
        if page.position:
            async for _, entry in entries(store, root, position, page.position, tuning):
                rebuilt.add(entry)
                states.add(entry)
        # A journal without entries in the store has no position of its own.
        position, after = page.position or position, page.after
        # Levels that are newer than the first page may be absent from it.
        if early is None:
            early, unexplained = set(rebuilt.spent), page.unexplained_time
        held = held_by_level(page.reservations)
        for level, balance in page.balances:
            days, held_there = page.past.get(level, ()), held.get(level, ())
            for difference in rebuilt.differences(level, balance, days, held_there, page.root.currency.since):
                found.note(difference)
        seen.update(level for level, _ in page.balances)
    account = Account((root,))
    for difference in (
        *rebuilt.currency_differences(account, page.root.currency),
        *rebuilt.time_differences(account, page.root, unexplained),
    ):
        found.note(difference)
    async for level in in_turns(list(rebuilt.spent)):
        if level in early and level not in seen:
            for difference in rebuilt.missing(level):
                found.note(difference)
    closed = frozenset(states.closed)
    await _verify_states(store, root, position, states, found=found, tuning=tuning)
    found.entries += rebuilt.entries
    found.balances += len(seen)
    spent = {level: rebuilt.by_day(level) async for level in in_turns(list(rebuilt.spent))}
    return Checkpoint(
        position,
        rebuilt.entries,
        rebuilt.digest,
        spent,
        rebuilt.currency,
        closed,
        rebuilt.time,
        rebuilt.ahead,
    )


async def verify_checkpointed(
    store: Store, root: str, found: Verification, tuning: Tuning = DEFAULTS
) -> None:
    """Compare a root's entries up to its checkpoint with the digest of those that it was made of.

    If some are archived, the others' digest is compared when they are archived too. Raises StoreError.
    """
    checkpoint, count, last = await store.checkpoint(root, ()), 0, ""
    if not checkpoint.entries:
        return
    async for _, entry in entries(store, root, "", checkpoint.position, tuning):
        count, last = count + 1, next_digest(last, entry)
    are_others = count == checkpoint.entries and last != checkpoint.digest
    if are_others or count > checkpoint.entries:
        rebuilt = 0 if are_others else count
        found.note(Difference(Account((root,)), None, Sum.CHECKPOINT, None, checkpoint.entries, rebuilt))


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


async def measure(store: Store, account: Account, usage: Usage, tuning: Tuning = DEFAULTS) -> None:
    """Add the charges of an account and of those below it to a usage report. Raises StoreError."""
    async for _, entry in entries_of(store, account, "", tuning):
        usage.add(entry)


async def is_archived(store: Store, root: str, after: str, start: Microseconds) -> bool:
    """Return whether entries of a root after a position, from a time on, may be in archives alone.

    Raises StoreError.
    """
    checkpoint = await store.checkpoint(root, ())
    last = checkpoint.position
    if last in ("", after) or 0 < checkpoint.time < start:
        return False
    # The oldest go first: as long as an entry before is there, those after it are.
    return not await store.journal(root, "", after or last, 1)


async def entries_of(
    store: Store, account: Account, after: str, tuning: Tuning = DEFAULTS
) -> AsyncIterator[tuple[str, JournalEntry]]:
    """Give the entries of an account and of those below it after a position. Raises StoreError."""
    is_last = False
    while not is_last:
        page = await store.matching((account,), after, tuning.journal_page)
        for each in page.entries:
            if each[1].account.level(account.depth) == account:
                yield each
        after, is_last = page.after, not page.after


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
