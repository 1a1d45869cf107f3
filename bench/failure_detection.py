"""How soon a dead store is noticed: by who asks through the connector, and by the health check of the store.

    python -m bench.failure_detection --samples 20

The store is killed (SIGKILL), frozen (SIGSTOP) or cut off (whatever is sent to it or comes from it is lost) at a random
moment while one caller asks for its budget again and again. It reports the time from then to the first refusal
that the caller gets, and to the first NOT_SERVING; the documented bound is 200 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from pinot_connector import Timeouts
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.errors import GrisError
from tests.support.budget_process import service
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer, redis_server

StoreProcess: TypeAlias = RedisServer | PostgresServer

WAYS = KILLED, FROZEN, CUT_OFF = ("killed", "frozen", "cut off")
BOUND_MS = 200
PAUSE_SECONDS = 0.005
# The service looks again every second; by then everything is as before.
SETTLED_SECONDS = 1.2
GONE_SECONDS = 10.0
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
STORE = health_pb2.HealthCheckRequest(service="gris.budget.v1.BudgetService/store")


def main() -> None:
    """Measure every store and way, and print a table."""
    parser = argparse.ArgumentParser("python -m bench.failure_detection", description=__doc__)
    parser.add_argument("--store", nargs="+", choices=("redis", "postgres"), default=["redis", "postgres"])
    parser.add_argument(
        "--samples", type=int, default=20, help="how often each store is taken away in each way"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{'milliseconds':30}{'median':>8}{'p90':>8}{'most':>8}  within {BOUND_MS} ms")
    for store in options.store:
        for way in WAYS:
            rng = random.Random(options.seed)  # noqa: S311 - moments
            refused, unhealthy = asyncio.run(measured(store, way, options.samples, rng))
            print_row(f"{store} {way}: refused", refused)
            print_row(f"{store} {way}: health", unhealthy)


def print_row(name: str, milliseconds: list[float]) -> None:
    """Print what one thing took."""
    most, p90 = max(milliseconds), statistics.quantiles(milliseconds, n=10, method="inclusive")[-1]
    within = sum(each <= BOUND_MS for each in milliseconds)
    print(
        f"{name:30}{statistics.median(milliseconds):8.0f}{p90:8.0f}{most:8.0f}  {within} of {len(milliseconds)}"
    )


async def measured(store: str, way: str, samples: int, rng: random.Random) -> tuple[list[float], list[float]]:
    """Return the milliseconds to the first refusal, and to the first NOT_SERVING, of every sample."""
    found = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gris-detector-")))
        process = stack.enter_context(_store(store, folder))
        parts = urlsplit(process.address)
        proxy = await stack.enter_async_context(Proxy(f"{parts.hostname}:{parts.port}").listening())
        netloc = parts.netloc.replace(f"{parts.hostname}:{parts.port}", proxy.address)
        # By default a service gives up sooner than the tests' address says.
        address = parts._replace(netloc=netloc if way == CUT_OFF else parts.netloc, query="").geturl()
        # The proxy is served by this loop, so that nothing may keep it meanwhile.
        running = await asyncio.to_thread(stack.enter_context, service(folder, address))
        calls = BudgetServiceClient(running.address, ("acme", "ann"), Timeouts())
        stack.push_async_callback(calls.close)
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(running.address))
        health: Any = health_pb2_grpc.HealthStub(channel)
        for _ in range(samples):
            await _settled(calls, health)
            await asyncio.sleep(SETTLED_SECONDS + rng.random())
            detection = asyncio.gather(_refusal(calls), _not_serving(health))
            await asyncio.sleep(10 * PAUSE_SECONDS)
            began = monotonic()
            async with _taken_away(process, proxy, way):
                found.append([1000 * (timestamp - began) for timestamp in await detection])
    refused, unhealthy = zip(*found, strict=True)
    return list(refused), list(unhealthy)


@contextmanager
def _store(store: str, folder: Path) -> Iterator[StoreProcess]:
    with redis_server(folder) if store == "redis" else postgres_server() as process:
        yield process


@asynccontextmanager
async def _taken_away(process: StoreProcess, proxy: Proxy, way: str) -> AsyncIterator[None]:
    if way == KILLED:
        process.kill()
        yield
        await asyncio.to_thread(process.start)
    elif way == FROZEN:
        with process.frozen():
            yield
    else:
        async with proxy.swallowing():
            yield


async def _refusal(calls: BudgetServiceClient) -> float:
    async with asyncio.timeout(GONE_SECONDS):
        while True:
            try:
                await calls.levels()
            except GrisError:
                return monotonic()
            await asyncio.sleep(PAUSE_SECONDS)


async def _not_serving(health: Any) -> float:
    async with asyncio.timeout(GONE_SECONDS):
        while (await health.Check(STORE)).status != NOT_SERVING:  # noqa: ASYNC110 - another process
            await asyncio.sleep(PAUSE_SECONDS)
    return monotonic()


async def _settled(calls: BudgetServiceClient, health: Any) -> None:
    async with asyncio.timeout(GONE_SECONDS):
        while (await health.Check(STORE)).status == NOT_SERVING:  # noqa: ASYNC110 - another process
            await asyncio.sleep(10 * PAUSE_SECONDS)
        while True:
            with suppress(GrisError):
                await calls.levels()
                return
            await asyncio.sleep(10 * PAUSE_SECONDS)


if __name__ == "__main__":
    main()
