"""The connector's channels: whether calls wait for a server, and over whose connections they go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.budget.v1 import budget_pb2_grpc

from pinot_connector.channels import open_channel
from tests.support.world import free_port

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
