"""What a gateway serves over HTTP, in its own process and by its own calls: agents, clients of Pinot, and a page."""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn

from gris_gateway.face_admission import FaceAdmission
from gris_gateway.face_settings import BrokerSettings, HttpSettings
from gris_gateway.limits import GatewayLimits
from gris_gateway.page_admission import PageAdmission
from gris_gateway.page_settings import PageSettings
from gris_serving.http_application import HttpApplication
from gris_serving.http_connections import timed_protocol
from gris_serving.http_requests import HttpRules
from gris_serving.listening import UNIX, bound_socket
from gris_serving.security import warn_of_missing_protection
from gris_serving.tls import is_loopback


class HttpServer:
    """An HTTP server, ready to listen.

    Args:
        name: The key of the configuration that it is described by.
        listen: Where to listen.
        tls: The TLS of the address; None: plain text.
        face: What it serves.
        limits: The limits and time-outs.
    """

    def __init__(
        self,
        name: str,
        listen: str,
        tls: ssl.SSLContext | None,
        face: HttpApplication,
        limits: GatewayLimits,
    ) -> None:
        self._name = name
        self._listen = listen
        self._limits = limits
        self._tls = tls
        self._face = face

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve while the block runs, and yield the address; then requests that have begun get the grace period.

        Raises:
            SecurityError: It cannot listen.
        """
        listening = bound_socket(self._name, self._listen)
        is_unix = self._listen.startswith(UNIX)
        if self._tls is None and not is_unix and not is_loopback(self._listen):
            warn_of_missing_protection(self._listen, ["tls"])
        server = _Server(self._options())

        # All of it in one task, as the SDK demands: the block may be left from another one than it was entered from.
        async def serve() -> None:
            async with self._face.running():
                await server.serve(sockets=[listening])

        running = asyncio.create_task(serve())
        try:
            port = 0 if is_unix else listening.getsockname()[1]
            yield self._listen if is_unix else f"{self._listen.rpartition(':')[0]}:{port}"
        finally:
            server.should_exit = True
            await asyncio.gather(running, return_exceptions=True)
            listening.close()

    def _options(self) -> uvicorn.Config:
        context, limits = self._tls, self._limits
        return uvicorn.Config(
            self._face,
            http=timed_protocol(limits.handshake_seconds),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            # A proxy before the gateway says nothing here of who calls.
            proxy_headers=False,
            limit_concurrency=limits.http_connections,
            timeout_keep_alive=math.ceil(limits.handshake_seconds),
            timeout_graceful_shutdown=math.ceil(limits.grace_seconds),
            ssl_context_factory=None if context is None else lambda _, __: context,
        )


def application_of(
    settings: HttpSettings, admitting: FaceAdmission, limits: GatewayLimits
) -> HttpApplication:
    """Return what is served by these settings."""
    rules = rules_of(settings.hosts, settings.origins, limits)
    if isinstance(settings, BrokerSettings):
        from gris_gateway.faces.broker.application import BrokerApplication  # noqa: PLC0415 - an extra

        return BrokerApplication(admitting, rules, settings.address)
    from gris_gateway.faces.mcp.http import McpApplication  # noqa: PLC0415 - an extra

    return McpApplication(admitting, rules)


def page_of(
    settings: PageSettings, admitting: FaceAdmission, limits: GatewayLimits, *, is_secure: bool
) -> HttpApplication:
    """Return the page."""
    from gris_gateway.faces.page.application import PageApplication  # noqa: PLC0415 - an extra

    if not isinstance(admitting, PageAdmission):
        raise AssertionError("the page has a way of its own to know who looks at it")
    address = settings.address
    rules = rules_of([] if address is None else [address.removeprefix("https://")], [], limits)
    return PageApplication(admitting, rules, is_secure=is_secure or address is not None)


def rules_of(hosts: Collection[str], origins: Collection[str], limits: GatewayLimits) -> HttpRules:
    """Return which requests are read."""
    usual = HttpRules()
    return HttpRules(
        hosts=frozenset(hosts) or usual.hosts,
        origins=frozenset(origins),
        request_bytes=limits.request_bytes,
        read_seconds=limits.caller_timeout_seconds,
        answer_seconds=limits.http_answer_seconds,
    )


class _Server(uvicorn.Server):
    """Uvicorn without its handlers of signals: the process has its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield
