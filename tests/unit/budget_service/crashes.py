"""What a service promises of a crash, of its own and of its store, whichever store it has."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Protocol

import grpc
from gris_api.budget.v1 import budget_pb2 as pb

from tests.support.budget_client import account, charging, connected, cost, failure
from tests.support.budget_process import NOT_SERVING, SERVING, health, health_becomes, service


class Server(Protocol):
    """A store's server."""

    @property
    def address(self) -> str:
        """Where a service finds it."""

    def kill(self) -> None:
        """End it by force."""

    def start(self) -> None:
        """Start it again."""


async def require_acknowledged_charges(store: str, first: Path, second: Path) -> int:
    """Kill a service under load and start another one on its ledger; return how many callers know nothing.

    Acknowledged <= spent <= acknowledged + unknown, and every repeat is the first answer.
    """
    asked = [charging(cost(1, 1), request_id=f"c{index}") for index in range(3000)]
    acknowledged: dict[str, pb.UpdateBudgetResponse] = {}
    under_load = asyncio.Event()
    with service(first, store) as running:
        async with connected(running.address) as stub:

            async def caller(start: int) -> None:
                for message in asked[start::16]:
                    acknowledged[message.request_id] = await stub.UpdateBudget(message)
                    if len(acknowledged) == 300:
                        under_load.set()

            callers = [asyncio.create_task(caller(start)) for start in range(16)]
            await under_load.wait()
            running.end(signal.SIGKILL)
            ended = await asyncio.gather(*callers, return_exceptions=True)
    unknown = sum(isinstance(each, grpc.aio.AioRpcError) for each in ended)
    with service(second, store) as running:
        async with connected(running.address) as stub:
            for message in asked:
                if first_answer := acknowledged.get(message.request_id):
                    again = await stub.UpdateBudget(message)
                    assert again.replayed
                    again.replayed = False
                    assert first_answer == again
            found = await stub.GetBudget(pb.GetBudgetRequest(account=account()))
            for level in found.levels:
                assert len(acknowledged) <= level.spent.calls <= len(acknowledged) + unknown
    return unknown


async def require_service_outlives(server: Server, folder: Path) -> str:
    """Kill the store's server: UNAVAILABLE and NOT_SERVING, both quickly; it is started, and the service goes on.

    Return the reason of the call that failed meanwhile.
    """
    with service(folder, server.address) as running:
        await health_becomes(running.address, SERVING)
        async with connected(running.address) as stub:
            await stub.UpdateBudget(charging(request_id="before"))
            server.kill()
            began = time.monotonic()
            error = await failure(stub.UpdateBudget(charging()))
            assert time.monotonic() - began < 2
            assert error.code == grpc.StatusCode.UNAVAILABLE
            await health_becomes(running.address, NOT_SERVING)
            # A restart would not bring the store back, so the service still reports that its process is alive.
            assert await health(running.address, "gris.budget.v1.BudgetService/alive") == SERVING
            server.start()
            await health_becomes(running.address, SERVING)
            assert (await stub.UpdateBudget(charging(request_id="before"))).replayed
    return str(error.info.reason)
