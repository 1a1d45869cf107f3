"""A ledger in SQLite whose clock a test moves, with its administrator, for command lines that run beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from budget_service.configuration.budget_file import Configuration
from budget_service.server.failure_detector import FailureDetector
from budget_service.server.hosting import administering, serving
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.interface import Store
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from gris_cli.__main__ import main
from tests.support.budget_samples import SteppedClock


@dataclass(frozen=True)
class ClockedLedger:
    """Both addresses of a ledger, its store by ids, and its clock."""

    address: str
    admin_address: str
    store: Store
    clock: SteppedClock

    async def typed(self, *words: object, code: int = 0) -> None:
        """Run a command of `gris budget` that needs the administrator's address, and see that it ends so."""
        typed = ["budget", *map(str, words), "--admin", self.admin_address]
        assert await asyncio.to_thread(main, typed) == code


@asynccontextmanager
async def clocked_ledger(
    folder: Path, configuration: Configuration, archive: Path | None = None
) -> AsyncIterator[ClockedLedger]:
    """Serve a ledger, whose journals may be archived if there is a folder for it."""
    clock, settings = SteppedClock(), LiveSettings(Settings(configuration))
    store = SqliteStore.open(folder / "ledger.db", clock)
    detector = FailureDetector(store)
    async with (
        serving(store, settings, "127.0.0.1:0") as address,
        administering(
            store, settings, "127.0.0.1:0", archive, detector=detector, tuning=Tuning()
        ) as admin_address,
    ):
        yield ClockedLedger(address, admin_address, store, clock)
    await store.close()
