"""What a gateway serves over HTTP, in its own process and by its own calls: agents, and clients of Pinot."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from http import HTTPStatus
from importlib import import_module
from typing import Protocol

import uvicorn
from starlette.types import Receive, Scope, Send

from gris_gateway.accounts import AccountError, Caller, OutOfReachError
from gris_gateway.admission import GatewayAdmission
from gris_gateway.callers import Callers, NoAccountError, UnknownCallerError
from gris_gateway.configuration import BrokerSettings, HttpSettings
from gris_gateway.in_process import InProcessCalls, InProcessContext, RegisteredMethods
from gris_gateway.limits import GatewayLimits
from gris_gateway.rate_limits import Limiter, TooManyError
from gris_serving.http_connections import timed_protocol
from gris_serving.http_requests import HttpRefusalError, HttpRules
from gris_serving.reloading_files import SecurityError
from gris_serving.security import warn_of_missing_protection
from gris_serving.tls import is_loopback
from gris_serving.tokens import TokenError
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.spending_guard import SpendingGuards

_CHALLENGE = {"WWW-Authenticate": "Bearer"}

log = logging.getLogger(__name__)


class HttpFace(Protocol):
    """An ASGI application that a gateway serves."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Answer requests while the block runs."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        ...


class HttpAdmission:
    """Admits requests as the gateway admits its callers: by the same tokens and rules.

    A request is identified here before it is read, and once more, as every call is, when it calls the gateway's RPCs:
    there it takes its turn with all calls of its caller. Requests have limits of their own besides, for most of them,
    such as those that list tools or tables, call no RPC.

    Args:
        name: What the log calls the server whose requests these are.
        callers: Identifies callers.
        requests: Limits the requests of each caller.
        methods: The gateway's RPCs.
        admission: What admits their calls.
        max_per_hour: The most information units that each caller may spend here within an hour; None: no limit but the
            budget's.
    """

    def __init__(
        self,
        name: str,
        callers: Callers,
        requests: Limiter,
        methods: RegisteredMethods,
        admission: GatewayAdmission,
        *,
        max_per_hour: int | None = None,
    ) -> None:
        self._name = name
        self._callers = callers
        self._requests = requests
        self._methods = methods
        self._admission = admission
        self._guards = None if max_per_hour is None else SpendingGuards(max_per_hour)

    @asynccontextmanager
    async def admitted(
        self, authorization: Sequence[str], account: str | None = None
    ) -> AsyncIterator[AsyncGatewayClient]:
        """Admit a request while the block runs, and yield the client by which its sender asks.

        Args:
            authorization: The values of the header Authorization: at most one, with a token.
            account: Whose budget pays; None: the caller's own account.

        Raises:
            HttpRefusalError: The sender is not known, has no account, or asks too much.
        """
        caller = self._known(authorization)
        self._require_within_reach(caller, account)
        try:
            async with self._requests.entered(caller.name) as request:
                # Every request counts against the rate.
                await request.turn()
                calls = InProcessCalls(self._methods, self._admission, authorization)
                guard = None if self._guards is None else self._guards.of(caller.name)
                yield AsyncGatewayClient(calls, account=account, max_per_hour=guard)
        except TooManyError as error:
            seconds = math.ceil(error.wait_milliseconds / 1000)
            raise self._refused(
                HTTPStatus.TOO_MANY_REQUESTS, error.reason, str(error), {"Retry-After": str(seconds)}
            ) from None

    def _require_within_reach(self, caller: Caller, account: str | None) -> None:
        try:
            caller.account([] if account is None else account.split("/"))
        except (AccountError, OutOfReachError):
            message = (
                "expected the caller's own account, or one below it where the gateway's rules allow that"
            )
            raise self._refused(HTTPStatus.FORBIDDEN, "ACCOUNT_OUT_OF_REACH", message) from None

    def _known(self, authorization: Sequence[str]) -> Caller:
        metadata = tuple(("authorization", value) for value in authorization)
        try:
            return self._callers.caller(InProcessContext(metadata))  # type: ignore[arg-type]
        except TokenError as error:
            raise self._refused(HTTPStatus.UNAUTHORIZED, "TOKEN_REFUSED", str(error), _CHALLENGE) from None
        except UnknownCallerError:
            message = "expected a token that says who calls"
            raise self._refused(HTTPStatus.UNAUTHORIZED, "CALLER_UNKNOWN", message, _CHALLENGE) from None
        except NoAccountError:
            message = "no account belongs to this caller"
            raise self._refused(HTTPStatus.FORBIDDEN, "CALLER_WITHOUT_ACCOUNT", message) from None

    def _refused(
        self, status: HTTPStatus, reason: str, message: str, headers: dict[str, str] | None = None
    ) -> HttpRefusalError:
        fields = {"server": self._name, "status": int(status), "reason": reason}
        log.info("A request over HTTP was refused.", extra={"event": "http.refused", "fields": fields})
        return HttpRefusalError(status, message, headers or {})


class HttpServer:
    """An HTTP server, ready to listen.

    Args:
        name: The key of the configuration that it is described by.
        settings: Where to listen.
        tls: The TLS of the address; None: plain text.
        face: What it serves.
        limits: The limits and time-outs.
    """

    def __init__(
        self,
        name: str,
        settings: HttpSettings,
        tls: ssl.SSLContext | None,
        face: HttpFace,
        limits: GatewayLimits,
    ) -> None:
        self._name = name
        self._listen = settings.listen
        self._limits = limits
        self._tls = tls
        self._face = face

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve while the block runs, and yield the address; then requests that have begun get the grace period.

        Raises:
            SecurityError: It cannot listen.
        """
        listening = self._bound()
        port = listening.getsockname()[1]
        if self._tls is None and not is_loopback(self._listen):
            warn_of_missing_protection(self._listen, ["tls"])
        server = _Server(self._options())

        # All of it in one task, as the SDK demands: the block may be left from another one than it was entered from.
        async def serve() -> None:
            async with self._face.running():
                await server.serve(sockets=[listening])

        running = asyncio.create_task(serve())
        try:
            yield f"{self._listen.rpartition(':')[0]}:{port}"
        finally:
            server.should_exit = True
            await asyncio.gather(running, return_exceptions=True)
            listening.close()

    def _bound(self) -> socket.socket:
        host, _, port = self._listen.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            return socket.create_server((host, int(port)), family=family)
        except OSError as error:
            raise SecurityError(
                f"{self._name}.listen: cannot listen on {self._listen}: {error.strerror}"
            ) from None

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


def require_face(name: str) -> None:
    """Import what serves a key of the configuration.

    Raises:
        ModuleNotFoundError: A library is missing.
    """
    import_module({"mcp": "gris_mcp.http", "broker": "gris_broker.application"}[name])


def face_of(settings: HttpSettings, admitting: HttpAdmission, limits: GatewayLimits) -> HttpFace:
    """Return what is served by these settings."""
    rules = rules_of(settings, limits)
    if isinstance(settings, BrokerSettings):
        from gris_broker.application import BrokerApplication  # noqa: PLC0415 - an extra

        return BrokerApplication(admitting, rules, settings.address)
    from gris_mcp.http import HttpApplication  # noqa: PLC0415 - an extra

    return HttpApplication(admitting, rules)


def rules_of(settings: HttpSettings, limits: GatewayLimits) -> HttpRules:
    """Return which requests are read."""
    usual = HttpRules()
    return HttpRules(
        hosts=frozenset(settings.hosts) or usual.hosts,
        origins=frozenset(settings.origins),
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
