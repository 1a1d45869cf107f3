"""Free repeats of long lists: they must not stop the event loop that all callers share."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from pinot_connector import shown_releases
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import MemoryReleaseStore
from tests.support.clients import client_of
from tests.support.some import some
from tests.support.world import WIDE_ELEMENTS, World, new_account


class Calls:
    """Counts the calls of a function, and how many of them run at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.threads: list[str] = []
        self.most = 0
        self._running = 0
        self._lock = threading.Lock()
        self._inner: Callable[..., object] = getattr(shown_releases, name)
        monkeypatch.setattr(shown_releases, name, self._called)

    def _called(self, *arguments: object) -> object:
        with self._lock:
            self.threads.append(threading.current_thread().name)
            self._running += 1
            self.most = max(self.most, self._running)
        try:
            return self._inner(*arguments)
        finally:
            with self._lock:
                self._running -= 1


async def test_a_repeat_takes_hardly_any_of_the_event_loops_time(world: World, engine: DuckDBEngine) -> None:
    """The same account and the same question: its result is remembered."""
    async with client_of(world, engine) as client:
        assert len((await client.histogram("wide", "element")).rows) == WIDE_ELEMENTS
        began = time.thread_time()
        for _ in range(3):
            await client.histogram("wide", "element")
        spent = (time.thread_time() - began) / 3
    assert spent < 0.05, f"each repeat takes {spent:.2f} s of the event loop's processor time"


async def test_repeats_by_a_client_that_remembers_nothing_are_shown_once(
    world: World, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at another gateway with the same store: eight repeats at a time compute one result, in a thread."""
    store, account = MemoryReleaseStore(), new_account()
    async with client_of(world, engine, account=account, releases=store) as client:
        await client.histogram("wide", "element")
    prepared, ranked = Calls(monkeypatch, "prepared"), Calls(monkeypatch, "_ranks")
    async with client_of(world, engine, account=account, releases=store) as other:
        # The first question of a client learns the version of the data.
        await other.sql("SELECT element, COUNT(DISTINCT member_id) AS c FROM wide GROUP BY element")
        began = time.thread_time()
        results = await asyncio.gather(*(other.histogram("wide", "element") for _ in range(8)))
        spent = time.thread_time() - began
    assert {len(result.rows) for result in results} == {WIDE_ELEMENTS}
    assert (len(prepared.threads), len(ranked.threads)) == (2, 1)
    assert all(name.startswith("gris-shown") for name in some(prepared.threads + ranked.threads))
    assert spent < 0.2, f"eight repeats take {spent:.2f} s of the event loop's processor time"


async def test_what_is_too_large_to_remember_is_shown_in_a_thread_each_time(
    world: World, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, and by the ranks of the first time; callers who leave start nothing more."""
    monkeypatch.setattr(shown_releases, "MAX_REMEMBERED_BYTES", 2 * 2**20)
    async with client_of(world, engine) as client:
        first = await client.histogram("wide", "element")
        prepared, ranked = Calls(monkeypatch, "prepared"), Calls(monkeypatch, "_ranks")
        began = time.thread_time()
        leaving = [asyncio.ensure_future(client.histogram("wide", "element")) for _ in range(8)]
        await asyncio.sleep(0.05)
        for each in leaving:
            each.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        results = await asyncio.gather(*(client.histogram("wide", "element") for _ in range(3)))
        spent = (time.thread_time() - began) / 11
    assert all(result.rows == first.rows for result in some(results))
    assert 3 <= len(prepared.threads) <= 4
    assert len(ranked.threads) <= 2
    assert prepared.most == ranked.most == 1
    assert spent < 0.1, f"each repeat takes {spent:.2f} s of the event loop's processor time"


async def test_what_is_remembered_has_a_bound_in_bytes(
    world: World, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The latest are remembered, as many as there is room for."""
    monkeypatch.setattr(shown_releases, "MAX_REMEMBERED_BYTES", 3 * shown_releases.RESULT_BYTES)
    prepared = Calls(monkeypatch, "prepared")
    async with client_of(world, engine) as client:
        for score in (-1, 0, 1):
            await client.histogram("feedback", "app", where={"score": score})
        made = len(prepared.threads)
        await client.histogram("feedback", "app", where={"score": 1})
        assert len(prepared.threads) == made
        await client.histogram("feedback", "app", where={"score": -1})
        assert len(prepared.threads) == made + 1
