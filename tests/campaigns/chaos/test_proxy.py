"""The proxy breaks what it should, and nothing else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from tests.support.proxy import Proxy

TIMEOUT_SECONDS = 5


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line)
    writer.close()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


@pytest_asyncio.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """A proxy before a server that answers each line with itself."""
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    async with server, Proxy(f"127.0.0.1:{server.sockets[0].getsockname()[1]}").listening() as proxy:
        yield proxy


@asynccontextmanager
async def connection_to(proxy: Proxy) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a connection through the proxy."""
    host, _, port = proxy.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def test_what_is_said_arrives(proxy: Proxy) -> None:
    """Both ways, whole."""
    async with connection_to(proxy) as (reader, writer), asyncio.timeout(TIMEOUT_SECONDS):
        writer.write(b"x" * 60_000 + b"\n")
        assert await reader.readline() == b"x" * 60_000 + b"\n"


async def test_a_swallowed_reply_never_arrives_and_the_connection_breaks(proxy: Proxy) -> None:
    """What was sent has arrived at the other side; other connections live on."""
    async with connection_to(proxy) as (reader, writer), asyncio.timeout(TIMEOUT_SECONDS):
        async with proxy.swallowing():
            writer.write(b"lost\n")
            while not proxy.lost_replies:  # noqa: ASYNC110 - the proxy has no event for it
                await asyncio.sleep(0.01)
        assert await _rest(reader) == b""
    async with connection_to(proxy) as (reader, writer), asyncio.timeout(TIMEOUT_SECONDS):
        writer.write(b"again\n")
        assert await reader.readline() == b"again\n"


async def test_a_cut_breaks_every_connection(proxy: Proxy) -> None:
    """Those that wait too."""
    async with connection_to(proxy) as one, connection_to(proxy) as other, asyncio.timeout(TIMEOUT_SECONDS):
        for reader, writer in (one, other):
            writer.write(b"there\n")
            assert await reader.readline() == b"there\n"
        proxy.cut()
        for reader, _ in (one, other):
            assert await _rest(reader) == b""


@pytest.mark.parametrize("turns", range(6))
async def test_what_is_accepted_while_the_proxy_closes_is_closed(turns: int) -> None:
    """However far asyncio has come with it; an open end would be complained of in some later test."""
    async with Proxy("127.0.0.1:1").listening() as proxy:
        host, _, port = proxy.address.rpartition(":")
        client = socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)
        for _ in range(turns):
            await asyncio.sleep(0)
    with client:
        try:
            assert await asyncio.to_thread(client.recv, 1) == b""
        except ConnectionError:
            return
