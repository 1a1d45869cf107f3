"""Connections that say nothing, and pages that many ask for at once."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest
import uvicorn

from gris_console.process import LocalConsole, server_options
from pinot_connector.endpoints import Endpoint
from tests.console.people import Visitors, until

SILENT = 300


@pytest.mark.slow
async def test_connections_that_say_nothing_close_the_console_to_nobody() -> None:
    """Beside hundreds of them pages and probes are answered, and each is closed after the time for headers."""
    local = LocalConsole("127.0.0.1:0", Endpoint("localhost:1"), None)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
        server = uvicorn.Server(server_options(local.console(port), local.listen_options, header_seconds=5))
        serving = asyncio.create_task(server.serve(sockets=[bound]))

        async def started() -> bool:
            return server.started

        await until(started)
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(SILENT)]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/sign-in")).status_code == 200
        for reader, writer in silent:
            assert await asyncio.wait_for(reader.read(), 20) == b""
            writer.close()
        server.should_exit = True
        await asyncio.wait_for(serving, 20)


async def test_pages_that_many_ask_for_leave_probes_and_the_sign_in_page_open(visitors: Visitors) -> None:
    """Only pages of people who have logged in take turns, and one without a turn says so."""
    ana = await visitors.analyst()
    turns = visitors.console.turns
    while not turns.locked():
        await turns.acquire()
    busy = await ana.get("/budget")
    assert busy.status == 503
    assert "too many pages" in busy.text
    assert (await visitors.stranger().get("/healthz")).status == 200
    assert (await visitors.stranger().get("/sign-in")).status == 200
    turns.release()
    assert (await ana.get("/budget")).status == 200
