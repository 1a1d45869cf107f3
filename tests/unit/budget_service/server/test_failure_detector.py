"""When a store counts as silent and as unavailable, and what callers get meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from budget_service.server.failure_detector import LATE_SECONDS, STEP_SECONDS, FailureDetector
from budget_service.stores.interface import StoreError, StoreUnavailableError, StoreUnusableError
from tests.support.budget_samples import SteppedClock
from tests.unit.budget_service.memory_store import MemoryStore

# Far more than it takes, for a machine that is busy.
TIMEOUT_SECONDS = 5.0
# Each turn of the loop takes longer than a step may, and all of them longer than a sign may.
TURN_SECONDS = STEP_SECONDS + 2 * LATE_SECONDS
HELD_UP_SECONDS = 0.4


@dataclass
class Hanging(MemoryStore):
    """A store that can be made to hang, to be out of reach, and to fail its check."""

    speaks: asyncio.Event = field(default_factory=asyncio.Event)
    refuses: bool = False
    fault: StoreError | None = None
    pings: int = 0

    async def ping(self) -> None:
        """Answer when it may."""
        self.pings += 1
        if self.refuses:
            raise StoreUnavailableError("nobody listens")
        await self.speaks.wait()

    async def check(self) -> None:
        """Say what is wrong."""
        if self.fault is not None:
            raise self.fault


@asynccontextmanager
async def followed(store: Hanging) -> AsyncIterator[FailureDetector]:
    """Give the failure detector of a store that serves at first."""
    detector = FailureDetector(store)
    tasks = [asyncio.create_task(each) for each in (detector.watch(), detector.keep_checking())]
    try:
        await detector.changed.wait()
        yield detector
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def becomes(detector: FailureDetector, *, answers: bool, serving: bool) -> None:
    """Wait until it is as wanted."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while (detector.answers, detector.is_serving) != (answers, serving):
            detector.changed.clear()
            await detector.changed.wait()


async def test_a_store_that_is_silent_for_a_moment_keeps_new_calls_waiting() -> None:
    """They go on with the sign that was overdue; the service as a whole has not said that it cannot serve."""
    store = Hanging(SteppedClock())
    async with followed(store) as detector:
        await detector.admit()
        detector.began()
        await becomes(detector, answers=False, serving=True)
        coming = asyncio.create_task(detector.admit())
        await asyncio.sleep(0)
        assert not coming.done()
        store.speaks.set()
        await coming
        assert (detector.answers, detector.is_serving, store.pings) == (True, True, 1)


async def test_a_store_that_stays_silent_is_gone_until_it_answers() -> None:
    """Calls that wait are refused, later ones at once; a late heartbeat is enough to go on, and is waited for."""
    store = Hanging(SteppedClock())
    async with followed(store) as detector:
        detector.began()
        await becomes(detector, answers=False, serving=True)
        waiting = asyncio.create_task(detector.admit())
        await becomes(detector, answers=False, serving=False)
        with pytest.raises(StoreUnavailableError, match="does not answer"):
            await waiting
        with pytest.raises(StoreUnavailableError, match="does not answer"):
            await detector.admit()
        reached = asyncio.create_task(detector.reached())
        await asyncio.sleep(0)
        assert not reached.done()
        store.speaks.set()
        await reached
        await detector.admit()
        assert store.pings == 1


async def test_a_store_that_cannot_be_reached_is_gone_without_being_silent_first() -> None:
    """Two attempts are refused, and nobody waits for a third."""
    store = Hanging(SteppedClock(), refuses=True)
    async with followed(store) as detector:
        detector.request_heartbeat()
        await detector.changed.wait()
        await becomes(detector, answers=False, serving=False)
        assert store.pings == 2


async def test_a_loop_that_is_held_up_does_not_accuse_the_store() -> None:
    """While something else keeps the loop, no silence counts, however long; then it does."""
    store = Hanging(SteppedClock())
    async with followed(store) as detector:
        detector.request_heartbeat()
        end = time.monotonic() + HELD_UP_SECONDS
        while time.monotonic() < end:
            time.sleep(TURN_SECONDS)  # noqa: ASYNC251 - that is what is tried
            await asyncio.sleep(0)
            assert detector.answers
        assert store.pings == 1
        await becomes(detector, answers=False, serving=True)


async def test_a_store_that_is_not_asked_anything_is_not_asked_for_signs() -> None:
    """Nor one whose calls are answered, however long one of them takes."""
    store = Hanging(SteppedClock())
    async with followed(store) as detector:
        await asyncio.sleep(0.2)
        detector.began()
        end = time.monotonic() + 0.25
        while time.monotonic() < end:
            detector.answered()
            await asyncio.sleep(0)
        detector.ended()
        assert store.pings == 0
        assert detector.is_serving


async def test_a_failure_is_a_reason_to_ask_at_once() -> None:
    """Without any call that waits."""
    store = Hanging(SteppedClock())
    async with followed(store) as detector:
        detector.request_heartbeat()
        await becomes(detector, answers=False, serving=True)


async def test_a_store_that_must_not_be_used_gets_no_calls() -> None:
    """Its check says why, and the refusal repeats it."""
    store = Hanging(SteppedClock(), fault=StoreUnusableError("it forgets"))
    async with followed(store) as detector:
        with pytest.raises(StoreUnavailableError, match="it forgets"):
            await detector.admit()


async def test_nothing_ticks_while_no_call_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service without callers costs no CPU: a timer runs from the first call that waits, one for all of them."""
    loop, timers = asyncio.get_running_loop(), []
    call_at = loop.call_at

    def counted(when: float, callback: Any, *arguments: Any, **others: Any) -> asyncio.TimerHandle:
        timers.append(callback)
        return call_at(when, callback, *arguments, **others)

    detector = FailureDetector(Hanging(SteppedClock()))
    watching = asyncio.create_task(detector.watch())
    monkeypatch.setattr(loop, "call_at", counted)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not timers
    detector.began()
    detector.began()
    assert len(timers) == 1
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
