"""Serves one agent over standard input and output, and asks a gateway with the agent's own token."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from gris_gateway.faces.mcp.server import private_server
from pinot_connector.endpoints import Endpoint
from pinot_connector.gateway_client import AsyncGatewayClient


async def serve(gateway: Endpoint) -> None:
    """Serve until standard input ends.

    Raises:
        GrisError: The connection cannot be opened.
    """
    async with AsyncGatewayClient(gateway) as client:
        server = private_server(lambda _: client)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
