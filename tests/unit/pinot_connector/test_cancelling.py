"""A caller that leaves in the middle of a question holds nothing afterwards."""

from __future__ import annotations

import asyncio
import signal
import threading
import time

import pytest

from pinot_connector import AsyncPrivateClient, PrivateResult, structured_question
from pinot_connector.engines.base import EngineAnswer
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import KeptRelease, MemoryReleaseStore
from tests.support.clients import Corrupting, asking_client, blocking_client_of, client_of, untouched
from tests.support.interrupting import interruptible
from tests.support.relay import relayed
from tests.support.world import World, new_account


async def spent_and_held(client: AsyncPrivateClient) -> tuple[int, int, int]:
    """Return the information and the calls that the account itself has spent, and the information that is held."""
    (*_, level) = await client.remaining()
    return level.spent.information, level.spent.calls, level.reserved.information


@pytest.mark.parametrize("timestamp", ["translated", "reserved", "asked"])
async def test_cancelling_gives_the_reservation_back(world: World, timestamp: str) -> None:
    """A caller who leaves, early or late, holds nothing afterwards."""
    reached, over = threading.Event(), threading.Event()

    def wait(answer: EngineAnswer) -> EngineAnswer:
        reached.set()
        over.wait(40)
        return answer

    engine = Corrupting(world, wait)
    async with asking_client(world, engine) as client:
        asking = asyncio.ensure_future(client.top_k("feedback", "article_id", 5))
        if timestamp == "asked":
            await asyncio.to_thread(reached.wait, 40)
        else:
            # Somewhere inside the first remote calls; wherever that is, nothing may stay held.
            await asyncio.sleep(0.004 if timestamp == "translated" else 0.008)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        over.set()
        assert await untouched(client)
    engine.close()


async def test_a_reservation_that_is_cancelled_in_flight_is_given_back(
    world: World, engine: DuckDBEngine
) -> None:
    """The caller leaves while the reservation is being made: its answer is waited for, and undone."""
    async with relayed(world) as relay:
        async with asking_client(world, engine, budget=relay.address) as client:
            asking = asyncio.ensure_future(client.top_k("feedback", "article_id", 5))
            await relay.called("ReserveBudget")
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert await untouched(client)
        assert "ReleaseReservation" in relay.methods


@pytest.mark.parametrize("times", [1, 3])
async def test_a_charge_that_has_begun_is_finished_and_its_result_handed_over(
    world: World, engine: DuckDBEngine, times: int
) -> None:
    """The caller leaves, once or several times, while the charge travels: it is paid, and `paid` has the result."""
    results: list[PrivateResult] = []
    async with relayed(world) as relay:
        relay.delays["UpdateBudget"] = 0.1
        async with asking_client(world, engine, budget=relay.address) as client:
            question = structured_question("feedback", "article_id", k=5)
            asking = asyncio.ensure_future(client.ask(question, paid=results.append))
            await relay.called("UpdateBudget")
            for _ in range(times):
                asking.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await asking
            (result,) = results
            (*_, level) = await client.remaining()
            assert (level.spent.information, level.reserved.information) == (result.charged.information, 0)
        assert "ReleaseReservation" not in relay.methods


async def test_a_caller_who_leaves_while_noise_is_drawn_pays_in_full_and_again_for_an_answer(
    world: World, engine: DuckDBEngine
) -> None:
    """The ledger records no answer for the first charge; what the second one has paid for is free."""
    question = structured_question("feedback", "article_id", k=5)
    async with relayed(world) as relay:
        relay.delays["AddNoiseUnary"] = 20
        async with asking_client(world, engine, dp=relay.address) as client:
            asking = asyncio.ensure_future(client.ask(question))
            await relay.called("AddNoiseUnary")
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            price = (await client.explain(question)).worst_case_cost.information
            assert await spent_and_held(client) == (price, 1, 0)
            relay.delays.clear()
            charged = [(await client.ask(question)).charged.information for _ in range(2)]
            assert charged == [price, 0]
            assert await spent_and_held(client) == (2 * price, 2, 0)


