"""A ledger that is dead, deaf or without its store: questions are refused quickly, and go on by themselves later.

The documented bound is 200 ms; the tests allow a loaded machine more, and far less than the time-outs of single calls.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import grpc
import pytest
from gris_api.budget.v1.budget_pb2 import Level
from gris_api.common.v1 import cost_pb2

from pinot_connector import PrivateClient, Timeouts
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budgets import Charge
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import BudgetExhausted, OutcomeUnknown, ServiceUnavailable
from tests.support.budget_client import charging, connected, failure
from tests.support.budget_process import NOT_SERVING, SERVING, Service, health_becomes, service
from tests.support.clients import asking_client
from tests.support.ports import free_port
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer, redis_server
from tests.support.relay import relayed
from tests.support.world import World, new_account

TIMEOUTS = Timeouts(budget_attempt=5, budget=20)
QUICKLY_SECONDS = 1.5
EVENTUALLY_SECONDS = 15.0
PATH = ("acme", "ann")
Answer = TypeVar("Answer")
COST = cost_pb2.Cost(information=4, calls=1, unit_id="0123456789abcdef" * 2)


@contextmanager
def quickly() -> Iterator[None]:
    """Demand that the block takes far less than one attempt may."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < QUICKLY_SECONDS


@asynccontextmanager
async def calls_to(address: str) -> AsyncIterator[BudgetServiceClient]:
    """Give the calls of one account."""
    calls = BudgetServiceClient(address, PATH, TIMEOUTS)
    try:
        yield calls
    finally:
        await calls.close()


@contextmanager
def deaf_port() -> Iterator[str]:
    """Listen on a port where whatever is said is lost: the system takes it, and nobody reads it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@asynccontextmanager
async def losing(address: str) -> AsyncIterator[tuple[Proxy, BudgetServiceClient, BudgetServiceClient]]:
    """Give a proxy that can lose replies, the calls that go through it, and calls that do not."""
    async with Proxy(address).listening() as proxy, calls_to(address) as direct:
        calls = BudgetServiceClient(
            proxy.address, PATH, Timeouts(budget_attempt=1, budget=3, budget_silence=10)
        )
        yield proxy, calls, direct
        await calls.close()


async def charged(calls: BudgetServiceClient, reservation_id: str) -> Charge:
    """Settle a reservation in full."""
    ids = {"reservation_id": reservation_id, "release_id": "release", "query_id": "query"}
    return await calls.charge(COST, **ids, charge_ticket=b"", policy_statement="")


@contextmanager
def ledger_on_redis(folder: Path) -> Iterator[tuple[RedisServer, Service]]:
    """Run a service on a Redis that can be killed."""
    with redis_server(folder) as redis, service(folder, redis.address) as running:
        yield redis, running


async def eventually(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask again and again until there is an answer."""
    async with asyncio.timeout(EVENTUALLY_SECONDS):
        while True:
            try:
                return await ask()
            except ServiceUnavailable:
                await asyncio.sleep(0.05)


async def until(condition: Callable[[Sequence[Level]], bool], calls: BudgetServiceClient) -> None:
    """Look at the budget until it is as wanted."""
    async with asyncio.timeout(EVENTUALLY_SECONDS):
        while not condition(await eventually(calls.levels)):  # noqa: ASYNC110 - another process cannot set an event
            await asyncio.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["127.0.0.1:{}", "ipv4:127.0.0.1:{},127.0.0.1:{}"])
async def test_a_dead_port_is_noticed_quickly(target: str) -> None:
    """Replicas too, though calls to them wait for one; and the next caller is refused at once."""
    async with calls_to(target.format(free_port(), free_port())) as calls:
        for _ in range(2):
            with quickly(), pytest.raises(ServiceUnavailable):
                await calls.reserve(COST, "query")


async def test_a_port_that_swallows_everything_is_noticed_quickly() -> None:
    """For a reservation and for a look at the budget."""
    with deaf_port() as address:
        async with calls_to(address) as calls:
            with quickly(), pytest.raises(ServiceUnavailable):
                await calls.reserve(COST, "query")
            with quickly(), pytest.raises(ServiceUnavailable):
                await calls.levels()


@pytest.mark.parametrize("dead", [True, False])
def test_the_client_for_ordinary_code_notices_too(engine: DuckDBEngine, dead: bool) -> None:
    """A port where nobody listens, and one that swallows everything."""
    with deaf_port() as deaf:
        address = f"127.0.0.1:{free_port()}" if dead else deaf
        client = PrivateClient(dp=deaf, budget=address, account=PATH, engine=engine, timeouts=TIMEOUTS)
        with client, quickly(), pytest.raises(ServiceUnavailable):
            client.remaining()


