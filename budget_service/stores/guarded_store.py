"""What all stores have in common: the engine, and a high-water mark that is kept beside the service."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.act import Act
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.values import Account, LevelLimit
from budget_service.stores.interface import BackupFailedError
from budget_service.stores.ledger_engine import LedgerEngine
from budget_service.stores.mark_file import Position
from budget_service.stores.rollback_guard import RollbackGuard


class GuardedStore(ABC):
    """A part of a Store; see `Store` for what the methods promise.

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
