"""Readings of a ledger go page by page. Others have their turn after each page, and a reading ends with its caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc

from budget_service.ledger.values import Account, Cost, LevelLimit
from budget_service.server.hosting import administering
from budget_service.server.ledger import Ledger
from budget_service.stores.interface import Store
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from tests.support.budget_client import account as named
from tests.support.budget_client import failure
from tests.support.budget_samples import COMPANY, SteppedClock, charge, limit, reserve
from tests.support.ledger_stores import closing
from tests.unit.budget_service.limit_settings import SETTINGS

ACCOUNTS = 9
TUNING = Tuning(journal_page=2, statements_page=2)
ABOVE = LevelLimit(COMPANY, limit(10**6, 10**6))

READINGS: dict[str, Callable[[Any, Path], Awaitable[Any]]] = {
    "VerifyLedger": lambda stub, _: stub.VerifyLedger(pb.VerifyLedgerRequest()),
    "ReadJournal": lambda stub, _: stub.ReadJournal(pb.ReadJournalRequest(under=named(("acme",)))),
    "RefundCharge": lambda stub, _: failure(
        stub.RefundCharge(
            pb.RefundChargeRequest(
                account=named(("acme", "a0")), release_id="never", reason="wrong", request_id="f"
            )
        )
    ),
    "TrimJournal": lambda stub, _: stub.TrimJournal(
        pb.TrimJournalRequest(account=named(("acme",)), exported="9")
    ),
}


class Watched:
    """A store that notes how long its pages are, and how often others had their turn since the page before."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.turns = 0
        self._turns_before = 0
        self.lengths: list[int] = []
        self.others: list[int] = []
        self.free = asyncio.Event()
        self.free.set()
        self.began, self.ended = asyncio.Event(), asyncio.Event()

    async def take_turns(self) -> None:
        """Stand for whatever else the service has to do."""
        while True:
            self.turns += 1
            await asyncio.sleep(0)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in ("journal", "latest", "balances"):
            return method

        async def watched(*arguments: Any) -> Any:
            self.others.append(self.turns - self._turns_before)
            self.began.set()
            try:
                await self.free.wait()
            finally:
                self.ended.set()
            page = await method(*arguments)
            self._turns_before = self.turns
            found = page if isinstance(page, list) else getattr(page, "entries", None) or page.balances
            self.lengths.append(len(found))
            return page

        return watched


@asynccontextmanager
async def charged(folder: Path, clock: SteppedClock, accounts: int = ACCOUNTS) -> AsyncIterator[Store]:
    """Open a ledger of some accounts, each with a charge and a reservation."""
    async with closing(SqliteStore.open(folder / "ledger.db", clock)) as store:
        for number in range(accounts):
            who = Account(("acme", f"a{number}"))
            on = (ABOVE, LevelLimit(who, limit(100, 100)))
            await store.apply(*charge(f"c{number}", Cost(1, 1), account=who, on=on))
            await store.apply(*reserve(f"r{number}", Cost(2, 1), account=who, on=on))
        yield store


@pytest.mark.parametrize("reading", READINGS)
async def test_a_reading_ends_when_its_caller_leaves(
    reading: str, tmp_path: Path, clock: SteppedClock
) -> None:
    """It would keep the service busy for nothing, and from ending."""
    async with charged(tmp_path, clock) as store:
        watched = Watched(store)
        watched.free.clear()
        async with (
            administering(Ledger(cast(Store, watched)), SETTINGS, "127.0.0.1:0", tuning=TUNING) as address,
            grpc.aio.insecure_channel(address) as channel,
        ):
            asking = asyncio.ensure_future(
                READINGS[reading](admin_pb2_grpc.BudgetAdminServiceStub(channel), tmp_path)
            )
            await watched.began.wait()
            asking.cancel()
            await asyncio.wait_for(watched.ended.wait(), 10)
    assert not watched.lengths


@pytest.mark.parametrize("reading", READINGS)
async def test_others_have_their_turn_after_each_short_page(
    reading: str, tmp_path: Path, clock: SteppedClock
) -> None:
    """Whatever an administrator has read; SQLite itself never waits for anything."""
    async with charged(tmp_path, clock) as store:
        watched = Watched(store)
        async with (
            administering(Ledger(cast(Store, watched)), SETTINGS, "127.0.0.1:0", tuning=TUNING) as address,
            grpc.aio.insecure_channel(address) as channel,
        ):
            others = asyncio.create_task(watched.take_turns())
            await READINGS[reading](admin_pb2_grpc.BudgetAdminServiceStub(channel), tmp_path)
            others.cancel()
    assert len(watched.others) > ACCOUNTS / TUNING.journal_page
    assert all(watched.others)
    # The first page of balances has that of the root besides.
    assert max(watched.lengths) <= TUNING.journal_page + 1
