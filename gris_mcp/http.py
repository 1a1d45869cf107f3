"""The HTTP form: streamable HTTP in front of the MCP server, for a process that knows who calls.

Every request stands alone: there are no sessions, so none can be taken over, and any of several gateways may answer.
A request is refused, in this order, if it names another host (as a page does that had a browser resolve its own name to
this machine), comes from a page of another origin, is for another path or method, or shows no token that is accepted;
only then is it read, up to a limit in size and time. If its sender leaves, what it asked is cancelled.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from gris_mcp.server import Context, private_server
from gris_mcp.unreadable import UNREADABLE, is_readable, is_version
from pinot_connector.gateway_client import AsyncGatewayClient

PATH = "/mcp"
_CLIENT = "gris.client"
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))


@dataclass(frozen=True)
class HttpRules:
    """Which requests are read.

    Attributes:
        hosts: Names that the header Host may have, with their port or, to allow every port, without it; none: names of
            this machine itself.
        origins: What the header Origin may be, where there is one: browsers send it, agents do not.
        request_bytes: The largest request. No question that dp_service accepts is as large.
        read_seconds: How long a request may take to arrive.
        answer_seconds: How long an answer may take, being read included.
    """

    hosts: frozenset[str] = _LOOPBACK
    origins: frozenset[str] = frozenset()
    request_bytes: int = 2 * 2**20
    read_seconds: float = 60.0
    answer_seconds: float = 300.0

    def has_host(self, host: str) -> bool:
        """Return whether requests may be for this host."""
        name, colon, port = host.rpartition(":")
        without_port = name if colon and port.isdecimal() else host
        return host.lower() in self.hosts or without_port.lower() in self.hosts


@dataclass
class HttpRefusalError(Exception):
    """A request that is not answered; the message says what was expected, and shows nothing of the request."""

    status: HTTPStatus
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Admitting(Protocol):
    """Knows who sends requests."""

    def admitted(self, authorization: Sequence[str]) -> AbstractAsyncContextManager[AsyncGatewayClient]:
        """Admit a request while the block runs, and yield the client by which its sender asks.

        Args:
            authorization: The values of the header Authorization.

        Raises:
            HttpRefusalError: The sender is not known, has no account, or asks too much.
        """
        ...


class HttpApplication:
    """The ASGI application. `running` has to be entered before the first request.

    Args:
        admitting: Knows who sends requests.
        rules: Which requests are read.
    """

    def __init__(self, admitting: Admitting, rules: HttpRules) -> None:
        self._admitting = admitting
        self._rules = rules
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            raise AssertionError("only HTTP is served here")
        try:
            self._require_right_address(scope)
            async with self._admitting.admitted(Headers(scope=scope).getlist("authorization")) as client:
                body = await self._body(scope, receive)
                if not is_readable(body):
                    raise HttpRefusalError(HTTPStatus.BAD_REQUEST, UNREADABLE)
                scope = {**scope, _CLIENT: client}
                await self._answer_unless_left(scope, body, receive, send)
        except HttpRefusalError as refusal:
            await _refuse(refusal, send)

    def _require_right_address(self, scope: Scope) -> None:
        """Refuse what is for another address.

        Raises:
            HttpRefusalError: It is.
        """
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._rules.has_host(hosts[0]):
            raise HttpRefusalError(HTTPStatus.MISDIRECTED_REQUEST, "expected the name of this server as Host")
        if not self._rules.origins.issuperset(origins):
            raise HttpRefusalError(HTTPStatus.FORBIDDEN, "pages of this origin may not call this server")
        if scope["path"] != PATH:
            raise HttpRefusalError(HTTPStatus.NOT_FOUND, f"expected {PATH}")
        if not all(map(is_version, headers.getlist("mcp-protocol-version"))):
            raise HttpRefusalError(HTTPStatus.BAD_REQUEST, "expected YYYY-MM-DD as MCP-Protocol-Version")
        if scope["method"] != "POST":
            raise HttpRefusalError(HTTPStatus.METHOD_NOT_ALLOWED, "expected POST", {"Allow": "POST"})

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Read a request.

        Raises:
            HttpRefusalError: It is too large, or does not arrive in time.
        """
        most = self._rules.request_bytes
        too_large = HttpRefusalError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected at most {most} bytes")
        stated = Headers(scope=scope).get("content-length", "0")
        if not stated.isdecimal() or int(stated[:20]) > most:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._rules.read_seconds):
                while True:
                    message = await receive()
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise too_large
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise HttpRefusalError(
                HTTPStatus.REQUEST_TIMEOUT, "expected one whole request, sent in time"
            ) from None

    async def _answer_unless_left(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Answer a request that has been read; cancel that if its sender leaves, or if it takes too long."""
        left = asyncio.Event()
        given = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replayed() -> Message:
            for message in given:
                return message
            await left.wait()
            return {"type": "http.disconnect"}

        async def leaving() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        answering = asyncio.create_task(self._sessions.handle_request(scope, replayed, send))
        watching = asyncio.create_task(leaving())
        try:
            await asyncio.wait(
                (answering, watching),
                timeout=self._rules.answer_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            left.set()
            for task in (answering, watching):
                task.cancel()
            ended = await asyncio.gather(answering, watching, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error


def _client_of(context: Context) -> AsyncGatewayClient:
    """Return the client of the one who sent the request that a message came in."""
    client: AsyncGatewayClient = context.request.scope[_CLIENT]  # type: ignore[union-attr]
    return client


async def _refuse(refusal: HttpRefusalError, send: Send) -> None:
    body = json.dumps({"error": refusal.message}).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **refusal.headers}
    await send(
        {
            "type": "http.response.start",
            "status": int(refusal.status),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": body})
