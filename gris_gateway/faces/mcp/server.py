"""The MCP server: lists the tools, and runs each with the client of the one who sent the request."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from gris_gateway.faces.mcp.descriptions import INSTRUCTIONS
from gris_gateway.faces.mcp.tools import TOOLS
from gris_serving.distribution import version
from pinot_connector.gateway_client import AsyncGatewayClient

NAME = "gris"
# They would log messages, and with them elements and questions.
_TALKATIVE = ("mcp", "sse_starlette", "uvicorn")

Context = ServerRequestContext[Any, Any]
ClientOf = Callable[[Context], AsyncGatewayClient]


def private_server(client_of: ClientOf) -> Server[Any]:
    """Return a server.

    Args:
        client_of: Returns the client by which a request is asked: its account is that of the request's sender.
    """
    silence_libraries()
    listed = [tool.listed() for tool in TOOLS.values()]

    async def list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(code=INVALID_PARAMS, message=f"expected one of the tools {', '.join(TOOLS)}")
        return await tool.called(client_of(context), params.arguments or {})

    return Server(
        NAME,
        title="Gris: private questions",
        version=version(),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def silence_libraries() -> None:
    """Let the libraries log only what went wrong."""
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
