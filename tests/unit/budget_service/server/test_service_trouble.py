"""The service while its store fails, is slow or hangs, and while its callers leave or are too many."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

from budget_service.ledger.act import Act
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import Answer
from budget_service.server.hosting import CALLS_OF_A_CONNECTION, serving
from budget_service.server.ledger import Ledger
from budget_service.stores.interface import OutcomeUnknownError, StoreUnavailableError
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from tests.support.budget_client import (
    charging,
    connected,
    cost,
    failure,
    reserving,
    stub_of,
)
from tests.support.budget_samples import SteppedClock
from tests.support.log_events import everything_logged, logged_events
from tests.unit.budget_service.memory_store import MemoryStore
from tests.unit.budget_service.served import SETTINGS, Stub
from tests.unit.budget_service.slow_disk import SlowConnection


@dataclass
class TroubledStore(MemoryStore):
    """A store that waits before it works, or fails."""

    trouble: Exception | None = None
    gate: asyncio.Event | None = None
    started: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    async def apply(self, request: Act, limits: AppliedLimits) -> Answer:
        """Wait, fail or work."""
        if self.trouble is not None:
            raise self.trouble
        self.started.set()
        self.asked.put_nowait(request.account.root)
        if self.gate is not None:
            await self.gate.wait()
        return await super().apply(request, limits)


@pytest.mark.parametrize(
    ("trouble", "code", "reason", "event"),
    [
        (
            StoreUnavailableError("down"),
            grpc.StatusCode.UNAVAILABLE,
            "STORE_UNAVAILABLE",
            "store.unavailable",
        ),
        (
            OutcomeUnknownError("lost"),
            grpc.StatusCode.UNAVAILABLE,
            "OUTCOME_UNKNOWN",
            "store.outcome_unknown",
        ),
        (RuntimeError("a fault that speaks of acme"), grpc.StatusCode.INTERNAL, "INTERNAL", "internal_error"),
    ],
)
async def test_a_store_in_trouble_is_never_an_allow(
    clock: SteppedClock,
    trouble: Exception,
    code: grpc.StatusCode,
    *,
    reason: str,
    event: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The reason says whether it had an effect; the text of a fault appears nowhere, not even in the log."""
    store = TroubledStore(clock, trouble=trouble)
    async with serving(Ledger(store), SETTINGS, "127.0.0.1:0") as address, connected(address) as stub:
        error = await failure(stub.ReserveBudget(reserving()))
        assert (code, reason) == (error.code, error.info.reason)
        assert "acme" not in error.message
        assert event in [name for name, _ in logged_events(caplog)]
        assert "acme" not in everything_logged(caplog)
        store.trouble = None
        assert (await stub.ReserveBudget(reserving())).reservation_id


