"""The ledger as the server uses it: a store, whose damage is reported and whose readings give way to charges.

The service runs before its store is open, says that it cannot serve, and tries again. If it ended instead, its
supervisor would start it again and again, with pauses that grow to minutes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from time import thread_time

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.act import Act
from budget_service.ledger.base import Base
from budget_service.ledger.limits import AppliedLimits, StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, InvalidFieldError, LevelLimit
from budget_service.server.failure_detector import FailureDetector
from budget_service.server.pacing import pause
from budget_service.stores.interface import (
    BalancePage,
    OutcomeUnknownError,
    Store,
    StoreDamagedError,
    StoreUnavailableError,
)

FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 10.0

log = logging.getLogger(__name__)


class Ledger:
    """A store with its failure detector. Its methods are those of `Store`, which says what they promise.

    As long as the store is not open, each raises StoreUnavailableError. What the store holds was valid when it was
    written: if it cannot be read, or has a value that is not allowed, the store is at fault and never the caller, and
    the failure detector hears of it. One page is read at a time, for all who read, with a pause after it.
    """

    def __init__(self, store: Store | None = None) -> None:
        self.detector = FailureDetector(self)
        self._opened = store
        self._turn = asyncio.Lock()

    async def open(self, opening: Callable[[], Awaitable[Store]]) -> None:
        """Open the store, however long that takes; try again after pauses that grow to `LONGEST_PAUSE_SECONDS`.

        Raises:
            StoreUnusableError: It must not be used as it is, so that waiting would not help.
        """
        pause_seconds = FIRST_PAUSE_SECONDS
        while self._opened is None:
            try:
                self._opened = await opening()
            except StoreUnavailableError as error:
                fields = {"problem": str(error), "retry_seconds": pause_seconds}
                log.warning(
                    "The store cannot be opened yet.", extra={"event": "store.not_opened", "fields": fields}
                )
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)

    async def apply(self, act: Act, limits: AppliedLimits) -> Answer:
        """Decide a request and write the change before answering."""
        try:
            return await self._store.apply(act, limits)
        except StoreDamagedError as error:
            self.detector.damaged(error)
            raise
        except InvalidFieldError as error:
            # A store that reads its own answer may have made the change before.
            raise OutcomeUnknownError(str(self._damage("apply", act.account.text))) from error

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> AccountStatement:
        """Return the state of an account now."""
        with self.reading("read", account.text):
            return await self._store.read(account, levels)

    async def limits(self, account: Account) -> StoredLimits:
        """Return the stored limits of the levels of an account."""
        with self.reading("limits", account.text):
            return await self._store.limits(account)

    async def all_limits(self, root: str) -> StoredLimits:
        """Return all stored limits of a root."""
        with self.reading("all_limits", root):
            return await self._store.all_limits(root)

    async def roots(self) -> list[str]:
        """Return the root names of all accounts that were ever used."""
        with self.reading("roots", ""):
            return await self._store.roots()

    async def journal(self, root: str, after: str, until: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return the oldest entries of a root after one position, up to and with another."""
        async with self._page("journal", root):
            return await self._store.journal(root, after, until, most)

    async def latest(self, root: str, before: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return the newest entries of a root before a position."""
        async with self._page("latest", root):
            return await self._store.latest(root, before, most)

    async def balances(self, root: str, after: str, most: int) -> BalancePage:
        """Return about `most` balances of a root."""
        async with self._page("balances", root):
            return await self._store.balances(root, after, most)

    async def base(self, root: str) -> Base:
        """Return what stands for the dropped entries of a root."""
        with self.reading("base", root):
            return await self._store.base(root)

    async def write_base(self, root: str, base: Base) -> None:
        """Replace the base."""
        with self.reading("write_base", root):
            await self._store.write_base(root, base)

    async def drop_trimmed(self, root: str, most: int) -> int:
        """Remove the oldest entries that the base stands for."""
        with self.reading("drop_trimmed", root):
            return await self._store.drop_trimmed(root, most)

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the query_id of an open reservation of this account."""
        with self.reading("query_id_of", account.text):
            return await self._store.query_id_of(account, reservation_id)

    async def open_reservations(self, roots: Sequence[str]) -> int:
        """Return how many reservations of these roots are open."""
        with self.reading("open_reservations", ""):
            return await self._store.open_reservations(roots)

    async def back_up(self, folder: Path) -> Path:
        """Copy the ledger into a new file of a folder."""
        with self.reading("back_up", ""):
            return await self._store.back_up(folder)

    async def check(self) -> None:
        """Return if requests can be served now."""
        await self._store.check()

    async def ping(self) -> None:
        """Return as soon as the store answers a heartbeat."""
        await self._store.ping()

    async def close(self) -> None:
        """Finish running work and close the store."""
        await self._store.close()

    @contextmanager
    def reading(self, table: str, key: str) -> Iterator[None]:
        """Report damage that the block meets; the names are for a value of the ledger that is not allowed.

        Raises:
            StoreDamagedError: What the ledger holds cannot be read.
        """
        try:
            yield
        except StoreDamagedError as error:
            self.detector.damaged(error)
            raise
        except InvalidFieldError as error:
            raise self._damage(table, key) from error

    def _damage(self, table: str, key: str) -> StoreDamagedError:
        damage = StoreDamagedError(table, key)
        self.detector.damaged(damage)
        return damage

    @asynccontextmanager
    async def _page(self, table: str, key: str) -> AsyncIterator[None]:
        async with self._turn:
            began = thread_time()
            with self.reading(table, key):
                yield
            await pause(began)

    @property
    def _store(self) -> Store:
        if self._opened is None:
            raise StoreUnavailableError("the store is not open yet")
        return self._opened
