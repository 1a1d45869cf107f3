"""Requests of HTTP servers whose callers show tokens: which are read, how far, and how long they are answered.

A request is refused, in this order, if it names another host (as a page does that had a browser resolve its own name to
this machine), comes from a page of another origin, is for another path or method, or shows no token that is accepted;
only then is it read, up to a limit in size and time, and refused if what its sender showed is not accepted any more.
If its sender leaves, what it asked is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from gris_serving.admitting import Admitting, Sender
from gris_serving.refusals import HttpRefusalError

_Client = TypeVar("_Client")
_PORT_DIGITS = 5
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))


@dataclass(frozen=True)
class HttpRules:
    """Which requests are read.

    Attributes:
        hosts: Names that the header Host may have, with their port or, to allow every port, without it; none: names of
            this machine itself.
        origins: What the header Origin may be, where there is one: browsers send it, programs do not.
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
        without_port = name if colon and port.isdecimal() and len(port) <= _PORT_DIGITS else host
        return host.lower() in self.hosts or without_port.lower() in self.hosts

    def require_right_address(self, headers: Headers) -> None:
        """Refuse what is for another host, or comes from another page.

        Raises:
            HttpRefusalError: It is.
        """
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self.has_host(hosts[0]):
            raise HttpRefusalError(HTTPStatus.MISDIRECTED_REQUEST, "expected the name of this server as Host")
        if not self.origins.issuperset(origins):
            raise HttpRefusalError(HTTPStatus.FORBIDDEN, "pages of this origin may not call this server")

    @asynccontextmanager
    async def admitted(
        self,
        admitting: Admitting[_Client],
        sender: Sender,
        scope: Scope,
        receive: Receive,
        *,
        account: str | None = None,
    ) -> AsyncIterator[tuple[_Client, bytes]]:
        """Admit a request while the block runs, and yield the client by which its sender asks, and what it sent.

        Raises:
            HttpRefusalError: As for `Admitting.admitted` and `body`, or a token has expired while the request arrived.
        """
        async with admitting.admitted(sender, account) as client:
            body = await self.body(scope, receive)
            admitting.require_known(sender)
            yield client, body

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """Read a request.

        Raises:
            HttpRefusalError: It is too large, or does not arrive whole and in time.
        """
        most = self.request_bytes
        too_large = HttpRefusalError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected at most {most} bytes")
        stated = Headers(scope=scope).get("content-length", "0")
        if not stated.isdecimal() or int(stated[:20]) > most:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self.read_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        # Nobody reads the refusal; a part of a request is not answered.
                        raise TimeoutError
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise too_large
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise HttpRefusalError(
                HTTPStatus.REQUEST_TIMEOUT, "expected one whole request, sent in time"
            ) from None

    async def answer_unless_left(
        self, answer: Callable[[Receive, Send], Awaitable[None]], body: bytes, receive: Receive, send: Send
    ) -> None:
        """Answer a request whose body has been read; cancel that if its sender leaves, or if it takes too long."""
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

        answering = asyncio.ensure_future(answer(replayed, send))
        watching = asyncio.create_task(leaving())
        try:
            await asyncio.wait(
                (answering, watching), timeout=self.answer_seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            left.set()
            for task in (answering, watching):
                task.cancel()
            ended = await asyncio.gather(answering, watching, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error
