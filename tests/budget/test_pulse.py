"""When a store is taken for silent, and what is told meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from budget_service.pulse import Pulse
from budget_service.stores.interface import StoreError, StoreUnavailableError, StoreUnusableError
from tests.budget.memory_store import MemoryStore
from tests.budget.samples import SteppedClock

# Far more than it takes, for a machine that is busy.
PATIENCE_SECONDS = 5.0


@dataclass
class Hanging(MemoryStore):
    """A store that can be made to hang, and to fail its check."""

    answers: asyncio.Event = field(default_factory=asyncio.Event)
    fault: StoreError | None = None
    pings: int = 0

    async def ping(self) -> None:
        """Answer when it may."""
        self.pings += 1
        await self.answers.wait()

    async def check(self) -> None:
        """Say what is wrong."""
        if self.fault is not None:
            raise self.fault


@asynccontextmanager
async def followed(store: Hanging) -> AsyncIterator[Pulse]:
    """Give the pulse of a store that serves at first."""
    pulse = Pulse(store)
    tasks = [asyncio.create_task(each) for each in (pulse.watch(), pulse.check_again_and_again())]
    try:
        await pulse.changed.wait()
        yield pulse
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def becomes(pulse: Pulse, *, serving: bool) -> None:
    """Wait until it is as wanted."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while pulse.is_serving is not serving:
            pulse.changed.clear()
            await pulse.changed.wait()


async def test_a_store_that_says_nothing_to_a_call_is_silent_until_it_answers() -> None:
    """New calls are refused meanwhile, and an overdue sign of life is enough to go on."""
    store = Hanging(SteppedClock())
    async with followed(store) as pulse:
        pulse.demand()
        pulse.began()
        await becomes(pulse, serving=False)
        with pytest.raises(StoreUnavailableError, match="does not answer"):
            pulse.demand()
        store.answers.set()
        await becomes(pulse, serving=True)
        pulse.demand()
        assert store.pings == 1


async def test_a_store_that_is_not_asked_anything_is_not_asked_for_signs() -> None:
    """Nor one whose calls are answered, however long one of them takes."""
    store = Hanging(SteppedClock())
    async with followed(store) as pulse:
        await asyncio.sleep(0.2)
        pulse.began()
        for _ in range(50):
            pulse.heard()
            await asyncio.sleep(0.005)
        pulse.ended()
        assert store.pings == 0
        assert pulse.is_serving


async def test_a_failure_is_a_reason_to_ask_at_once() -> None:
    """Without any call that waits."""
    store = Hanging(SteppedClock())
    async with followed(store) as pulse:
        pulse.doubted()
        await becomes(pulse, serving=False)


async def test_a_store_that_must_not_be_used_gets_no_calls() -> None:
    """Its check says why, and the refusal repeats it."""
    store = Hanging(SteppedClock(), fault=StoreUnusableError("it forgets"))
    async with followed(store) as pulse:
        with pytest.raises(StoreUnavailableError, match="it forgets"):
            pulse.demand()
