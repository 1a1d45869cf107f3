"""What all stores have in common: the engine, a high-water mark beside the service, and all that is read of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.act import Act
from budget_service.ledger.balances import PastDay
from budget_service.ledger.base import Base
from budget_service.ledger.limits import AppliedLimits, StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.state import JournalEntry, RootRecord
from budget_service.ledger.values import ANY, Account, LevelLimit
from budget_service.stores.interface import (
    BackupFailedError,
    BalancePage,
    OutcomeUnknownError,
    StoreUnavailableError,
)
from budget_service.stores.ledger_engine import LedgerEngine
from budget_service.stores.rollback_guard import Position, RollbackGuard
from budget_service.stores.row_map import Found, Put, Range, RowKey, RowReading, RowTransaction, Writes
from budget_service.stores.row_transactions import MAX_ATTEMPTS
from budget_service.stores.rows import (
    AFTER_TAB,
    BASES,
    ROOTS,
    Decoders,
    Known,
    all_of,
    of_id,
    of_level,
    read_entry,
    read_row,
    text_of,
)

LAST = 2**63 - 1


class RowStore(ABC):
    """A part of a Store on a map of rows; see `Store` for what the methods promise.

    Attributes:
        _engine: Decides; a store makes it when it is made.
        _guard: Keeps the high-water mark; None: there is none.
    """

    _engine: LedgerEngine
    _guard: RollbackGuard | None = None

    async def apply(self, act: Act, limits: AppliedLimits) -> Answer:
        """Decide a request and write the change in one transaction; see `Store`."""
        if self._guard is not None:
            self._guard.charged()
        return await self._engine.apply(act, limits)

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> AccountStatement:
        """Return the state of an account now; see `Store`."""
        return await self._engine.read(account, levels)

    async def back_up(self, _folder: Path) -> Path:
        """Never: the tools of the store's server copy it; see `Store`."""
        raise BackupFailedError("only a ledger in SQLite is copied by its service")

    async def confirm(self, mark: Path) -> None:
        """Write a new high-water mark for a restored ledger. Raises StoreError."""
        await RollbackGuard(mark, self._count).confirm()

    async def renew_mark(self, mark: Path, stated: Position) -> None:
        """Write a lost high-water mark anew, if the ledger stands exactly there. Raises StoreError."""
        await RollbackGuard(mark, self._count).renew(stated)

    async def _begin_guard(self, mark: Path | None) -> None:
        """Compare the ledger with its high-water mark, and keep it from now on. Raises StoreUnusableError."""
        if mark is not None:
            guard = RollbackGuard(mark, self._count)
            await guard.begin()
            self._guard = guard

    async def _finish(self) -> None:
        """Finish what was begun, and write the high-water mark no more."""
        await self._engine.finish()
        if self._guard is not None:
            self._guard.end()

    @abstractmethod
    async def _count(self, step: int) -> Position:
        """Count on the ledger by a step, and return its name and count."""

    @abstractmethod
    def begin(self, roots: Collection[str]) -> AbstractAsyncContextManager[RowTransaction]:
        """Begin a transaction; see `RowMap`."""

    @abstractmethod
    def reading(self) -> AbstractAsyncContextManager[RowReading]:
        """Begin one that commits nothing; see `RowMap`."""

    @abstractmethod
    async def entries(
        self, root: str, after: int, until: int, at_most: int, *, newest: bool = False
    ) -> list[tuple[int, str]]:
        """Return the oldest entries of a journal after one number, up to and with another.

        If the `newest` are asked for, these, and the newest one first.
        """

    async def limits(self, account: Account) -> StoredLimits:
        """Return the stored limits of the levels of an account; see `Store`."""
        keys = [of_level(kind, level) for kind in ("limits", "closed") for level in account.levels]
        return await self._limits(account.root, keys)

    async def all_limits(self, root: str) -> StoredLimits:
        """Return all stored limits of a root; see `Store`."""
        return await self._limits(root, (), (all_of(root, "limits"), all_of(root, "closed")))

    async def journal(self, root: str, after: str, until: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return entries of a root; see `Store`."""
        found = await self.entries(root, int(after or 0), int(until or LAST), most)
        return [(str(number), read_entry(number, text)) for number, text in found]

    async def latest(self, root: str, before: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return the newest entries of a root; see `Store`."""
        found = await self.entries(root, 0, int(before or LAST) - 1, most, newest=True)
        return [(str(number), read_entry(number, text)) for number, text in found]

    async def balances(self, root: str, after: str, most: int) -> BalancePage:
        """Return balances of a root; see `Store`."""
        page = await self._read((), [Range(root, f"balances\t{after}", f"balances{AFTER_TAB}", most)])
        is_last = len(page.rows) < most
        last = "" if is_last else max(page.rows)[1].partition("\t")[2]
        # Up to the last level with its days, all of one moment.
        end = AFTER_TAB if is_last else f"\t{last}{AFTER_TAB}"
        # A page may begin among the blocks of a level.
        level = after.partition(ANY)[0]
        begins = {"balances": after, "days": after, "blocks": level}
        ranges = [Range(root, f"{kind}\t{begin}", f"{kind}{end}") for kind, begin in begins.items()]
        keys = [(root, ROOTS), (root, f"blocks\t{level}")]
        found = await self._read(keys, [*ranges, all_of(root, "reservations")])
        known, reservations = Known(), []
        past: dict[Account, list[PastDay]] = {}
        for key, text in found.rows.items():
            known.take(key, text)
            kind, _, name = key[1].partition("\t")
            if kind == "days":
                day = read_row(Decoders.day, key, text)
                past.setdefault(Account.of_text(name.partition("\t")[0]), []).append(day)
            elif kind == "reservations":
                reservations.append(read_row(Decoders.reservation, key, text))
        record = known.roots.get(root, RootRecord())
        return BalancePage(
            position=str(await self._last_entry(root, record.entries) or ""),
            root=record,
            clock=found.clock,
            balances=tuple(known.balances.items()),
            past=past,
            rows=known.rows,
            reservations=tuple(reservations),
            after=last,
        )

    async def base(self, root: str) -> Base:
        """Return what stands for the dropped entries of a root; see `Store`."""
        return _base(root, await self._read([(root, BASES)]))

    async def write_base(self, root: str, base: Base) -> None:
        """Replace the base; see `Store`."""
        for _ in range(MAX_ATTEMPTS):
            try:
                async with self.begin((root,)) as begun:
                    if _base(root, await begun.read([(root, BASES)])).entries >= base.entries:
                        return
                    if await begun.commit(Writes({}, [Put((root, BASES), text_of(base))]), lambda: None):
                        return
            except OutcomeUnknownError as error:
                raise StoreUnavailableError(str(error)) from error
        raise StoreUnavailableError("others were quicker each time")

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the query_id of an open reservation; see `Store`."""
        key = of_id("reservations", (account.root, reservation_id))
        text = (await self._read([key])).rows.get(key)
        if text is None:
            return None
        found = read_row(Decoders.reservation, key, text)
        return found.query_id if found.account == account else None

    async def open_reservations(self, roots: Sequence[str]) -> int:
        """Return how many reservations are open; see `Store`."""
        if not roots:
            return 0
        found = await self._read([(root, ROOTS) for root in roots], [all_of(root, "ends") for root in roots])
        known = Known()
        for key, text in found.rows.items():
            known.take(key, text)
        nows = {root: record.now(found.clock) for root, record in known.roots.items()}
        ends = [(root, name.split("\t")) for root, name in found.rows if name != ROOTS]
        return sum(int(time) > nows[root] for root, (_, time, *_) in ends)

    async def _limits(self, root: str, keys: Sequence[RowKey], ranges: Sequence[Range] = ()) -> StoredLimits:
        found, known = await self._read([(root, ROOTS), *keys], ranges), Known()
        limits, closed = {}, []
        for key, text in found.rows.items():
            known.take(key, text)
            kind, _, name = key[1].partition("\t")
            if kind == "limits":
                limits[Account.of_text(name)] = read_row(Decoders.limit, key, text)
            elif kind == "closed":
                closed.append(Account.of_text(name))
        version = known.roots.get(root, RootRecord()).limits_version
        return StoredLimits(version, limits, frozenset(closed))

    async def _read(self, keys: Collection[RowKey], ranges: Sequence[Range] = ()) -> Found:
        async with self.reading() as begun:
            return await begun.read(keys, ranges)

    async def _last_entry(self, root: str, counted: int) -> int:
        """Return the number of the last entry, also of one that somebody has added behind those that are counted."""
        newest = await self.entries(root, counted, LAST, 1, newest=True)
        if not newest:
            return counted
        known, found = Known(), await self._read([(root, ROOTS)])
        for key, text in found.rows.items():
            known.take(key, text)
        # Entries that came meanwhile are counted by now.
        return counted if newest[0][0] <= known.roots[root].entries else newest[0][0]


def _base(root: str, found: Found) -> Base:
    text = found.rows.get((root, BASES))
    return Base() if text is None else read_row(Decoders.base, (root, BASES), text)
