"""dp_service over a real gRPC connection, with a clock that tests set."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import pytest
from gris.dp.v1 import dp_pb2_grpc

from dp_service.queries.policy import parse_policy
from dp_service.releases.keys import KeySet
from dp_service.server.service import DpServicer, Outside
from tests.dp.asking import KEY, POLICY, Clock, Entropy


@pytest.fixture
def clock() -> Clock:
    """Return the service's clock."""
    return Clock()


@pytest.fixture
async def dp(clock: Clock) -> AsyncIterator[dp_pb2_grpc.DpServiceAsyncStub]:
    """Serve on a free port and return a stub."""
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 16 * 2**20)])
    servicer = DpServicer(parse_policy(POLICY), KeySet(KEY), Outside(clock, Entropy()))
    dp_pb2_grpc.add_DpServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    limits = [("grpc.max_receive_message_length", 16 * 2**20)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=limits) as channel:
        yield dp_pb2_grpc.DpServiceStub(channel)  # type: ignore[misc]  # one stub class serves both kinds
    await server.stop(None)
