"""`gris serve` with a gateway, as a process, and what is printed to be pasted, used as it is pasted."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pinot_connector.dbapi.urls import CREDENTIALS_DIR
from pinot_connector.sqlalchemy import GrisDialect
from tests.support.agents import over_http
from tests.support.web_page import PageSeen, opened

GRIS = (sys.executable, "-m", "gris_cli")
SECONDS = 60


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[dict[str, Any]]:
    """Run `gris serve` in a folder; yield what it says once everything serves, and then interrupt it."""
    own = {"XDG_CACHE_HOME": str(folder / "cache"), "GRIS_GATEWAY": "gris://elsewhere:1"}
    with subprocess.Popen(
        [*GRIS, "serve", *arguments, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, **own},
    ) as process:
        assert process.stdout is not None
        try:
            said = json.loads(process.stdout.readline())
            assert "error" not in said, said
            yield said
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


def asked_in_a_shell(said: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to the command that is printed."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GRIS_")}
    command = [*GRIS, *shlex.split(said["ask"])[1:], "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=own)
    assert done.returncode == 0, done.stdout
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def asked_by_sqlalchemy(said: dict[str, Any], sql: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the rows that the URL gives."""
    monkeypatch.setenv(CREDENTIALS_DIR, said["sqlalchemy"][CREDENTIALS_DIR])
    sa.dialects.registry.register("gris", GrisDialect.__module__, GrisDialect.__name__)
    engine = sa.create_engine(said["sqlalchemy"]["url"])
    try:
        with engine.connect() as connection:
            return list(connection.execute(sa.text(sql)))
    finally:
        engine.dispose()


async def asked_by_an_agent(said: dict[str, Any], sql: str) -> dict[str, Any]:
    """Return what the tool `ask` gives an agent."""
    server = said["mcp"]["mcpServers"]["gris"]
    address = server["url"].removeprefix("http://").removesuffix("/mcp")
    token = server["headers"]["Authorization"].removeprefix("Bearer ")
    async with over_http(address, token, None) as agent:
        return await agent.call("ask", sql=sql)


async def shown_in_a_browser(said: dict[str, Any], sql: str) -> PageSeen:
    """Open the link to the page, see a price, agree, and return the page with the answer."""
    async with opened(said["page"]) as person:
        return await person.asked(sql)
