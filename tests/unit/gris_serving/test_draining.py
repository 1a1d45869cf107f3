"""A server that ends: it says so, serves for the time that it was given, and has no connections left in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gris_serving.draining import connection_options, drain_and_stop
from gris_serving.health import Health
from gris_serving.instrumentation import NOTHING
from tests.support.echo import SERVICE, EchoStub, add_echo
from tests.support.raw_connection import raw_connection

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@asynccontextmanager
async def ending_server(drain_seconds: float) -> AsyncIterator[tuple[str, grpc.aio.Server, Health]]:
    """Run a server with a health service that says that it serves."""
    server = grpc.aio.server(options=connection_options(drain_seconds))
    health = Health()
    health.report(["echo"], serving=True)
    add_echo(NOTHING.before(server))
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}", server, health
    finally:
        await server.stop(None)


def draining(server: grpc.aio.Server, health: Health, seconds: float) -> asyncio.Task[None]:
    """Begin to end a server."""
    ending = drain_and_stop(server, health, ["echo"], drain_seconds=seconds, grace_seconds=5)
    return asyncio.create_task(ending)


@pytest.mark.slow
async def test_a_server_that_drains_says_so_and_serves_whoever_comes() -> None:
    """NOT_SERVING at once; old and new connections are served until the drain is over, and none after it."""
    async with ending_server(1.0) as (address, server, health):
        async with grpc.aio.insecure_channel(address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            watch = stub.Watch(health_pb2.HealthCheckRequest(service="echo"))
            assert (await watch.read()).status == SERVING
            ending = draining(server, health, 1.0)
            assert (await watch.read()).status == NOT_SERVING
            assert not ending.done()
            assert await EchoStub(channel).one("old") == "old"
            async with grpc.aio.insecure_channel(address) as new:
                assert await EchoStub(new).one("new") == "new"
            assert not ending.done()
            await ending
        async with grpc.aio.insecure_channel(address) as late:
            with pytest.raises(grpc.aio.AioRpcError):
                await EchoStub(late).one("late")


async def test_a_call_that_runs_when_the_drain_ends_is_waited_for() -> None:
    """It gets its answer within the grace."""
    async with ending_server(0.2) as (address, server, health), grpc.aio.insecure_channel(address) as channel:
        many: Any = channel.stream_stream("/gris.test.Echo/Many")
        call = many()
        await call.write(b"\n\x01a")
        assert await call.read() == b"\n\x01a"
        ending = draining(server, health, 0.2)
        await asyncio.sleep(0.4)
        await call.write(b"\n\x01b")
        await call.done_writing()
        assert await call.read() == b"\n\x01b"
        assert await call.code() is grpc.StatusCode.OK
        await ending


async def test_a_connection_ends_within_the_drain_and_its_calls_do_not_notice() -> None:
    """Calls go on over the next connection, without an error, while the first is closed in good order."""
    async with ending_server(0.4) as (address, *_), grpc.aio.insecure_channel(address) as channel:
        echo = EchoStub(channel)
        await echo.one("first")
        state = grpc.ChannelConnectivity.READY
        assert channel.get_state() is state
        async with asyncio.timeout(30):
            await channel.wait_for_state_change(state)
        for number in range(100):
            assert await echo.one(str(number)) == str(number)


@pytest.mark.slow
async def test_a_call_that_is_never_finished_does_not_outlive_its_connection_for_ever() -> None:
    """Half of a request has come when the connection's time is over: it is closed when the grace is over too."""
    server = grpc.aio.server(options=connection_options(0.4, grace_seconds=0.5))
    add_echo(NOTHING.before(server))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()

    def is_closed() -> bool:
        with raw_connection(f"127.0.0.1:{port}") as connection:
            connection.send([connection.begin(f"/{SERVICE}/One")], b"\n\x01a", withheld=1)
            return connection.is_closed()

    try:
        assert await asyncio.to_thread(is_closed)
    finally:
        await server.stop(None)
