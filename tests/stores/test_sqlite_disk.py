"""Calls wait for a slow disk; a disk that hangs is noticed and reported to everybody."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import grpc
import pytest

from budget_service.server.hosting import STORE, serving
from budget_service.server.ledger import Ledger
from budget_service.stores.interface import OutcomeUnknownError, Store, StoreUnavailableError
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from tests.support.budget_client import charging, connected, cost, failure
from tests.support.budget_process import NOT_SERVING, SERVING, health_becomes
from tests.support.budget_samples import SteppedClock, charge
from tests.support.ledger_stores import closing
from tests.unit.budget_service.served import SETTINGS
from tests.unit.budget_service.slow_disk import SlowConnection

SHORT_SECONDS = 0.2
SHORT_TIMEOUTS = Tuning(slow_disk_seconds=SHORT_SECONDS, hanging_disk_seconds=2 * SHORT_SECONDS)


@pytest.fixture(autouse=True)
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have every ledger on such connections."""
    SlowConnection.begun.clear()
    SlowConnection.gate.clear()
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=SlowConnection))
    yield
    SlowConnection.gate.set()


@asynccontextmanager
async def slow_store(folder: Path) -> AsyncIterator[Store]:
    """Yield a store on such a disk; in the end the disk answers, so that a test that fails can close it."""
    async with closing(
        SqliteStore.open(folder / "ledger.db", SteppedClock(), tuning=SHORT_TIMEOUTS)
    ) as store:
        try:
            yield store
        finally:
            SlowConnection.gate.set()


async def test_a_slow_disk_gives_signs_of_life_until_it_is_too_slow(tmp_path: Path) -> None:
    """A sign that is asked for after that comes when the commit is done."""
    async with slow_store(tmp_path) as store:
        asked = asyncio.create_task(store.apply(*charge("c")))
        await asyncio.to_thread(SlowConnection.begun.wait)
        await store.ping()
        await asyncio.sleep(SHORT_SECONDS)
        heartbeat = asyncio.create_task(store.ping())
        await asyncio.sleep(SHORT_SECONDS / 2)
        assert not heartbeat.done()
        SlowConnection.gate.set()
        await heartbeat
        await asked


async def test_who_waits_for_a_disk_that_hangs_is_told_what_is_known(tmp_path: Path) -> None:
    """Unknown is what was being committed, nothing is what was behind it, and nobody else gets in line."""
    async with slow_store(tmp_path) as store:
        first = asyncio.create_task(store.apply(*charge("first")))
        await asyncio.to_thread(SlowConnection.begun.wait)
        behind = asyncio.create_task(store.apply(*charge("behind")))
        with pytest.raises(OutcomeUnknownError, match="the disk does not answer"):
            await first
        for late in (behind, store.apply(*charge("late"))):
            with pytest.raises(StoreUnavailableError, match="the disk does not answer"):
                await asyncio.wait_for(late, 20)
        SlowConnection.gate.set()
        await store.ping()
        assert (await store.apply(*charge("first"))).replayed
        assert not (await store.apply(*charge("behind"))).replayed
        assert not (await store.apply(*charge("late"))).replayed


async def test_a_disk_that_hangs_while_entries_are_dropped_takes_no_charge(tmp_path: Path) -> None:
    """A heartbeat waits, charges are refused, and all goes on when the disk answers."""
    async with slow_store(tmp_path) as store:
        dropping = asyncio.create_task(store.drop_trimmed("acme", 1))
        await asyncio.to_thread(SlowConnection.begun.wait)
        await asyncio.sleep(2.5 * SHORT_SECONDS)
        heartbeat = asyncio.create_task(store.ping())
        with pytest.raises(StoreUnavailableError, match="the disk does not answer"):
            await asyncio.wait_for(store.apply(*charge("late")), 20)
        assert not heartbeat.done()
        SlowConnection.gate.set()
        await heartbeat
        assert await dropping == 0
        assert not (await store.apply(*charge("late"))).replayed


@pytest.mark.slow
async def test_a_service_whose_disk_hangs_says_so_and_goes_on_later(tmp_path: Path) -> None:
    """Its store is not serving, then the whole; new calls are refused at once, and the first charge is made once."""
    async with (
        slow_store(tmp_path) as store,
        serving(Ledger(store), SETTINGS, "127.0.0.1:0") as address,
        connected(address) as stub,
    ):
        await health_becomes(address, SERVING)
        first = asyncio.create_task(failure(stub.UpdateBudget(charging(request_id="first"))))
        await health_becomes(address, NOT_SERVING, STORE)
        await health_becomes(address, NOT_SERVING)
        later = await failure(stub.UpdateBudget(charging(request_id="later")))
        assert (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE") == (later.code, later.info.reason)
        assert (await first).info.reason == "OUTCOME_UNKNOWN"
        SlowConnection.gate.set()
        await health_becomes(address, SERVING)
        again = await stub.UpdateBudget(charging(request_id="first"))
        assert again.replayed
        assert again.levels[-1].spent == cost(4, 1)
