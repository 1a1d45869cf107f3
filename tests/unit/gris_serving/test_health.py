"""The health service: asked and watched, by many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gris_serving.health import Health

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICE_UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


@asynccontextmanager
async def asked(health: Any) -> AsyncIterator[Any]:
    """Serve it and give a stub."""
    server = grpc.aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield health_pb2_grpc.HealthStub(channel)
    finally:
        await server.stop(None)


def about(name: str) -> health_pb2.HealthCheckRequest:
    """Return a question about a name."""
    return health_pb2.HealthCheckRequest(service=name)


async def next_of(watch: Any) -> int:
    """Return the next status that a watcher hears."""
    async with asyncio.timeout(30):
        return int((await watch.read()).status)


async def test_a_check_tells_the_state_of_now() -> None:
    """What was last reported, and NOT_FOUND for a name that never was."""
    health = Health()
    async with asked(health) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Check(about("a"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        health.report(["a", "b"], serving=True)
        health.report(["b"], serving=False)
        assert [(await stub.Check(about(name))).status for name in "ab"] == [SERVING, NOT_SERVING]


async def test_a_watcher_hears_every_change_of_its_name_and_no_other() -> None:
    """From unknown to serving to not serving; a repeated report is none."""
    health = Health()
    async with asked(health) as stub:
        watch = stub.Watch(about("a"))
        assert await next_of(watch) == SERVICE_UNKNOWN
        for serving, status in ((True, SERVING), (False, NOT_SERVING)):
            health.report(["b"], serving=not serving)
            health.report(["a"], serving=serving)
            health.report(["a"], serving=serving)
            assert await next_of(watch) == status


async def test_a_watcher_that_leaves_deafens_nobody() -> None:
    """The library's own service forgets the others then, and a client that balances would not hear of an end."""
    health = Health()
    health.report(["a"], serving=True)
    async with asked(health) as stub:
        leaving, staying = stub.Watch(about("a")), stub.Watch(about("a"))
        assert [await next_of(leaving), await next_of(staying)] == [SERVING, SERVING]
        leaving.cancel()
        # A call after it: by its answer the server has seen the other one leave.
        await stub.Check(about("a"))
        await asyncio.sleep(0.1)
        health.report(["a"], serving=False)
        assert await next_of(staying) == NOT_SERVING


async def test_an_end_ends_every_watch_after_its_last_news() -> None:
    """Nobody has to be waited for."""
    health = Health()
    health.report(["a"], serving=True)
    async with asked(health) as stub:
        heard: list[int] = []

        async def watch() -> None:
            async for answer in stub.Watch(about("a")):
                heard.append(answer.status)

        watching = asyncio.create_task(watch())
        async with asyncio.timeout(30):
            while not heard:  # noqa: ASYNC110 - a list tells nobody
                await asyncio.sleep(0.01)
            health.report(["a"], serving=False)
            health.end()
            await watching
    assert heard == [SERVING, NOT_SERVING]


async def test_a_name_that_is_withdrawn_never_serves_again() -> None:
    """Whatever is reported of it later; other names go on."""
    health = Health()
    async with asked(health) as stub:
        health.report(["a", "b"], serving=True)
        health.withdraw(["a"])
        health.report(["a", "b"], serving=False)
        health.report(["a", "b"], serving=True)
        assert [(await stub.Check(about(name))).status for name in "ab"] == [NOT_SERVING, SERVING]