@pytest.mark.usefixtures("starts_redis")
async def test_a_dead_store_behind_a_living_service_is_noticed_quickly(tmp_path: Path) -> None:
    """Killed Redis: refused quickly; started again: the same client goes on, and nothing was charged twice."""
    with ledger_on_redis(tmp_path) as (redis, running):
        async with calls_to(running.address) as calls:
            await calls.reserve(COST, "before")
            redis.kill()
            for _ in range(3):
                with quickly(), pytest.raises(ServiceUnavailable):
                    await calls.reserve(COST, "while it is dead")
            redis.start()
            await eventually(lambda: calls.reserve(COST, "after"))
            levels = await calls.levels()
            assert levels[-1].reserved.calls == 2


@pytest.mark.usefixtures("starts_redis", "starts_postgres")
@pytest.mark.parametrize("kind", ["redis", "postgres"])
async def test_a_store_that_hangs_is_noticed_quickly_and_nothing_was_written(
    tmp_path: Path, kind: str
) -> None:
    """SIGSTOP: a charge of which nothing was written says so; later ones are refused unsent."""
    with ExitStack() as stack:
        store: RedisServer | PostgresServer
        if kind == "redis":
            store = stack.enter_context(redis_server(tmp_path))
        else:
            store = stack.enter_context(postgres_server())
        running = stack.enter_context(service(tmp_path, store.address))
        async with calls_to(running.address) as calls, connected(running.address) as stub:
            await eventually(calls.levels)
            with store.frozen():
                sent = asyncio.create_task(failure(stub.UpdateBudget(charging(request_id="sent"))))
                # What comes after it waits for its turn, and is not sent.
                await asyncio.sleep(0.05)
                with quickly(), pytest.raises(ServiceUnavailable):
                    await calls.reserve(COST, "query")
                with quickly():
                    await health_becomes(running.address, NOT_SERVING)
                    later = await failure(stub.UpdateBudget(charging(request_id="later")))
                assert later.info.reason == "STORE_UNAVAILABLE"
                # The store had only been asked what it holds, so that nothing can have been written.
                assert (await sent).info.reason == "STORE_UNAVAILABLE"
            await health_becomes(running.address, SERVING)
            await eventually(lambda: calls.reserve(COST, "after"))
            again = await stub.UpdateBudget(charging(request_id="sent"))
            assert again.charged.calls == 1
            (*_, level) = await calls.levels()
            assert level.spent.calls == 1


@pytest.mark.usefixtures("starts_processes")
async def test_a_stopped_service_is_noticed_quickly_and_found_again(tmp_path: Path) -> None:
    """SIGSTOP: its kernel still takes what is sent."""
    with service(tmp_path, f"sqlite:{tmp_path}/ledger.db") as running:
        async with calls_to(running.address) as calls:
            await calls.levels()
            running.process.send_signal(signal.SIGSTOP)
            with quickly(), pytest.raises(ServiceUnavailable):
                await calls.reserve(COST, "query")
            running.process.send_signal(signal.SIGCONT)
            await eventually(lambda: calls.reserve(COST, "another"))


@pytest.mark.usefixtures("starts_processes")
async def test_a_lost_reservation_is_repeated_under_its_id_and_held_once(tmp_path: Path) -> None:
    """gRPC repeats it by the channel's service config."""
    with service(tmp_path, f"sqlite:{tmp_path}/ledger.db") as running:
        async with losing(running.address) as (proxy, calls, direct):
            await calls.levels()
            async with proxy.swallowing():
                reserving = asyncio.create_task(calls.reserve(COST, "query"))
                await until(lambda levels: levels[-1].reserved.calls == 1, direct)
            assert (await reserving).replayed
            assert (await direct.levels())[-1].reserved.calls == 1


@pytest.mark.usefixtures("starts_redis")
async def test_a_charge_that_was_lost_before_the_store_died_is_unknown(tmp_path: Path) -> None:
    """Every later attempt had no effect, and says so; the first one was charged."""
    with ledger_on_redis(tmp_path) as (redis, running):
        async with losing(running.address) as (proxy, calls, direct):
            held = await calls.reserve(COST, "query")
            async with proxy.swallowing():
                charging = asyncio.create_task(charged(calls, held.reservation_id))
                await until(lambda levels: levels[-1].spent.calls == 1, direct)
                redis.kill()
            with pytest.raises(OutcomeUnknown):
                await charging
            redis.start()
            await until(lambda levels: levels[-1].spent.calls == 1, direct)


async def test_unavailable_is_repeated_and_an_exhausted_budget_is_not(
    world: World, engine: DuckDBEngine
) -> None:
    """UNAVAILABLE brings the same message again; RESOURCE_EXHAUSTED is an answer."""
    async with relayed(world) as relay:
        async with asking_client(world, engine, budget=relay.address, account=new_account("poor")) as client:
            with pytest.raises(BudgetExhausted):
                await client.top_k("feedback", "article_id", 5)
        assert relay.methods.count("ReserveBudget") == 1
        relay.calls.clear()
        relay.refusals["ReserveBudget"] = grpc.StatusCode.UNAVAILABLE
        async with asking_client(world, engine, budget=relay.address) as client:
            with pytest.raises(ServiceUnavailable):
                await client.top_k("feedback", "article_id", 5)
        sent = relay.requests("ReserveBudget")
        assert len(sent) > 1
        assert len(set(sent)) == 1
