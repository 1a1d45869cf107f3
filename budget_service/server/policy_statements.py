"""What the present charges of an account mean for its guarantee, level by level.

For each level: the policy statements in its present window, whether its sum reveals what releases cost, and which
limits it had. They are read from the journal, newest entries first, back to the start of the oldest window. Archived
entries are not read; if some of them still count, there is an error instead of a partial answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from budget_service.ledger.outcomes import LevelStatus
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Account
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import Microseconds
from budget_service.server.limit_history import LimitHistory
from budget_service.stores.interface import Store
from budget_service.tuning import DEFAULTS, Tuning


class TooManyStatementsError(Exception):
    """More different statements count than an answer may hold."""


class ArchivedStatementsError(Exception):
    """Charges that still count were archived, and their statements with them."""


@dataclass(frozen=True, slots=True)
class LevelStatements:
    """The sorted statements of a level, and whether every charge from accounts below counts with its worst case.

    Direct charges were fixed beforehand, and forfeited ones are what was reserved: both count as worst cases. `limits`
    are those that the level had.
    """

    statements: tuple[str, ...]
    has_worst_cases: bool
    limits: LimitHistory = field(default_factory=LimitHistory, compare=False)


async def policy_statements_of(
    store: Store, account: Account, levels: tuple[LevelStatus, ...], tuning: Tuning = DEFAULTS
) -> Mapping[int, LevelStatements]:
    """Return the statements at each level of an account.

    No charge that counts is left out. After a change of a window's rule, some that count no more may be included.

    Args:
        store: The ledger.
        account: The account.
        levels: The state of its levels.
        tuning: Sets the length of a page and the largest number of statements.

    Returns:
        The statements by the depth of their level.

    Raises:
        TooManyStatementsError: More different statements count than an answer may hold.
        ArchivedStatementsError: Charges that count were archived.
        StoreError: The store failed.
    """
    counted = [account.level(each.depth) for each in levels]
    checkpoint = await store.checkpoint(account.root, counted)
    while True:
        window = _Window(account, levels, tuning.max_statements)
        checkpointed = await _read(store, window, account, checkpoint, tuning)
        last, checkpoint = checkpoint, await store.checkpoint(account.root, counted)
        if checkpointed is None:
            return window.statements()
        # Entries that got a checkpoint meanwhile may have been archived before they were read.
        if last.position == checkpoint.position:
            break
    if checkpointed < checkpoint.entries and window.reaches(checkpoint):
        raise ArchivedStatementsError
    return window.statements()


async def _read(
    store: Store, window: _Window, account: Account, checkpoint: Checkpoint, tuning: Tuning
) -> int | None:
    """Read entries into a window.

    Returns:
        How many of them a checkpoint covers; None if an older window was reached.
    """
    checkpointed, before, is_last = 0, "", False
    while not is_last:
        page = await store.grouped_entries(account, before, checkpoint.position, tuning.statements_page)
        for entry in page.entries:
            window.add(entry)
        if any(map(window.is_before, page.entries)):
            return None
        checkpointed += page.checkpointed
        before, is_last = page.before, not page.before
    return checkpointed


class _Window:
    """The windows of the levels of an account, and the statements found in them."""

    def __init__(self, account: Account, levels: tuple[LevelStatus, ...], max_statements: int) -> None:
        self._levels = {each.depth: account.level(each.depth) for each in levels}
        self._max_statements = max_statements
        self._starts = {each.depth: each.window.start for each in levels}
        self._oldest: Microseconds = min(self._starts.values())
        self._found: dict[int, set[str]] = {depth: set() for depth in self._starts}
        self._all: set[str] = set()
        self._revealing: set[int] = set()
        self._first_charges: dict[int, Microseconds] = {}
        self._changes: dict[int, list[JournalEntry]] = {depth: [] for depth in self._starts}

    def is_before(self, entry: JournalEntry) -> bool:
        """Return whether neither an entry nor any older one counts."""
        # A forfeit has the time at which its reservation lapsed, and is written later.
        return entry.kind is not EntryKind.FORFEITED and entry.time < self._oldest

    def add(self, entry: JournalEntry) -> None:
        """Collect the statement of an entry at each level at which it counts, or the change of a level's limit."""
        if entry.kind is EntryKind.LIMIT:
            self._note_limit(entry)
        named = {hold.depth: hold.window_start for hold in entry.holds}
        for depth, start in self._starts.items():
            is_own = entry.account.level(depth) == self._levels[depth]
            if is_own and named.get(depth, -1) >= start:
                self._note(entry, depth)
        if len(self._all) > self._max_statements:
            raise TooManyStatementsError

    def _note(self, entry: JournalEntry, depth: int) -> None:
        if entry.policy_statement:
            self._found[depth].add(entry.policy_statement)
            self._all.add(entry.policy_statement)
        if entry.kind.is_charge:
            first = self._first_charges.get(depth, entry.time)
            self._first_charges[depth] = min(first, entry.time)
        # At the level of the charged account itself the actual cost counts.
        counts_worst = entry.shared_cost is not None and entry.cost_at(depth) == entry.shared_cost
        if entry.kind is EntryKind.SETTLED and not counts_worst:
            self._revealing.add(depth)

    def _note_limit(self, entry: JournalEntry) -> None:
        depth = entry.account.depth
        if entry.account == self._levels.get(depth) and entry.time >= self._starts[depth]:
            self._changes[depth].append(entry)

    def reaches(self, checkpoint: Checkpoint) -> bool:
        """Return whether a charge that the checkpoint covers counts at one of the levels."""
        return any(
            began >= self._starts[level.depth]
            for level, spans in checkpoint.spent.items()
            if level.of_block("") == self._levels.get(level.depth)
            for began in spans
        )

    def statements(self) -> dict[int, LevelStatements]:
        """Return what was found."""
        return {
            depth: LevelStatements(
                tuple(sorted(found)),
                depth not in self._revealing,
                LimitHistory(
                    # Entries were read from the newest on.
                    tuple(sorted(self._changes[depth], key=lambda entry: entry.time)),
                    self._first_charges.get(depth),
                ),
            )
            for depth, found in self._found.items()
        }
