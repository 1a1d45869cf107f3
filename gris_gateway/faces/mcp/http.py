"""The HTTP form: streamable HTTP in front of the MCP server, for a process that knows who calls.

Every request stands alone: there are no sessions, so none can be taken over, and any of several gateways may answer.
`gris_serving.http_requests` says which requests are read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from gris_gateway.faces.mcp.server import Context, private_server
from gris_serving.admitting import Admitting
from gris_serving.http_application import HttpApplication, require_method
from gris_serving.http_connections import sender_of
from gris_serving.http_requests import HttpRules
from gris_serving.refusals import HttpRefusalError
from pinot_connector.gateway_client import AsyncGatewayClient

PATH = "/mcp"
_CLIENT = "gris.client"


class McpApplication(HttpApplication):
    """The ASGI application. `running` has to be entered before the first request.

    Args:
        admitting: Knows who sends requests.
        rules: Which requests are read.
    """

    def __init__(self, admitting: Admitting[AsyncGatewayClient], rules: HttpRules) -> None:
        super().__init__(rules)
        self._admitting = admitting
        self._server: Server[Any] = private_server(_client_of)
        # Hosts and origins are checked here, where no header is logged.
        self._sessions = StreamableHTTPSessionManager(
            self._server, stateless=True, max_request_body_size=rules.request_bytes
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests while the block runs; those that are under way when it ends are cancelled."""
        async with self._sessions.run():
            yield

    def _refused(self, refusal: HttpRefusalError, scope: Scope) -> Response:
        del scope
        return JSONResponse({"error": refusal.message}, int(refusal.status), dict(refusal.headers))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._require_right_address(scope)
        admitted = self._rules.admitted(self._admitting, sender_of(scope), scope, receive)
        async with admitted as (client, body):
            of_client = {**scope, _CLIENT: client}

            async def answer(replayed: Receive, sent: Send) -> None:
                await self._sessions.handle_request(of_client, replayed, sent)

            await self._rules.answer_unless_left(answer, body, receive, send)

    def _require_right_address(self, scope: Scope) -> None:
        """Refuse what is for another address.

        Raises:
            HttpRefusalError: It is.
        """
        self._rules.require_right_address(Headers(scope=scope))
        if scope["path"] != PATH:
            raise HttpRefusalError(HTTPStatus.NOT_FOUND, f"expected {PATH}")
        require_method(scope["method"], "POST")


def _client_of(context: Context) -> AsyncGatewayClient:
    """Return the client of the one who sent the request that a message came in."""
    client: AsyncGatewayClient = context.request.scope[_CLIENT]  # type: ignore[union-attr]
    return client
