"""The program by which a container asks itself whether it serves."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2_grpc

from budget_service.server.hosting import STORE as STORE_OF_THE_SERVICE
from deploy.image.probe import STORE, main
from gris_serving.health import OVERALL, Health


@asynccontextmanager
async def serving(health: Health) -> AsyncIterator[str]:
    """Serve it and give its address."""
    server = grpc.aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@pytest.mark.parametrize(
    ("parts", "code", "said"),
    [
        ({OVERALL: True}, 0, ""),
        ({OVERALL: True, STORE: True}, 0, ""),
        ({OVERALL: False}, 1, "NOT_SERVING: it is about to end"),
        ({OVERALL: False, STORE: True}, 1, "NOT_SERVING: it is about to end"),
        ({OVERALL: False, STORE: False}, 1, f"NOT_SERVING, and so is {STORE}"),
        ({}, 1, "no answer about its health: NOT_FOUND: service: expected one that is served here"),
    ],
)
async def test_a_probe_says_what_does_not_serve(
    parts: dict[str, bool], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing where all is well; otherwise one line with the address and the part that is to blame."""
    health = Health()
    for name, serves in parts.items():
        health.report([name], serving=serves)
    async with serving(health) as address:
        assert code == await asyncio.to_thread(main, [address])
    expected = f"probe: {address}: {said}\n" if said else ""
    assert ("", expected) == capsys.readouterr()


def test_a_probe_of_a_port_without_a_server_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Such as that of the other service."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        assert main([address]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"probe: {address}: no answer about its health: UNAVAILABLE: ")
    assert "Connection refused" in said


@pytest.mark.parametrize("arguments", [[], ["localhost:50051", "localhost:50052"]])
def test_a_probe_wants_one_address(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An exit code of its own: the question was wrong, and nobody was asked."""
    assert main(arguments) == 2
    assert "expected one argument, HOST:PORT" in capsys.readouterr().err


def test_a_probe_knows_the_store_by_its_name() -> None:
    """The image has no code of budget_service to take the name from."""
    assert STORE == STORE_OF_THE_SERVICE
