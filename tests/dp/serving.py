"""A dp_service in the test's own process, over a real gRPC connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from gris.dp.v1 import dp_pb2_grpc

from dp_service.server.service import DpServicer


@asynccontextmanager
async def serving(servicer: DpServicer) -> AsyncIterator[Any]:
    """Serve on a free port and give a stub."""
    server = grpc.aio.server()
    dp_pb2_grpc.add_DpServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield dp_pb2_grpc.DpServiceStub(channel)
    await server.stop(None)
