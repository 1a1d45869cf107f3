"""A repeated question at a gateway beside an empty call through the same interceptors.

    python -m bench repeats

The gateway's server runs in this process, before both services as processes. Its empty call is admitted, counted and
limited as a question is, and answers nothing. Callers ask the two in turns, so that a slow moment of the machine meets
both; the ratio is that of the medians. The release store is in memory, or a SQLite file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from gris_api.app.v1 import app_pb2, app_pb2_grpc
from prometheus_client import CollectorRegistry

from gris_gateway.admission import GatewayAdmission
from gris_gateway.history import History
from gris_gateway.questions import Questions
from gris_gateway.rate_limits import CallerLimits, Limiter
from gris_gateway.service import PrivateQueryServicer
from gris_serving.instrumentation import Instrumentation
from gris_serving.metrics import CallMetrics, Readiness
from pinot_connector import AsyncPrivateClient, structured_question
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import MemoryReleaseStore, ReleaseStore
from pinot_connector.release_store.encryption import StoreKey, StoreKeys
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from tests.support.pki import Issuer
from tests.support.world import COFACTS, World, running_world
from tests.unit.gris_gateway.token_world import AUDIENCE, known_by_tokens

WARM_UP = 100
TARGET = 3.0
QUESTIONS = {
    "top 10, structured": structured_question("feedback", "article_id", k=10),
    "histogram of 4, structured": structured_question("feedback", "app", k=None),
}


class _WithEmptyCall(PrivateQueryServicer):
    """The gateway's methods, one of which does nothing."""

    async def GetRemaining(  # noqa: N802 - the contract's name
        self, request: app_pb2.GetRemainingRequest, context: Any
    ) -> app_pb2.GetRemainingResponse:
        """Answers nothing."""
        return app_pb2.GetRemainingResponse()


def main() -> None:
    """Measures, and prints one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=1000, help="calls of each kind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_world(Path(folder)) as world:
        print(json.dumps(asyncio.run(_measured(world, Path(folder), options.calls)), indent=2))


async def _measured(world: World, folder: Path, calls: int) -> dict[str, Any]:
    stores: dict[str, ReleaseStore] = {
        "memory": MemoryReleaseStore(),
        "sqlite": SqliteReleaseStore(folder / "releases.db", StoreKeys(StoreKey(b"k" * 32))),
    }
    found: dict[str, Any] = {}
    for name, store in stores.items():
        async with _gateway(world, folder, store) as (stub, metadata):
            for title, question in QUESTIONS.items():
                request = app_pb2.AskRequest(question=question)

                async def ask(request: app_pb2.AskRequest = request) -> None:
                    async for _ in stub.Ask(request, metadata=metadata):
                        pass

                async def empty() -> None:
                    await stub.GetRemaining(app_pb2.GetRemainingRequest(), metadata=metadata)

                found[f"{name}, {title}"] = await _compared(ask, empty, calls)
        await store.close()
    return found


async def _compared(
    ask: Callable[[], Awaitable[None]], empty: Callable[[], Awaitable[None]], calls: int
) -> dict[str, float | str]:
    seconds: dict[str, list[float]] = {"repeat": [], "empty": []}
    for number in range(WARM_UP + calls):
        for kind, call in (("repeat", ask), ("empty", empty)):
            began = time.perf_counter()
            await call()
            if number >= WARM_UP:
                seconds[kind].append(time.perf_counter() - began)
    repeat, nothing = statistics.median(seconds["repeat"]), statistics.median(seconds["empty"])
    return {
        "repeat_ms": round(repeat * 1e3, 3),
        "empty_ms": round(nothing * 1e3, 3),
        "ratio": round(repeat / nothing, 2),
        f"at most {TARGET} empty calls": "met" if repeat <= TARGET * nothing else "MISSED",
    }


@asynccontextmanager
async def _gateway(
    world: World, folder: Path, store: ReleaseStore
) -> AsyncIterator[tuple[Any, list[tuple[str, str]]]]:
    issuer = Issuer(folder)
    registry = CollectorRegistry()
    instrumentation = Instrumentation(CallMetrics(registry), Readiness(registry))
    limiter = Limiter(CallerLimits(1e4, 10_000, concurrent=64, waiting=64), clock=time.monotonic)
    server = grpc.aio.server(
        interceptors=(GatewayAdmission(known_by_tokens(issuer), limiter, instrumentation),)
    )
    engine = DuckDBEngine({"feedback": COFACTS})
    async with AsyncPrivateClient(
        dp=world.dp, budget=world.budget, account="none", engine=engine, releases=store
    ) as client:
        questions = Questions(client, History(store))
        servicer = _WithEmptyCall(questions)
        app_pb2_grpc.add_PrivateQueryServiceServicer_to_server(servicer, instrumentation.before(server))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        metadata = [("authorization", f"Bearer {issuer.token(AUDIENCE, sub='bench')}")]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield app_pb2_grpc.PrivateQueryServiceStub(channel), metadata
        await server.stop(None)
        await questions.finish()
    engine.close()


if __name__ == "__main__":
    main()
