"""Whoever leaves in the middle of a question holds nothing afterwards."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from pinot_connector import PrivateClient
from pinot_connector.engines.base import EngineAnswer
from pinot_connector.engines.duckdb import DuckDBEngine

from .asking import Corrupting, asking_client, untouched
from .lines import relayed
from .world import World, new_account


@pytest.mark.parametrize("moment", ["translated", "reserved", "asked"])
async def test_cancelling_gives_the_reservation_back(world: World, moment: str) -> None:
    """A caller who leaves, early or late, holds nothing afterwards."""
    reached, over = threading.Event(), threading.Event()

    def wait(answer: EngineAnswer) -> EngineAnswer:
        reached.set()
        over.wait(10)
        return answer

    engine = Corrupting(world, wait)
    async with asking_client(world, engine) as client:
        asking = asyncio.ensure_future(client.top_k("feedback", "article_id", 5))
        if moment == "asked":
            await asyncio.to_thread(reached.wait, 10)
        else:
            # Somewhere inside the first remote calls; wherever that is, nothing may stay held.
            await asyncio.sleep(0.004 if moment == "translated" else 0.008)
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


async def test_closing_gives_back_what_is_being_asked(world: World) -> None:
    """A client that is closed in the middle of a question leaves no reservation behind."""
    reached, over = threading.Event(), threading.Event()

    def wait(answer: EngineAnswer) -> EngineAnswer:
        reached.set()
        over.wait(10)
        return answer

    engine, account = Corrupting(world, wait), new_account()
    async with asking_client(world, engine, account=account) as client:
        asking = asyncio.ensure_future(client.top_k("feedback", "article_id", 5))
        await asyncio.to_thread(reached.wait, 10)
    assert asking.cancelled()
    over.set()
    async with asking_client(world, engine, account=account) as client:
        assert await untouched(client)
    engine.close()


def test_interrupting_the_blocking_client_gives_the_reservation_back(world: World) -> None:
    """Ctrl-C while the engine works: the question is not charged behind the caller's back."""
    over = threading.Event()

    def interrupt(answer: EngineAnswer) -> EngineAnswer:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        over.wait(10)
        return answer

    engine, account = Corrupting(world, interrupt), new_account()
    client = PrivateClient(dp=world.dp, budget=world.budget, account=account, engine=engine)
    with pytest.raises(KeyboardInterrupt), client:
        client.top_k("feedback", "article_id", 5)
    over.set()
    with PrivateClient(dp=world.dp, budget=world.budget, account=account, engine=engine) as client:
        (level,) = client.remaining()
        assert (level.spent.information, level.reserved.information) == (0, 0)
    engine.close()
