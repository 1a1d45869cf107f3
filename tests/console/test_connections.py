"""Connections that say nothing, and pages that many ask for at once."""

from __future__ import annotations

import asyncio
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn

from gris_console.process import LocalConsole, open_in_browser, server_options
from pinot_connector.endpoints import Endpoint
from tests.console.people import HtmlForm, Visitors, until
from tests.support.command_line import run_json

SILENT = 300
UNREAD = 20


@asynccontextmanager
async def served(*, header_seconds: float) -> AsyncIterator[tuple[int, uvicorn.Server]]:
    """Serve a console for this machine while the block runs, and yield its port and the server."""
    local = LocalConsole("127.0.0.1:0", Endpoint("localhost:1"), None)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        # What the system keeps of answers that nobody reads is little, so that a few answers are more.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        port = bound.getsockname()[1]
        server = uvicorn.Server(
            server_options(local.console(port), local.listen_options, header_seconds=header_seconds)
        )
        serving = asyncio.create_task(server.serve(sockets=[bound]))

        async def started() -> bool:
            return server.started

        await until(started)
        try:
            yield port, server
        finally:
            server.should_exit = True
            await asyncio.wait_for(serving, 20)


@pytest.mark.slow
async def test_connections_that_say_nothing_close_the_console_to_nobody() -> None:
    """Beside hundreds of them pages and probes are answered, and each is closed after the time for headers."""
    async with served(header_seconds=5) as (port, _):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(SILENT)]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/sign-in")).status_code == 200
        for reader, writer in silent:
            assert await asyncio.wait_for(reader.read(), 20) == b""
            writer.close()


@pytest.mark.slow
async def test_connections_that_read_nothing_are_aborted() -> None:
    """Pages that nobody reads are given up after a time; to close their connections would wait for the reader."""
    stylesheet = b"GET /static/console.css HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"
    async with served(header_seconds=2) as (port, server):
        held = [_unread(port) for _ in range(UNREAD)]
        for each in held:
            each.sendall(stylesheet % port * 20)

        async def held_by_all() -> bool:
            return len(server.server_state.connections) == UNREAD

        async def gone() -> bool:
            return not server.server_state.connections

        try:
            await until(held_by_all)
            await until(gone)
        finally:
            for each in held:
                each.close()


def _unread(port: int) -> socket.socket:
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.connect(("127.0.0.1", port))
    return found


async def test_a_large_form_of_a_stranger_is_refused_and_nothing_of_a_small_one_is_kept(
    visitors: Visitors,
) -> None:
    """Before a log-in an answer does not grow with what was sent."""
    stranger = visitors.stranger()
    for path in ("/ask", "/sign-in"):
        large = await stranger.send(HtmlForm(path), sql='"' * 100_000, shown="x")
        assert large.status == 400
        assert "expected at most 32 KiB" in large.text
    small = await stranger.send(HtmlForm("/ask"), sql="SELECT marked")
    wrong = await stranger.send(HtmlForm("/sign-in"), **{"kept_path": "/ask", "kept.sql": "marked"})
    assert [small.status, wrong.status] == [401, 401]
    assert "marked" not in small.html + wrong.html


async def test_a_made_up_cookie_makes_nobody_known(visitors: Visitors) -> None:
    """A key that no log-in here has had is a stranger's, whatever it looks like."""
    sessions = visitors.console.sessions
    assert not any(sessions.has_issued(key) for key in ("", ".", "x", "é", f"x.{'0' * 64}"))
    ana = await visitors.analyst()
    key = next(iter(ana.client.cookies.values()))
    assert sessions.has_issued(key)
    assert not sessions.has_issued(f"{key}0")


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


@pytest.mark.parametrize(("screen", "opens"), [(":0", True), ("", False)])
def test_a_browser_is_opened_only_where_there_is_a_screen(
    monkeypatch: pytest.MonkeyPatch, screen: str, opens: bool
) -> None:
    """One of the terminal would take it from the console; one that cannot be started is none."""
    opened: list[str] = []

    def remember(url: str) -> bool:
        opened.append(url)
        return True

    def refuse(url: str) -> bool:
        raise webbrowser.Error("no browser")

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", screen)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(webbrowser, "open", remember)
    assert open_in_browser("http://127.0.0.1:1/") is opens
    assert opened == ["http://127.0.0.1:1/"] * opens
    monkeypatch.setattr(webbrowser, "open", refuse)
    assert not open_in_browser("http://127.0.0.1:1/")


@pytest.mark.parametrize(
    ("variable", "words", "named"),
    [
        ("gris://localhost:1", (), "--gateway or GRIS_GATEWAY"),
        ("", ("--dp", "localhost:1", "--admin", "localhost:2"), "--dp, --admin"),
    ],
)
def test_what_a_configuration_says_already_is_named(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    words: tuple[str, ...],
    named: str,
) -> None:
    """An address in the environment too, which nobody typed."""
    monkeypatch.setenv("GRIS_GATEWAY", variable)
    error = run_json(capsys, "console", "--config", "console.yaml", "--validate", *words, code=2)["error"]
    assert error["message"].endswith(f"--config says where everything is: give it without {named}")
