"""A service that is held up within a transaction holds its root's lock: the others go on, and it does no harm later."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.budget.v1 import budget_pb2_grpc

from budget_service.server.audit import Verification, verify
from budget_service.stores.postgres.store import PostgresStore
from tests.support.budget_client import account, charging, connected, cost
from tests.support.budget_process import service
from tests.support.ledger_stores import closing
from tests.support.postgres_server import PostgresServer
from tests.support.proxy import Proxy

pytestmark = pytest.mark.nightly

# Long enough for somebody to see the transaction before its second round trip.
DELAY_SECONDS = 0.3
# The time-out of the lock, and that of the idle transaction, with time for a busy machine.
OTHERS_GO_ON_SECONDS = 4
BETWEEN_ROUND_TRIPS = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"


SHORTEST_WAIT_SECONDS = 0.3


def folder(parent: Path, name: str) -> Path:
    """Return a new folder for the files of one process."""
    made = parent / name
    made.mkdir()
    return made


async def begun_but_not_written(server: PostgresServer) -> None:
    """Wait until a transaction has its lock and what it loaded, and has not sent what it writes."""
    end = time.monotonic() + 20
    while await asyncio.to_thread(server.execute, BETWEEN_ROUND_TRIPS) == [(0,)]:
        assert time.monotonic() < end, "nothing was begun"


async def insisted(
    stub: budget_pb2_grpc.BudgetServiceAsyncStub, message: pb.UpdateBudgetRequest
) -> pb.UpdateBudgetResponse:
    """Repeat a charge until it is answered."""
    while True:
        try:
            answer: pb.UpdateBudgetResponse = await stub.UpdateBudget(message)
        except grpc.aio.AioRpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                raise
            await asyncio.sleep(0.05)
        else:
            return answer


async def test_a_service_that_is_paused_between_its_round_trips_holds_up_nobody_for_long_and_does_no_harm(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    """The other service charges the same account while it stands still; resumed, it begins again."""
    parts = urlsplit(own_postgres.address)
    with ExitStack() as stack:
        async with Proxy(f"{parts.hostname}:{parts.port}").listening() as line:
            far = parts._replace(netloc=f"gris@{line.address}").geturl()
            paused, other = [
                # On another thread, because the proxy runs on this one.
                await asyncio.to_thread(stack.enter_context, service(folder(tmp_path, name), address))
                for name, address in (("a", far), ("b", own_postgres.address))
            ]
            async with connected(paused.address) as left, connected(other.address) as right:
                await left.UpdateBudget(charging(cost(1, 1), request_id="before"))
                line.delay_seconds = DELAY_SECONDS
                message = charging(cost(1, 1), request_id="held up")
                held_up = asyncio.ensure_future(left.UpdateBudget(message))
                await begun_but_not_written(own_postgres)
                paused.process.send_signal(signal.SIGSTOP)
                line.delay_seconds = 0
                began = time.monotonic()
                async with asyncio.timeout(OTHERS_GO_ON_SECONDS):
                    await insisted(right, charging(cost(1, 1), request_id="meanwhile"))
                # It did have the lock.
                assert time.monotonic() - began > SHORTEST_WAIT_SECONDS
                paused.process.send_signal(signal.SIGCONT)
                assert not (await held_up).replayed
                assert (await insisted(left, message)).replayed
                found = await right.GetBudget(pb.GetBudgetRequest(account=account()))
                assert found.levels[0].spent.calls == 3
    async with closing(await PostgresStore.open(own_postgres.address)) as store:
        await verify(store, account().path[0], verified := Verification())
    assert (3, []) == (verified.entries, verified.differences)
