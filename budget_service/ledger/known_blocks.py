"""What one decision knows of the blocks of its levels, from their rows: see `block_sums`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from budget_service.ledger.balances import Balance
from budget_service.ledger.block_sums import (
    NONE_PAYING,
    BlockChange,
    BlockPage,
    BlocksNeededError,
    BlocksRow,
    LargestSums,
    Paying,
)
from budget_service.ledger.state import Snapshot
from budget_service.ledger.values import Account, LevelLimit, Mode
from budget_service.ledger.windows import Microseconds, Window, WindowRule


class KnownBlocks:
    """The rows of the blocks of levels, as they are after what a draft has changed.

    Args:
        snapshot: The state of the root.
        now: The ledger's time.
        since: When the present currency began.
    """

    def __init__(self, snapshot: Snapshot, now: Microseconds, since: Microseconds) -> None:
        self._now = now
        self._since = since
        self._everybody = snapshot.every_block
        # Where all blocks were loaded, no row is needed, and none changes.
        self._are_loaded = snapshot.rows is None
        self._before = snapshot.rows or {}
        self._rows = {**self._before}
        self._changes: dict[Account, dict[str, BlockChange]] = {}
        self._paying: dict[Account, Paying] = {}

    @property
    def changed(self) -> Mapping[Account, BlocksRow]:
        """The rows that have changed."""
        before, rows = self._before, {level: self._row(level) for level in self._before}
        return {level: row for level, row in rows.items() if row is not None and row is not before[level]}

    def note(self, block: Account, before: Balance | None, after: Balance) -> None:
        """Note that a block gets another balance, and what it was, if there was one."""
        self._paying.clear()
        if self._are_loaded or (before is None and after.is_unused):
            return
        level = block.of_block("")
        if level not in self._rows:
            raise ValueError("the row of a level was not loaded: a new one would say too little")
        changes = self._changes.setdefault(level, {})
        earlier, _ = changes.get(block.block, (before, after))
        changes[block.block] = earlier, after

    def _row(self, level: Account) -> BlocksRow | None:
        """Return the row of a level after all changes."""
        row, changes = self._rows[level], self._changes.pop(level, None)
        if changes:
            rule = next(after.rule for _, after in changes.values())
            row = row or BlocksRow(known=LargestSums(rule=rule, since=self._since))
            row = self._rows[level] = row.noted(changes)
        return row

    def read(self, page: BlockPage, balances: Sequence[tuple[str, Balance]], rule: WindowRule | None) -> None:
        """Add a page of the blocks of a level, whose balances are those of now, to what is known of all."""
        row = self._row(page.level)
        if row is not None:
            self._rows[page.level] = row.read(page, balances, rule, self._since)

    def count(self, level: Account, rule: WindowRule | None, most: int) -> int:
        """Return how many blocks of a level have something charged or held; maybe too many, up to `most`.

        Raises:
            BlocksNeededError: They have to be counted again.
        """
        row = self._row(level)
        if row is not None and row.known.count > most and row.known.until <= self._now:
            raise self._needed(level, row, rule)
        return 0 if row is None else row.known.count

    def paying(self, each: LevelLimit, own: Sequence[Balance]) -> Paying:
        """Return what those who pay have alone at a level: the blocks with these balances, or everybody.

        Raises:
            BlocksNeededError: The blocks of the level have to be read.
        """
        found = self._paying.get(each.level)
        if found is None:
            found = self._paying[each.level] = self._find_paying(each, own)
        return found

    def _find_paying(self, each: LevelLimit, own: Sequence[Balance]) -> Paying:
        if self._everybody:
            known = self._known(each)
            return NONE_PAYING if known is None else known.paying
        paying = Paying.of(own, self._since) if own else NONE_PAYING
        if self._are_loaded or each.limit.window.around(self._now).counts_from >= self._since:
            return paying
        # Charges in an older currency may count, and then those of blocks that do not pay matter as well.
        known = self._known(each)
        return paying if known is None else replace(paying, old=Window.around_both(paying.old, known.old))

    def require_reached(self, each: LevelLimit) -> None:
        """Return if a block has as much as is said that none has more of; otherwise more may fit.

        Raises:
            BlocksNeededError: The blocks of the level have to be read.
        """
        row = self._row(each.level)
        if row is not None and not row.known.is_reached:
            raise self._needed(each.level, row, each.limit.window)

    def _known(self, each: LevelLimit) -> LargestSums | None:
        """Return what is known of all blocks of a level; None: it never had any."""
        row, rule = self._row(each.level), each.limit.window
        if row is None:
            return None
        # A level in mode track waits for no older currency.
        is_waiting = row.known.old is not None and each.limit.mode is Mode.TRACK
        if is_waiting or not row.known.holds(rule, self._since, self._now):
            raise self._needed(each.level, row, rule)
        return row.known

    def _needed(self, level: Account, row: BlocksRow, rule: WindowRule | None) -> BlocksNeededError:
        return BlocksNeededError(level, row.next_page(rule, self._since, self._now))
