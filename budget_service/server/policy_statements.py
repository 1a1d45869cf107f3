"""What the charges that count now say of a guarantee, level by level.

That is each policy_statement of its present window, and whether what is spent there tells how releases ended.

They are read from the journal, the newest entries first and only as far back as the oldest window reaches. Entries that
were moved into an archive are not read: where some of them count in a window, that is said in place of a part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

from budget_service.ledger.outcomes import LevelStatus
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Account
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import Microseconds
from budget_service.stores.interface import Store
from budget_service.tuning import DEFAULTS, Tuning

# After a page others have as long as it took, but not longer than this.
LONGEST_PAUSE_SECONDS = 0.02


class TooManyStatementsError(Exception):
    """More different statements count than an answer may hold."""


class ArchivedStatementsError(Exception):
    """Charges that count have been moved out of the ledger, and their statements with them."""


@dataclass(frozen=True, slots=True)
class Said:
    """The statements of a level, sorted, and whether each charge of an account below counts with its worst case.

    A cost that was deducted directly was fixed beforehand, and one that was forfeited is what was held.
    """

    statements: tuple[str, ...]
    has_worst_cases: bool


async def said_of(
    store: Store, account: Account, levels: tuple[LevelStatus, ...], tuning: Tuning = DEFAULTS
) -> Mapping[int, Said]:
    """Return what is said at each level of an account, by its depth.

    No charge that counts is left out; where a rule was changed lately, some that count no more may be there.
    Raises TooManyStatementsError, ArchivedStatementsError and StoreError.
    """
    checkpoint = await store.checkpoint(account.root)
    while True:
        window = _Window(account, levels, tuning.max_statements)
        checkpointed = await _read(store, window, checkpoint, tuning)
        last, checkpoint = checkpoint, await store.checkpoint(account.root)
        if checkpointed is None:
            return window.said()
        # What was sealed while the journal was read may have been archived before it was reached.
        if last.position == checkpoint.position:
            break
    if checkpointed < checkpoint.entries and window.reaches(checkpoint):
        raise ArchivedStatementsError
    return window.said()


async def _read(store: Store, window: _Window, checkpoint: Checkpoint, tuning: Tuning) -> int | None:
    """Take the entries into a window; return how many sealed ones there were if it was not left."""
    checkpointed, before, is_last = 0, "", False
    while not is_last:
        began = perf_counter()
        page = await store.alike(window.account, before, checkpoint.position, tuning.statements_page)
        for entry in page.entries:
            window.add(entry)
        if any(map(window.is_before, page.entries)):
            return None
        checkpointed += page.checkpointed
        before, is_last = page.before, not page.before
        await asyncio.sleep(min(perf_counter() - began, LONGEST_PAUSE_SECONDS))
    return checkpointed


class _Window:
    """The windows of an account's levels, and the statements found in them."""

    def __init__(self, account: Account, levels: tuple[LevelStatus, ...], max_statements: int) -> None:
        self.account = account
        self._max_statements = max_statements
        self._starts = {each.depth: each.window.start for each in levels}
        self._oldest: Microseconds = min(self._starts.values())
        self._found: dict[int, set[str]] = {depth: set() for depth in self._starts}
        self._all: set[str] = set()
        self._telling: set[int] = set()

    def is_before(self, entry: JournalEntry) -> bool:
        """Tell whether neither an entry nor any older one counts: none is written before its window begins."""
        # A forfeited reservation is written later than the moment at which it lapsed, which is its time.
        return entry.kind is not EntryKind.FORFEITED and entry.time < self._oldest

    def add(self, entry: JournalEntry) -> None:
        """Note what an entry says at each level of the account at which it counts."""
        for hold in entry.holds:
            start = self._starts.get(hold.depth)
            is_own = entry.account.level(hold.depth) == self.account.level(hold.depth)
            if is_own and start is not None and hold.window_start >= start:
                self._note(entry, hold.depth)
        if len(self._all) > self._max_statements:
            raise TooManyStatementsError

    def _note(self, entry: JournalEntry, depth: int) -> None:
        if entry.policy_statement:
            self._found[depth].add(entry.policy_statement)
            self._all.add(entry.policy_statement)
        # An account that is charged itself counts what its release cost, also for those below it.
        counts_worst = entry.shared_cost is not None and entry.cost_at(depth) == entry.shared_cost
        if entry.kind is EntryKind.SETTLED and not counts_worst:
            self._telling.add(depth)

    def reaches(self, checkpoint: Checkpoint) -> bool:
        """Tell whether a sealed charge counts at one of the levels."""
        return any(
            any(began >= start for began in checkpoint.spent.get(self.account.level(depth), ()))
            for depth, start in self._starts.items()
        )

    def said(self) -> dict[int, Said]:
        """Return what was found."""
        return {
            depth: Said(tuple(sorted(found)), depth not in self._telling)
            for depth, found in self._found.items()
        }
