"""Connections that reach all workers of a service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import grpc

from tests.support.budget_client import stub_of

# Enough that each of two workers has some.
CONNECTIONS = 32


@asynccontextmanager
async def connections(address: str) -> AsyncIterator[list[Any]]:
    """Open many connections, each of which the system gives to one of the workers."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with AsyncExitStack() as stack:
        yield [
            stub_of(await stack.enter_async_context(grpc.aio.insecure_channel(address, options=options)))
            for _ in range(CONNECTIONS)
        ]