async def test_an_outage_is_logged_once_and_not_for_each_call(
    clock: SteppedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """What the store says instead is logged, too."""
    caplog.set_level(logging.INFO)
    store = TroubledStore(clock)
    async with serving(Ledger(store), SETTINGS, "127.0.0.1:0") as address, connected(address) as stub:
        for problem in ("down", "down", "down", "full", "full"):
            store.trouble = StoreUnavailableError(problem)
            await failure(stub.ReserveBudget(reserving()))
    events = [(name, fields.get("problem")) for name, fields in logged_events(caplog)]
    assert [("store.unavailable", "down"), ("store.unavailable", "full")] == [
        event for event in events if event[0] in ("store.unavailable", "rpc.finished")
    ]


async def test_more_calls_than_may_run_are_told_so(clock: SteppedClock) -> None:
    """UNAVAILABLE with a reason, and without an effect."""
    store = TroubledStore(clock, gate=asyncio.Event())
    assert store.gate is not None
    one = Tuning(running_calls=1)
    async with (
        serving(Ledger(store), SETTINGS, "127.0.0.1:0", tuning=one) as address,
        connected(address) as stub,
    ):
        first = asyncio.ensure_future(stub.UpdateBudget(charging()))
        await store.started.wait()
        error = await failure(stub.UpdateBudget(charging()))
        assert (grpc.StatusCode.UNAVAILABLE, "OVERLOADED") == (error.code, error.info.reason)
        assert "of one root" in error.message
        assert error.retry is not None
        assert error.retry.retry_delay.seconds == 1
        store.gate.set()
        assert (await first).charged == cost(4, 1)
    assert len(store.entries) == 1


async def test_one_root_cannot_take_the_places_of_others(clock: SteppedClock) -> None:
    """It may have as many calls as are still free; its refusal is not that of an exhausted budget."""
    store = TroubledStore(clock, gate=asyncio.Event())
    assert store.gate is not None
    four = Tuning(running_calls=4)
    async with (
        serving(Ledger(store), SETTINGS, "127.0.0.1:0", tuning=four) as address,
        connected(address) as stub,
    ):
        calls = [stub.UpdateBudget(charging(cost(1, 1))) for _ in range(3)]
        crowd = [asyncio.create_task(failure(each)) for each in calls]
        (refused,), _ = await asyncio.wait(crowd, return_when=asyncio.FIRST_COMPLETED)
        error = await refused
        assert (grpc.StatusCode.UNAVAILABLE, "OVERLOADED") == (error.code, error.info.reason)
        assert "of one root" in error.message
        other = stub.UpdateBudget(charging(cost(1, 1), path=("watched",)))
        store.gate.set()
        assert (await other).charged == cost(1, 1)
        codes = [await call.code() for call in calls]
        assert codes.count(grpc.StatusCode.OK) == 2
        await asyncio.gather(*crowd, return_exceptions=True)


async def test_a_caller_is_not_behind_all_calls_of_another_connection(clock: SteppedClock) -> None:
    """Most of three hundred wait in their own client, whose calls are all answered in the end, again and again."""
    store = TroubledStore(clock, gate=asyncio.Event())
    assert store.gate is not None

    async def keep_charging(stub: Stub) -> None:
        for _ in range(3):
            await stub.UpdateBudget(charging(cost(0, 0), path=("watched",)))

    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(serving(Ledger(store), SETTINGS, "127.0.0.1:0"))
        crowded = await stack.enter_async_context(connected(address))
        # With the same options it would share the other's connection.
        options = (("grpc.use_local_subchannel_pool", 1),)
        other = stub_of(await stack.enter_async_context(grpc.aio.insecure_channel(address, options=options)))
        crowd = [asyncio.create_task(keep_charging(crowded)) for _ in range(300)]
        async with asyncio.timeout(30):
            asked = [await store.asked.get() for _ in range(CALLS_OF_A_CONNECTION)]
            late = asyncio.ensure_future(other.UpdateBudget(charging()))
            asked.append(await store.asked.get())
        assert asked == ["watched"] * CALLS_OF_A_CONNECTION + ["acme"]
        store.gate.set()
        assert (await late).charged == cost(4, 1)
        await asyncio.gather(*crowd)


@pytest_asyncio.fixture
async def slow_stub(
    tmp_path: Path, clock: SteppedClock, tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stub]:
    """Serve a ledger whose commits wait for `SlowConnection.gate`."""
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=SlowConnection))
    store = SqliteStore.open(tmp_path / "ledger.db", clock)
    SlowConnection.gate.set()
    SlowConnection.begun.clear()
    SlowConnection.gate.clear()
    async with (
        serving(Ledger(store), SETTINGS, "127.0.0.1:0", tuning=tuning) as address,
        connected(address) as stub,
    ):
        yield stub
    await store.close()


async def gives_up(call: grpc.aio.UnaryUnaryCall[Any, Any]) -> None:
    """See that a call ends with its deadline."""
    with pytest.raises(grpc.aio.AioRpcError) as late:
        await call
    assert late.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_deadline_does_not_interrupt_a_commit(slow_stub: Stub) -> None:
    """The caller gives up; the charge is made, and its repeat finds it. One that still waited has no effect."""
    asked, behind = charging(request_id="id"), charging(request_id="behind")
    late = asyncio.ensure_future(gives_up(slow_stub.UpdateBudget(asked, timeout=0.4)))
    await asyncio.to_thread(SlowConnection.begun.wait)
    await asyncio.gather(late, gives_up(slow_stub.UpdateBudget(behind, timeout=0.2)))
    SlowConnection.gate.set()
    again = await slow_stub.UpdateBudget(asked)
    assert again.replayed
    assert cost(4, 1) == again.levels[-1].spent
    assert not (await slow_stub.UpdateBudget(behind)).replayed


@pytest.mark.parametrize("tuning", [Tuning(running_calls=3)])
async def test_callers_who_give_up_do_not_add_up(slow_stub: Stub) -> None:
    """While the disk hangs: what nobody waits for any more takes no place from those who do."""
    first = slow_stub.UpdateBudget(charging(request_id="first"))
    await asyncio.to_thread(SlowConnection.begun.wait)
    for _ in range(5):
        await gives_up(slow_stub.UpdateBudget(charging(cost(1, 1)), timeout=0.05))
    # The service hears of a deadline by its own clock, a little later on a busy machine.
    await asyncio.sleep(0.3)
    SlowConnection.gate.set()
    assert (await first).levels[-1].spent == cost(4, 1)
    # It comes after whatever was left in the line.
    assert (await slow_stub.UpdateBudget(charging(cost(2, 1)))).levels[-1].spent == cost(6, 2)


async def test_a_stop_finishes_what_has_begun(clock: SteppedClock) -> None:
    """A charge that is under way when the server stops is made and answered."""
    store = TroubledStore(clock, gate=asyncio.Event())
    assert store.gate is not None
    async with AsyncExitStack() as clients:
        async with serving(Ledger(store), SETTINGS, "127.0.0.1:0") as address:
            stub = await clients.enter_async_context(connected(address))
            call = asyncio.ensure_future(stub.UpdateBudget(charging()))
            await store.started.wait()
            asyncio.get_running_loop().call_later(0.2, store.gate.set)
        assert (await call).charged == cost(4, 1)
