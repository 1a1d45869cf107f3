"""What ASGI applications that answer requests of HTTP alone have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gris_serving.http_requests import HttpRules
from gris_serving.refusals import HttpRefusalError


class HttpApplication(ABC):
    """An ASGI application.

    Args:
        rules: Which requests are read.
    """

    def __init__(self, rules: HttpRules) -> None:
        self._rules = rules

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests while the block runs."""
        yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            raise AssertionError("only HTTP is served here")
        try:
            await self._answer(scope, receive, send)
        except HttpRefusalError as refusal:
            await self._refused(refusal, scope)(scope, receive, send)

    @abstractmethod
    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            HttpRefusalError: It is refused.
        """

    @abstractmethod
    def _refused(self, refusal: HttpRefusalError, scope: Scope) -> Response:
        """Return the answer to a request that is refused."""

    async def _respond(
        self,
        respond: Callable[[], Awaitable[Response]],
        body: bytes,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer a request whose body has been read, unless its sender leaves."""

        async def answer(replayed: Receive, sent: Send) -> None:
            response = await respond()
            await response(scope, replayed, sent)

        await self._rules.answer_unless_left(answer, body, receive, send)


def require_method(method: str, *accepted: str) -> None:
    """Refuse a request by another method.

    Raises:
        HttpRefusalError: It is one.
    """
    if method not in accepted:
        raise HttpRefusalError(
            HTTPStatus.METHOD_NOT_ALLOWED, f"expected {' or '.join(accepted)}", {"Allow": ", ".join(accepted)}
        )