class _SlowlyKeeping(MemoryReleaseStore):
    """Takes its time, and says when it has begun."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.goes_on = asyncio.Event(), asyncio.Event()

    async def keep(self, query_id: str, kept: KeptRelease) -> KeptRelease:
        """Waits before it keeps a release."""
        self.begun.set()
        await self.goes_on.wait()
        return await super().keep(query_id, kept)


async def test_a_question_that_is_cancelled_twice_is_charged_once(world: World, engine: DuckDBEngine) -> None:
    """It is drawn, and is being kept: the second cancellation does not end what the first one waits for."""
    store = _SlowlyKeeping()
    async with client_of(world, engine, releases=store) as client:
        asking = asyncio.ensure_future(client.ask(structured_question("feedback", "article_id", k=5)))
        await store.begun.wait()
        for _ in range(2):
            asking.cancel()
            await asyncio.sleep(0.01)
        store.goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await asking
        price = (await client.explain(structured_question("feedback", "article_id", k=5))).worst_case_cost
        (*_, level) = await client.remaining()
        assert 0 < level.spent.information <= price.information
        assert level.spent.calls == 1
        assert level.reserved.information == 0


async def test_closing_gives_back_what_is_being_asked(world: World) -> None:
    """A client that is closed in the middle of a question leaves no reservation behind."""
    reached, over = threading.Event(), threading.Event()

    def wait(answer: EngineAnswer) -> EngineAnswer:
        reached.set()
        over.wait(40)
        return answer

    engine, account = Corrupting(world, wait), new_account()
    async with asking_client(world, engine, account=account) as client:
        asking = asyncio.ensure_future(client.top_k("feedback", "article_id", 5))
        await asyncio.to_thread(reached.wait, 40)
    assert asking.cancelled()
    over.set()
    async with asking_client(world, engine, account=account) as client:
        assert await untouched(client)
    engine.close()


def test_interrupting_the_blocking_client_gives_the_reservation_back(world: World) -> None:
    """Ctrl-C while the engine works: the question is not charged behind the caller's back."""
    over = threading.Event()

    def interrupt(answer: EngineAnswer) -> EngineAnswer:
        # The reservation is made at the same time; by then it stands.
        time.sleep(0.5)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        over.wait(40)
        return answer

    engine = Corrupting(world, interrupt)
    with blocking_client_of(world, engine) as client:
        with interruptible(), pytest.raises(KeyboardInterrupt):
            client.top_k("feedback", "article_id", 5)
        # The loop gives it back in its own time; the engine would go on for forty seconds.
        deadline = time.monotonic() + 30
        while client.remaining()[-1].reserved.information and time.monotonic() < deadline:
            time.sleep(0.05)
        (*_, level) = client.remaining()
        assert (level.spent.information, level.reserved.information) == (0, 0)
    over.set()
    engine.close()


class _CancellingAtTheEnd(DuckDBEngine):
    """DuckDB whose caller leaves in the very moment in which the version of the data arrives."""

    def __init__(self, world: World) -> None:
        super().__init__(world.tables)
        self.loop = asyncio.get_running_loop()
        self.asking: asyncio.Future[PrivateResult]

    def data_version(self, table: str) -> str:
        """Reads the version while the event loop is kept busy, and has the caller leave before it can look."""
        self.loop.call_soon_threadsafe(self._cancel)
        return super().data_version(table)

    def _cancel(self) -> None:
        time.sleep(0.1)
        self.asking.cancel()


async def test_a_cancellation_that_comes_with_an_answer_is_not_forgotten(world: World) -> None:
    """asyncio.wait_for of Python 3.11 returns the answer instead, and the question would go on and be charged."""
    engine = _CancellingAtTheEnd(world)
    async with asking_client(world, engine) as client:
        engine.asking = asyncio.ensure_future(client.top_k("feedback", "article_id", 5))
        with pytest.raises(asyncio.CancelledError):
            await engine.asking
        assert await untouched(client)
    engine.close()


async def test_closing_waits_for_a_cancelled_question(world: World) -> None:
    """A question that is being cancelled is not cancelled again, which would cut off its giving back."""
    reached, over = threading.Event(), threading.Event()

    def wait(answer: EngineAnswer) -> EngineAnswer:
        reached.set()
        over.wait(40)
        return answer

    engine, account = Corrupting(world, wait), new_account()
    async with relayed(world) as relay:
        relay.delays["ReleaseReservation"] = 0.3
        async with asking_client(world, engine, budget=relay.address, account=account) as client:
            asking = asyncio.ensure_future(client.top_k("feedback", "article_id", 5))
            await asyncio.to_thread(reached.wait, 40)
            asking.cancel()
            await asyncio.sleep(0)
    over.set()
    async with asking_client(world, engine, account=account) as client:
        assert await untouched(client)
    engine.close()
