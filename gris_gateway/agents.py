"""The MCP server of a gateway: agents over HTTP, in the gateway's own process and by its own calls."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus

import uvicorn

from gris_gateway.accounts import Caller
from gris_gateway.admission import GatewayAdmission
from gris_gateway.callers import Callers, NoAccountError, UnknownCallerError
from gris_gateway.configuration import McpSettings
from gris_gateway.in_process import InProcessCalls, InProcessContext, RegisteredMethods
from gris_gateway.limits import GatewayLimits
from gris_gateway.rate_limits import Limiter, TooManyError
from gris_mcp.http import HttpApplication, HttpRefusalError, HttpRules
from gris_serving.http_connections import timed_protocol
from gris_serving.reloading_files import SecurityError
from gris_serving.security import warn_of_missing_protection
from gris_serving.tls import is_loopback
from gris_serving.tokens import TokenError
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.spending_guard import SpendingGuards

_CHALLENGE = {"WWW-Authenticate": "Bearer"}

log = logging.getLogger(__name__)


class AgentAdmission:
    """Admits agents as the gateway admits its callers: by the same tokens and rules.

    A request is identified here before it is read, and once more, as every call is, when it calls the gateway's RPCs:
    there it takes its turn with all calls of its caller. Requests have limits of their own besides, for most of them,
    such as those that list the tools, call no RPC.

    Args:
        callers: Identifies callers.
        requests: Limits the requests of each caller.
        methods: The gateway's RPCs.
        admission: What admits their calls.
        max_per_hour: The most information units that each caller's agents may spend within an hour; None: no limit but
            the budget's.
    """

    def __init__(
        self,
        callers: Callers,
        requests: Limiter,
        methods: RegisteredMethods,
        admission: GatewayAdmission,
        *,
        max_per_hour: int | None = None,
    ) -> None:
        self._callers = callers
        self._requests = requests
        self._methods = methods
        self._admission = admission
        self._guards = None if max_per_hour is None else SpendingGuards(max_per_hour)

    @asynccontextmanager
    async def admitted(self, authorization: Sequence[str]) -> AsyncIterator[AsyncGatewayClient]:
        """Admit a request; see `gris_mcp.http.Admitting`."""
        caller = self._known(authorization)
        try:
            async with self._requests.entered(caller.name) as request:
                # Every request counts against the rate.
                await request.turn()
                calls = InProcessCalls(self._methods, self._admission, authorization)
                guard = None if self._guards is None else self._guards.of(caller.name)
                yield AsyncGatewayClient(calls, max_per_hour=guard)
        except TooManyError as error:
            seconds = math.ceil(error.wait_milliseconds / 1000)
            raise _refused(
                HTTPStatus.TOO_MANY_REQUESTS, error.reason, str(error), {"Retry-After": str(seconds)}
            ) from None

    def _known(self, authorization: Sequence[str]) -> Caller:
        metadata = tuple(("authorization", value) for value in authorization)
        try:
            return self._callers.caller(InProcessContext(metadata))  # type: ignore[arg-type]
        except TokenError as error:
            raise _refused(HTTPStatus.UNAUTHORIZED, "TOKEN_REFUSED", str(error), _CHALLENGE) from None
        except UnknownCallerError:
            message = "expected a token that says who calls"
            raise _refused(HTTPStatus.UNAUTHORIZED, "CALLER_UNKNOWN", message, _CHALLENGE) from None
        except NoAccountError:
            message = "no account belongs to this caller"
            raise _refused(HTTPStatus.FORBIDDEN, "CALLER_WITHOUT_ACCOUNT", message) from None


def _refused(
    status: HTTPStatus, reason: str, message: str, headers: dict[str, str] | None = None
) -> HttpRefusalError:
    fields = {"status": int(status), "reason": reason}
    log.info("An agent's request was refused.", extra={"event": "mcp.refused", "fields": fields})
    return HttpRefusalError(status, message, headers or {})


class AgentServer:
    """The HTTP server, ready to listen.

    Args:
        mcp: Where to listen, and which requests are read.
        tls: The TLS of the address; None: plain text.
        admission: Admits requests.
        limits: The limits and time-outs.
    """

    def __init__(
        self, mcp: McpSettings, tls: ssl.SSLContext | None, admission: AgentAdmission, limits: GatewayLimits
    ) -> None:
        self._listen = mcp.listen
        self._limits = limits
        self._tls = tls
        self._application = HttpApplication(admission, _rules(mcp, limits))

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
            async with self._application.running():
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
            raise SecurityError(f"mcp.listen: cannot listen on {self._listen}: {error.strerror}") from None

    def _options(self) -> uvicorn.Config:
        context, limits = self._tls, self._limits
        return uvicorn.Config(
            self._application,
            http=timed_protocol(limits.handshake_seconds),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            # A proxy before the gateway says nothing here of who calls.
            proxy_headers=False,
            limit_concurrency=limits.agent_connections,
            timeout_keep_alive=math.ceil(limits.handshake_seconds),
            timeout_graceful_shutdown=math.ceil(limits.grace_seconds),
            ssl_context_factory=None if context is None else lambda _, __: context,
        )


def _rules(mcp: McpSettings, limits: GatewayLimits) -> HttpRules:
    usual = HttpRules()
    return HttpRules(
        hosts=frozenset(mcp.hosts) or usual.hosts,
        origins=frozenset(mcp.origins),
        request_bytes=limits.request_bytes,
        read_seconds=limits.caller_timeout_seconds,
        answer_seconds=limits.agent_answer_seconds,
    )


class _Server(uvicorn.Server):
    """Uvicorn without its handlers of signals: the process has its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield
