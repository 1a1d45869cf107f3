"""The one place that puts engine, services, history and server of the gateway together."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import grpc
from gris_api.app.v1 import app_pb2_grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from gris_gateway.admission import GatewayAdmission
from gris_gateway.callers import Callers
from gris_gateway.configuration import EngineChoice, GatewayConfiguration, Pinot
from gris_gateway.history import History, Keeping
from gris_gateway.rate_limits import Limiter
from gris_gateway.service import PrivateQueryServicer
from gris_gateway.slow_callers import CALLER_TIMEOUT_SECONDS, keepalive_options
from gris_gateway.upstream_health import SERVICE_NAME, UpstreamHealth
from gris_serving import health
from gris_serving.draining import connection_options, drain_and_stop
from gris_serving.reloading_files import SecurityError
from gris_serving.telemetry import Telemetry
from gris_serving.tls import server_credentials
from pinot_connector import telemetry
from pinot_connector.channels import MAX_MESSAGE_BYTES
from pinot_connector.client import AsyncPrivateClient
from pinot_connector.engines.base import Engine
from pinot_connector.errors import EngineError

GRACE_SECONDS = 30.0
# The client asks for one account unless it is told for whom; the gateway always tells.
NOBODY = ("gateway",)

# No question that dp_service takes is as large: its texts have 200,000 characters at most, its numbers are 32,000 at
# most.
MAX_REQUEST_BYTES = 2 * 2**20
# What a caller may send before something waits for it.
UNREAD_BYTES = 2**14
# So many calls may wait to be taken up. By default gRPC cancels calls at random from 1000 on, whoever sent them.
MAX_PENDING_CALLS = 10_000
# A refusal that is not read is kept as well, some 24 kB with its call, and strangers can have as many as calls.
MAX_CALLS_OF_A_CONNECTION = 1000
# A call that is never finished does not outlive its connection for ever.
SLOWEST_CALL_SECONDS = 300.0

_OPTIONS = (
    ("grpc.server.max_pending_requests", MAX_PENDING_CALLS),
    ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING_CALLS),
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.http2.lookahead_bytes", UNREAD_BYTES),
    # It would let whoever sends fast send megabytes that nobody waits for.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.max_concurrent_streams", MAX_CALLS_OF_A_CONNECTION),
    *keepalive_options(CALLER_TIMEOUT_SECONDS),
    ("grpc.so_reuseport", 0),
    # By default a client that asks more often than every five minutes whether this lives is sent away.
    ("grpc.http2.min_ping_interval_without_data_ms", 4000),
)


class Gateway:
    """A gateway that is ready to serve. Nothing has been asked of services or engine yet.

    Args:
        configuration: a valid one.

    Raises:
        SecurityError: a file cannot be used, or the gateway would be open to strangers.
    """

    def __init__(self, configuration: GatewayConfiguration) -> None:
        configuration.require_protected()
        self._configuration = configuration
        limits = configuration.limits
        self._limiter = Limiter(
            per_second=limits.per_second,
            burst=limits.burst,
            concurrent=limits.concurrent,
            clock=time.monotonic,
        )
        self._callers = Callers(configuration.identity)
        self._credentials = (
            None if configuration.tls is None else server_credentials(configuration.tls.files())
        )
        configuration.dp.require_readable("dp")
        configuration.budget.require_readable("budget")
        self._engine = engine_of(configuration.engine)

    def close(self) -> None:
        """Give back what the engine holds."""
        self._engine.close()

    @asynccontextmanager
    async def serving(self, process_telemetry: Telemetry, drain_seconds: float = 0.0) -> AsyncIterator[str]:
        """Serve as the configuration says, and be looked at as `process_telemetry` says; give the address.

        On leaving, the gateway reports NOT_SERVING and goes on for `drain_seconds`; then no new calls are taken, and
        those that have begun get GRACE_SECONDS.

        Raises:
            HistoryError: the history cannot be opened.
            SecurityError: the address cannot be listened on.
        """
        configuration = self._configuration
        kept = configuration.history
        keeping = Keeping(kept.retention_days, kept.per_account, kept.megabytes)
        history = History(kept.file, keeping, lambda: time.time_ns() // 1000)
        client = AsyncPrivateClient(
            dp=configuration.dp.to_address(),
            budget=configuration.budget.to_address(),
            account=NOBODY,
            engine=self._engine,
            confidence=configuration.confidence,
        )
        servicer = PrivateQueryServicer(client, history)
        try:
            async with self._served(servicer, process_telemetry, drain_seconds) as address:
                yield address
        finally:
            await client.close()
            await servicer.finish()
            await history.close()

    @asynccontextmanager
    async def _served(
        self, servicer: PrivateQueryServicer, process_telemetry: Telemetry, drain_seconds: float
    ) -> AsyncIterator[str]:
        instrumentation, names = process_telemetry.instrumentation, (SERVICE_NAME, health.OVERALL)
        server = grpc.aio.server(
            interceptors=(GatewayAdmission(self._callers, self._limiter, instrumentation),),
            options=(*_OPTIONS, *connection_options(drain_seconds, grace_seconds=SLOWEST_CALL_SECONDS)),
        )
        app_pb2_grpc.add_PrivateQueryServiceServicer_to_server(servicer, instrumentation.before(server))
        told = health.Health()
        health_pb2_grpc.add_HealthServicer_to_server(told, server)
        if self._configuration.reflection:
            reflected = (SERVICE_NAME, health.SERVICE_NAME, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(reflected, server)
        address = self._bind(server)
        with self._health_counted(told, process_telemetry) as upstream_health:
            await server.start()
            told.report(names, serving=True)
            instrumentation.report("server", serving=True)
            watching = asyncio.create_task(upstream_health.watch())
            try:
                yield address
            finally:
                instrumentation.report("server", serving=False)
                await drain_and_stop(
                    server, told, names, drain_seconds=drain_seconds, grace_seconds=GRACE_SECONDS
                )
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)

    @contextmanager
    def _health_counted(self, told: health.Health, process_telemetry: Telemetry) -> Iterator[UpstreamHealth]:
        """Have questions and calls to the engine counted, and give what looks at the gateway's parts."""
        configuration = self._configuration
        dp, budget = configuration.dp.to_address(), configuration.budget.to_address()
        upstream_health = UpstreamHealth(dp, budget, told, process_telemetry.instrumentation)
        with ExitStack() as stack:
            stack.enter_context(telemetry.counted_by(upstream_health))
            if process_telemetry.registry is not None:
                # Its library is loaded only where something is counted.
                from gris_gateway.metrics import QuestionMetrics  # noqa: PLC0415

                stack.enter_context(telemetry.counted_by(QuestionMetrics(process_telemetry.registry)))
            yield upstream_health

    def _bind(self, server: grpc.aio.Server) -> str:
        listen = self._configuration.listen
        try:
            if self._credentials is None:
                port = server.add_insecure_port(listen)
            else:
                port = server.add_secure_port(listen, self._credentials)
        except RuntimeError:
            raise SecurityError(f"listen: cannot listen on {listen}") from None
        return f"{listen.rpartition(':')[0]}:{port}"


