"""Connections that begin nothing are closed, by every server and in plain text too."""

from __future__ import annotations

import asyncio
import socket
import time

import grpc
import pytest

from budget_service.server.hosting import OPTIONS
from gris_serving.slow_callers import handshake_options


def seconds_open(port: int) -> float:
    """Return how long a connection stays open that sends nothing."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=30) as idle:
        while idle.recv(4096):
            pass
    return time.monotonic() - began


async def closed_after(options: tuple[tuple[str, int], ...]) -> float:
    """Return when a server with these options closes a connection that begins nothing."""
    server = grpc.aio.server(options=options)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        return await asyncio.to_thread(seconds_open, port)
    finally:
        await server.stop(None)


@pytest.mark.slow
async def test_an_idle_connection_is_closed_in_time() -> None:
    """By default gRPC leaves it open for two minutes."""
    assert 0.5 < await closed_after(handshake_options(1.0)) < 5


@pytest.mark.slow
async def test_the_ledger_closes_it_too() -> None:
    """After ten seconds, with the options of every server of it."""
    assert 8 < await closed_after(tuple(OPTIONS)) < 15
