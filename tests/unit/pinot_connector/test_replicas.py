"""Replicas behind one name and how calls wait for them: each in turn, and none that says nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.budget.v1 import budget_pb2_grpc

from pinot_connector.channels import Timeouts, open_channel
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.errors import GrisError
from tests.support.ports import free_port
from tests.support.rings import needs
from tests.support.world import POLICY

IN_A_ROW = 10
TIMEOUT_SECONDS = 30.0


@contextmanager
def replica(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run dp_service and give the process and its address."""
    options = ["--policy", str(folder / "policy.yaml"), "--key-file", str(folder / "noise.key")]
    command = [sys.executable, "-m", "dp_service", *options, "--listen", "127.0.0.1:0"]
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())["address"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
@needs("process")
def replicas(tmp_path: Path) -> Iterator[tuple[list[subprocess.Popen[str]], str]]:
    """Run two replicas and give them, with one address for both."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "noise.key").write_bytes(os.urandom(32))
    (tmp_path / "noise.key").chmod(0o400)
    with replica(tmp_path) as (one, first), replica(tmp_path) as (other, second):
        yield [one, other], f"ipv4:{first},{second}"


@pytest.fixture
async def calls(replicas: tuple[list[subprocess.Popen[str]], str]) -> AsyncIterator[DpServiceClient]:
    """Connect to both."""
    opened = DpServiceClient(replicas[1], Timeouts(dp=2))
    yield opened
    await opened.close()


async def answered_in_a_row(calls: DpServiceClient) -> bool:
    """Return whether so many calls are answered, one after another, before the time is over."""
    end, row = time.monotonic() + TIMEOUT_SECONDS, 0
    while row < IN_A_ROW and time.monotonic() < end:
        try:
            await calls.catalog("")
            row += 1
        except GrisError:
            row = 0
    return row == IN_A_ROW


async def test_a_replica_that_says_nothing_is_left(
    replicas: tuple[list[subprocess.Popen[str]], str], calls: DpServiceClient
) -> None:
    """Its connection stays open, as that of a machine which is gone; calls that go there fail for seconds only."""
    assert await answered_in_a_row(calls)
    replicas[0][0].send_signal(signal.SIGSTOP)
    assert await answered_in_a_row(calls)


async def test_a_killed_replica_costs_no_call(
    replicas: tuple[list[subprocess.Popen[str]], str], calls: DpServiceClient
) -> None:
    """What it was asked when it died is asked of the other one."""
    assert await answered_in_a_row(calls)
    replicas[0][0].kill()
    for _ in range(IN_A_ROW):
        assert (await calls.catalog("")).tables


SERVICE = pb.DESCRIPTOR.services_by_name["BudgetService"].full_name


class Counting(grpc.GenericRpcHandler):
    """Answers every call to budget_service, and notes what comes and from where."""

    def __init__(self) -> None:
        self.came: list[str] = []
        self.peers: set[str] = set()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        """Serve a method."""
        _, service, method = details.method.split("/")

        async def answer(_: bytes, context: Any) -> bytes:
            self.came.append(method)
            self.peers.add(context.peer())
            return b""

        return grpc.unary_unary_rpc_method_handler(answer) if service == SERVICE else None


@asynccontextmanager
async def served(counting: Counting, port: int = 0) -> AsyncIterator[str]:
    """Serve it and give the address."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((counting,))
    address = f"127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
    await server.start()
    try:
        yield address
    finally:
        await server.stop(None)


async def test_a_call_waits_for_a_replica_and_is_sent_once() -> None:
    """A charge, which gRPC must not repeat, and a reservation, which it may."""
    port, counting = free_port(), Counting()
    target = f"ipv4:127.0.0.1:{port},127.0.0.1:{free_port()}"
    async with open_channel(target, [f"{SERVICE}/ReserveBudget"], waiting=[SERVICE]) as channel:
        stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
        sent = [
            stub.UpdateBudget(pb.UpdateBudgetRequest(), timeout=30),
            stub.ReserveBudget(pb.ReserveBudgetRequest(), timeout=30),
        ]
        while channel.get_state() is not grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            await channel.wait_for_state_change(channel.get_state())
        async with served(counting, port):
            await asyncio.gather(*sent)
    assert sorted(counting.came) == ["ReserveBudget", "UpdateBudget"]


async def test_a_single_server_that_is_away_is_told_at_once() -> None:
    """There is nobody else to wait for."""
    async with open_channel(f"127.0.0.1:{free_port()}", waiting=[SERVICE]) as channel:
        stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub.UpdateBudget(pb.UpdateBudgetRequest(), timeout=30)
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_channels_share_no_connection() -> None:
    """gRPC may crash where two of them watch the health of one."""
    counting = Counting()
    async with served(counting) as address, open_channel(address) as one, open_channel(address) as other:
        for channel in (one, other):
            stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
            await stub.UpdateBudget(pb.UpdateBudgetRequest(), timeout=30)
    assert len(counting.peers) == 2