def engine_of(choice: EngineChoice) -> Engine:
    """Open the engine that is named.

    Raises:
        SecurityError: an extra is not installed, or a file cannot be used.
    """
    try:
        if choice.pinot is not None:
            return _pinot(choice.pinot)
        from pinot_connector.engines.duckdb import DuckDBEngine  # noqa: PLC0415 - an extra

        return DuckDBEngine(choice.duckdb or {})
    except ModuleNotFoundError as error:
        raise SecurityError(
            f"engine: this engine needs the package {error.name}: see the extras of gris-dp"
        ) from None
    except EngineError as error:
        raise SecurityError(f"engine.duckdb: {error}") from None


def _pinot(pinot: Pinot) -> Engine:
    from pinot_connector.engines.pinot import PinotEngine  # noqa: PLC0415 - an extra

    try:
        return PinotEngine(
            broker=pinot.broker,
            controller=pinot.controller,
            authorization=_authorization(pinot),
            tls=_trust(pinot),
            timeout_seconds=pinot.timeout_seconds,
            server_admin=pinot.server_admin,
            server_admin_port=pinot.server_admin_port,
            settle_seconds=pinot.settle_seconds,
        )
    except ValueError as error:
        raise SecurityError(f"engine.pinot: {error}") from None


def _authorization(pinot: Pinot) -> str | None:
    if pinot.authorization_file is None:
        return None
    try:
        value = Path(pinot.authorization_file).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        value = ""
    if not value or not value.isprintable():
        raise SecurityError("engine.pinot.authorization_file: expected a file with one line of ASCII")
    return value


def _trust(pinot: Pinot) -> ssl.SSLContext | None:
    if pinot.ca_file is None and pinot.certificate_file is None:
        return None
    try:
        context = ssl.create_default_context(cafile=pinot.ca_file)
        if pinot.certificate_file is not None:
            context.load_cert_chain(pinot.certificate_file)
    except (OSError, ssl.SSLError):
        raise SecurityError("engine.pinot: expected PEM files as ca_file and certificate_file") from None
    return context
