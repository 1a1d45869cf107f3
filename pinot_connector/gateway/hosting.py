"""The one place that puts engine, services, history and server of the gateway together."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from gris.app.v1 import app_pb2_grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from pinot_connector.channels import MAX_MESSAGE_BYTES
from pinot_connector.client import AsyncPrivateClient
from pinot_connector.engines.base import Engine
from pinot_connector.gateway.admission import GatewayAdmission
from pinot_connector.gateway.callers import Callers
from pinot_connector.gateway.configuration import EngineChoice, GatewayConfiguration, Pinot
from pinot_connector.gateway.history import History, Keeping
from pinot_connector.gateway.limits import Limiter
from pinot_connector.gateway.server import SERVICE_NAME, PrivateQueryServicer
from serving.followed import SecurityError
from serving.tls import server_credentials

GRACE_SECONDS = 30.0
# The client asks for one account unless it is told for whom; the gateway always tells.
NOBODY = ("gateway",)

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.so_reuseport", 0),
)


class Gateway:
    """A gateway that is ready to serve. Nothing has been asked of services or engine yet.

    Args:
        configuration: a valid one.

    Raises:
        SecurityError: a file cannot be used, or the gateway would be open to strangers.
        GrisError: a data file or a file of a service's credentials cannot be used.
    """

    def __init__(self, configuration: GatewayConfiguration) -> None:
        configuration.require_protected()
        self._configuration = configuration
        limits = configuration.limits
        limiter = Limiter(
            per_second=limits.per_second,
            burst=limits.burst,
            concurrent=limits.concurrent,
            clock=time.monotonic,
        )
        self._admission = GatewayAdmission(Callers(configuration.identity), limiter)
        self._credentials = (
            None if configuration.tls is None else server_credentials(configuration.tls.files())
        )
        for service in (configuration.dp, configuration.budget):
            service.require_readable()
        self._engine = engine_of(configuration.engine)

    def close(self) -> None:
        """Give back what the engine holds."""
        self._engine.close()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve as the configuration says and give the address.

        On leaving no new calls are taken, and those that have begun get GRACE_SECONDS.

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
            async with self._served(servicer) as address:
                yield address
        finally:
            await client.close()
            await servicer.finish()
            await history.close()

    @asynccontextmanager
    async def _served(self, servicer: PrivateQueryServicer) -> AsyncIterator[str]:
        server = grpc.aio.server(interceptors=(self._admission,), options=_OPTIONS)
        app_pb2_grpc.add_PrivateQueryServiceServicer_to_server(servicer, server)
        told = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(told, server)
        if self._configuration.reflection:
            names = (SERVICE_NAME, health.SERVICE_NAME, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, server)
        address = self._bind(server)
        await server.start()
        for name in (SERVICE_NAME, ""):
            await told.set(name, health_pb2.HealthCheckResponse.SERVING)
        try:
            yield address
        finally:
            await told.enter_graceful_shutdown()
            await server.stop(GRACE_SECONDS)

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
        EngineUnavailable: a data file cannot be read.
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


def _pinot(pinot: Pinot) -> Engine:
    from pinot_connector.engines.pinot import PinotEngine  # noqa: PLC0415 - an extra

    try:
        return PinotEngine(
            broker=pinot.broker,
            controller=pinot.controller,
            authorization=_authorization(pinot),
            tls=_trust(pinot),
            timeout_seconds=pinot.timeout_seconds,
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
