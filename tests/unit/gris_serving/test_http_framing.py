"""Requests whose end two programs could see in two places: refused, and the connection closed."""

from __future__ import annotations

import asyncio

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gris_gateway.http_faces import HttpServer
from gris_gateway.limits import GatewayLimits
from gris_serving.http_application import HttpApplication
from gris_serving.http_requests import HttpRules
from gris_serving.refusals import HttpRefusalError

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
FRAMED = HEAD + b"Content-Length: 3\r\n\r\nabc"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"


class Face(HttpApplication):
    """Answers every request, and remembers paths and bodies."""

    def __init__(self) -> None:
        super().__init__(HttpRules())
        self.requests: list[tuple[str, bytes]] = []

    def _refused(self, refusal: HttpRefusalError, scope: Scope) -> Response:
        raise AssertionError(refusal)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await self._rules.body(scope, receive)
        self.requests.append((scope["path"], body))
        await Response()(scope, receive, send)


async def exchanged(face: Face, *parts: bytes) -> list[bytes]:
    """Send parts on one connection and return the status lines of the answers, once the server closes it."""
    server = HttpServer("page", "127.0.0.1:0", None, face, GatewayLimits(handshake_seconds=5))
    async with asyncio.timeout(30), server.serving() as address:
        reader, writer = await asyncio.open_connection(*address.split(":"))
        for part in parts:
            writer.write(part)
            await writer.drain()
            # The server is in this loop: it reads a part before the next one.
            for _ in range(20):
                await asyncio.sleep(0)
        answer = await reader.read()
        writer.close()
    return [line for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(
            HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="length and chunked",
        ),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            id="chunked and length",
        ),
        pytest.param(HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", id="two lengths"),
        pytest.param(HEAD + b"Content-Length: 3, 4\r\n\r\nabcd", id="two lengths in one header"),
        pytest.param(HEAD + b"Content-Length: +3\r\n\r\nabc", id="a signed length"),
        pytest.param(HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", id="another encoding"),
        pytest.param(HEAD + b"Transfer-Encoding: identity\r\n\r\n", id="no encoding"),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="chunked twice",
        ),
        pytest.param(HEAD + b"X: a\r\n b\r\n\r\n", id="a folded header"),
        pytest.param(HEAD + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", id="a folded encoding"),
        pytest.param(b"GET / HTTP/1.1\nHost: localhost\r\n\r\n", id="a line feed behind the first line"),
        pytest.param(HEAD + b"X: a\nContent-Length: 3\r\n\r\nabc", id="a line feed alone"),
        pytest.param(HEAD + b"\n", id="a line feed that ends the headers"),
        pytest.param(
            b"POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="HTTP/1.0",
        ),
    ],
)
@pytest.mark.parametrize("is_second", [False, True], ids=["first", "second"])
async def test_a_request_of_doubtful_length_is_refused_and_ends_the_connection(
    request_: bytes, is_second: bool
) -> None:
    """Also behind another request, and what follows is no request."""
    face = Face()
    sent = (FRAMED if is_second else b"") + request_ + HIDDEN
    before = [b"HTTP/1.1 200 OK"] if is_second else []
    assert [*before, b"HTTP/1.1 400 Bad Request"] == await exchanged(face, sent)
    assert [("/", b"abc")] * is_second == face.requests


@pytest.mark.parametrize(
    "request_",
    [
        FRAMED,
        CHUNKED,
        CHUNKED.replace(b"chunked", b"Chunked"),
        FRAMED.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n"),
    ],
    ids=["length", "chunked", "in capitals", "the same length twice"],
)
@pytest.mark.parametrize("is_cut", [False, True], ids=["in one part", "byte by byte"])
async def test_requests_with_one_end_are_read(request_: bytes, is_cut: bool) -> None:
    """Two in a row, and a body may have any bytes."""
    face = Face()
    last = HEAD + b"Connection: close\r\nContent-Length: 4\r\n\r\n\n\r\n "
    sent = request_ + last
    parts = [sent[i : i + 1] for i in range(len(sent))] if is_cut else [sent]
    assert [b"HTTP/1.1 200 OK"] * 2 == await exchanged(face, *parts)
    assert [("/", b"abc"), ("/", b"\n\r\n ")] == face.requests
