"""A dp_service in the test's own process, over a real gRPC connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from gris_api.dp.v1 import dp_pb2_grpc

from dp_service.releases.keys import KeySet
from dp_service.server.served_policy import ServedPolicy, usable_policy
from dp_service.server.service import DpServicer, Environment
from tests.support.dp_questions import KEY, Clock, Entropy

_LIMITS = [("grpc.max_receive_message_length", 16 * 2**20)]


def servicer_of(policy: str, keys: KeySet | None = None, clock: Clock | None = None) -> DpServicer:
    """Return a servicer of a policy with the tests' key, clock and entropy unless others are given."""
    served = ServedPolicy(usable_policy(policy.encode(), "policy", KEY))
    return DpServicer(served, keys or KeySet(KEY), Environment(clock or Clock(), Entropy()))


def servicer_of_file(policy: Path) -> DpServicer:
    """Return a servicer of a policy in a file, which may name files of published domains beside it."""
    served = ServedPolicy(usable_policy(policy.read_bytes(), str(policy), KEY))
    return DpServicer(served, KeySet(KEY), Environment(Clock(), Entropy()))


@asynccontextmanager
async def serving(servicer: DpServicer) -> AsyncIterator[Any]:
    """Serve on a free port and give a stub."""
    async with listening(servicer) as address, grpc.aio.insecure_channel(address, options=_LIMITS) as channel:
        yield dp_pb2_grpc.DpServiceStub(channel)


@asynccontextmanager
async def listening(servicer: DpServicer) -> AsyncIterator[str]:
    """Serve on a free port and give the address."""
    server = grpc.aio.server(options=_LIMITS)
    dp_pb2_grpc.add_DpServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)
