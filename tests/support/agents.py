"""Agents: the MCP SDK's own client, over HTTP and over stdio, and what tools return."""

from __future__ import annotations

import json
import os
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from pinot_connector.endpoints import Credentials

LEGACY, MODERN = "legacy", "2026-07-28"


@dataclass(frozen=True)
class Agent:
    """An agent that is connected."""

    client: Client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return its structured result, which the SDK has validated by the tool's schema."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, text_of(result)
        assert result.structured_content is not None
        # What clients read that know no structured results is the same.
        assert json.loads(text_of(result)) == result.structured_content
        return dict(result.structured_content)

    async def failure(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that cannot answer, and return why."""
        return await self.failure_of(tool, arguments)

    async def failure_of(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Do the same with any arguments."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, text_of(result)
        failure: dict[str, Any] = json.loads(text_of(result))
        return failure


def text_of(result: CallToolResult) -> str:
    """Return the one text of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def trusting(ca_file: Path) -> ssl.SSLContext:
    """Return what trusts an authority."""
    return ssl.create_default_context(cafile=str(ca_file))


@asynccontextmanager
async def over_http(
    address: str, token: str, ca_file: Path | None, mode: str = "auto"
) -> AsyncIterator[Agent]:
    """Connect an agent to a gateway's MCP server."""
    verify: Any = True if ca_file is None else trusting(ca_file)
    scheme = "http" if ca_file is None else "https"
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, verify=verify, timeout=60) as http,
        Client(streamable_http_client(f"{scheme}://{address}/mcp", http_client=http), mode=mode) as client,
    ):
        yield Agent(client)


def stdio_server(gateway: str, credentials: Credentials, *options: str) -> StdioServerParameters:
    """Return the command of an agent's own server."""
    files = {
        "--ca-file": credentials.ca_file,
        "--certificate-file": credentials.certificate_file,
        "--key-file": credentials.key_file,
        "--token-file": credentials.token_file,
    }
    given = [word for option, path in files.items() if path for word in (option, str(path))]
    return StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "gris_cli", *given, "mcp", "--gateway", f"gris://{gateway}", *options],
        # The SDK passes on a few variables only; without this one, the server may be another checkout's.
        env={name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
    )


@asynccontextmanager
async def over_stdio(
    gateway: str, credentials: Credentials, *options: str, mode: str = "auto"
) -> AsyncIterator[Agent]:
    """Start an agent's own server, and connect the agent to it."""
    async with Client(stdio_server(gateway, credentials, *options), mode=mode) as client:
        yield Agent(client)


def texts_outside(found: Any, data: frozenset[str]) -> list[str]:
    """Return all texts of a result, except those below its fields of data."""
    match found:
        case str():
            return [found]
        case Mapping():
            return [
                text for name, each in found.items() if name not in data for text in texts_outside(each, data)
            ]
        case list():
            return [text for each in found for text in texts_outside(each, data)]
    return []
