"""The one place that composes the engine, services, history and server of the gateway."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import grpc
from gris_api.app.v1 import app_pb2_grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from gris_gateway.admission import GatewayAdmission
from gris_gateway.callers import Callers
from gris_gateway.configuration import EngineChoice, GatewayConfiguration, Pinot
from gris_gateway.face_admission import FaceAdmission
from gris_gateway.face_servers import face_of, require_libraries
from gris_gateway.face_settings import FaceSettings
from gris_gateway.history import History
from gris_gateway.limits import DEFAULT_LIMITS, GatewayLimits
from gris_gateway.offered_tables import ListingEngine, OfferedTables
from gris_gateway.own_calls import OwnCalls
from gris_gateway.page_admission import PageAdmission
from gris_gateway.page_settings import PageSettings
from gris_gateway.questions import Questions
from gris_gateway.rate_limits import Limiter
from gris_gateway.release_stores import connection_of, release_store_of, store_keys_of
from gris_gateway.rpc_errors import LOG_LEVELS
from gris_gateway.service import PrivateQueryServicer
from gris_gateway.upstream_health import SERVICE_NAME, UpstreamHealth
from gris_serving import health
from gris_serving.draining import connection_options, drain_and_stop
from gris_serving.listening import ListeningError, require_free
from gris_serving.reloading_files import SecurityError
from gris_serving.security import warn_of_missing_protection
from gris_serving.slow_callers import handshake_options, keepalive_options
from gris_serving.telemetry import Telemetry
from gris_serving.tls import ServerTls, is_loopback, server_context
from pinot_connector import telemetry
from pinot_connector.channels import MAX_MESSAGE_BYTES
from pinot_connector.client import AsyncPrivateClient
from pinot_connector.errors import EngineError, ReleaseStoreFailed
from pinot_connector.release_store import ReleaseStore

# The client asks for one account unless another is named; the gateway always names one.
NOBODY = ("gateway",)

log = logging.getLogger(__name__)


class Gateway:
    """A gateway that is ready to serve. No request has been sent to services or engine yet.

    Args:
        configuration: A valid one.
        limits: The limits and time-outs; those that the configuration states count instead.

    Raises:
        SecurityError: A file cannot be used, or anyone could call the gateway.
    """

    def __init__(self, configuration: GatewayConfiguration, limits: GatewayLimits = DEFAULT_LIMITS) -> None:
        configuration.require_protected()
        self._configuration = configuration
        self._limits = configuration.timeouts.applied_to(limits)
        self._limiter = Limiter(configuration.limits.of_a_caller(), clock=time.monotonic, limits=self._limits)
        self._callers = Callers(configuration.identity, configuration.audiences)
        self._tls = None if configuration.tls is None else ServerTls(configuration.tls.files())
        configuration.dp.require_readable("dp")
        configuration.budget.require_readable("budget")
        store_keys_of(configuration.releases)
        connection_of(configuration.releases)
        self.face_addresses: dict[str, str] = {}
        """Where callers are served beside gRPC, once they are, by the keys of the configuration."""
        self.page_link: str | None = None
        """The link that opens the page once, where it is served by one."""
        self._face_tls: dict[str, ssl.SSLContext | None] = {}
        for name, settings in configuration.faces.items():
            require_libraries(name)
            tls = configuration.tls_of(settings)
            self._face_tls[name] = None if tls is None else server_context(tls.files())
        self._engine = engine_of(configuration.engine)

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    @asynccontextmanager
    async def serving(self, process_telemetry: Telemetry, drain_seconds: float = 0.0) -> AsyncIterator[str]:
        """Serve as the configuration says while the block runs, and yield the address.

        On leaving, the gateway reports NOT_SERVING and goes on for `drain_seconds`; then no new calls are taken, and
        those that have begun get the grace period of the limits.

        Args:
            process_telemetry: Where calls and health are recorded.
            drain_seconds: How long to go on as NOT_SERVING.

        Raises:
            ReleaseStoreFailed: The release store cannot be opened.
            SecurityError: The gateway cannot listen on the address.
        """
        configuration = self._configuration
        releases = await asyncio.to_thread(release_store_of, configuration)
        client = AsyncPrivateClient(
            dp=configuration.dp.to_address(),
            budget=configuration.budget.to_address(),
            account=NOBODY,
            engine=self._engine,
            confidence=configuration.confidence,
            timeouts=configuration.timeouts.of_a_question(),
            reserve_first=configuration.reserve_first,
            releases=releases,
        )
        offered = OfferedTables(self._engine.tables)
        questions = Questions(client, History(releases), self._limits, offered=offered)
        try:
            async with (
                _measured(releases, process_telemetry, self._limits),
                _without_old_receipts(releases, self._limits),
                self._served(questions, process_telemetry, drain_seconds) as address,
            ):
                yield address
        finally:
            await client.close()
            await questions.finish()
            await releases.close()

    @asynccontextmanager
    async def _served(
        self, questions: Questions, process_telemetry: Telemetry, drain_seconds: float
    ) -> AsyncIterator[str]:
        instrumentation, names = process_telemetry.instrumentation, (SERVICE_NAME, health.OVERALL)
        self._callers.start(instrumentation)
        admission = GatewayAdmission(self._callers, self._limiter, instrumentation, self._limits)
        server = grpc.aio.server(
            interceptors=(admission,),
            options=(
                *_options(self._limits),
                *connection_options(drain_seconds, grace_seconds=self._limits.slowest_call_seconds),
            ),
        )
        instrumented = instrumentation.before(server, levels=LOG_LEVELS)
        app_pb2_grpc.add_PrivateQueryServiceServicer_to_server(PrivateQueryServicer(questions), instrumented)
        served_health = health.Health()
        health_pb2_grpc.add_HealthServicer_to_server(served_health, server)
        if self._configuration.reflection:
            reflected = (SERVICE_NAME, health.SERVICE_NAME, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(reflected, server)
        address = self._bind(server)
        async with AsyncExitStack() as stack:
            upstream_health = stack.enter_context(self._watched_upstreams(served_health, process_telemetry))
            await server.start()
            faces = await stack.enter_async_context(
                self._served_faces(OwnCalls(questions, self._limiter, instrumentation))
            )
            served_health.report(names, serving=True)
            instrumentation.report("server", serving=True)
            watching = asyncio.create_task(upstream_health.watch())
            try:
                yield address
            finally:
                instrumentation.report("server", serving=False)
                grace_seconds = self._limits.grace_seconds
                await asyncio.gather(
                    drain_and_stop(
                        server, served_health, names, drain_seconds=drain_seconds, grace_seconds=grace_seconds
                    ),
                    _closed_later(faces, drain_seconds),
                )
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)

    @asynccontextmanager
    async def _served_faces(self, calls: OwnCalls) -> AsyncIterator[AsyncExitStack]:
        """Serve beside gRPC what the configuration says, until what is yielded is closed or the block ends."""
        async with AsyncExitStack() as serving:
            for name, settings in self._configuration.faces.items():
                admitting = self._admission_of_face(name, settings, calls)
                tls = self._face_tls[name]
                face = face_of(name, settings, tls, admitting, self._limits)
                address = await serving.enter_async_context(face.serving())
                self.face_addresses[name] = address
                if isinstance(admitting, PageAdmission):
                    self.page_link = admitting.link(address, is_secure=tls is not None)
            yield serving

    def _admission_of_face(self, name: str, settings: FaceSettings, calls: OwnCalls) -> FaceAdmission:
        own = self._configuration.limits.of_a_caller()
        requests = Limiter(own, clock=time.monotonic, limits=self._limits)
        of = (name, self._callers, requests, calls)
        if isinstance(settings, PageSettings):
            return PageAdmission(settings, *of)
        return FaceAdmission(*of)

    @contextmanager
    def _watched_upstreams(
        self, served_health: health.Health, process_telemetry: Telemetry
    ) -> Iterator[UpstreamHealth]:
        """Count questions and calls to the engine while the block runs, and yield what watches the upstreams."""
        configuration = self._configuration
        dp, budget = configuration.dp.to_address(), configuration.budget.to_address()
        upstream_health = UpstreamHealth(
            dp, budget, served_health, process_telemetry.instrumentation, self._limits
        )
        with ExitStack() as stack:
            stack.enter_context(telemetry.recorded_by(upstream_health))
            if process_telemetry.registry is not None:
                # Its library is loaded only where metrics are counted.
                from gris_gateway.metrics import QuestionMetrics  # noqa: PLC0415

                stack.enter_context(telemetry.recorded_by(QuestionMetrics(process_telemetry.registry)))
            yield upstream_health

    def _bind(self, server: grpc.aio.Server) -> str:
        listen = self._configuration.listen
        try:
            require_free(listen)
            if self._tls is None:
                if not is_loopback(listen):
                    warn_of_missing_protection(listen, ["tls"])
                port = server.add_insecure_port(listen)
            else:
                port = server.add_secure_port(listen, self._tls.of_a_port())
        except ListeningError as error:
            raise SecurityError(f"listen: cannot listen on {listen}: {error}") from None
        except RuntimeError:
            raise SecurityError(f"listen: cannot listen on {listen}") from None
        return f"{listen.rpartition(':')[0]}:{port}"


async def _closed_later(faces: AsyncExitStack, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await faces.aclose()


@asynccontextmanager
async def _measured(
    releases: ReleaseStore, process_telemetry: Telemetry, limits: GatewayLimits
) -> AsyncIterator[None]:
    """Count what the release store keeps while the block runs."""
    if process_telemetry.registry is None:
        yield
        return
    # Its library is loaded only where metrics are counted.
    from gris_gateway.metrics import ReleaseStoreMetrics  # noqa: PLC0415

    metrics = ReleaseStoreMetrics(process_telemetry.registry)

    async def measure() -> None:
        try:
            metrics.report(await releases.statistics())
        except ReleaseStoreFailed:
            metrics.report(None)

    async with _repeated(measure, limits.store_interval_seconds):
        yield


@asynccontextmanager
async def _without_old_receipts(releases: ReleaseStore, limits: GatewayLimits) -> AsyncIterator[None]:
    """Remove from the history what is too old while the block runs, also while nobody asks."""

    async def remove() -> None:
        try:
            await releases.remove_old_receipts()
        except ReleaseStoreFailed as error:
            fields = {"error": type(error).__name__}
            log.error(
                "Results that are too old could not be removed from the history.",
                extra={"event": "history.not_removed", "fields": fields},
            )

    async with _repeated(remove, limits.receipts_interval_seconds):
        yield


@asynccontextmanager
async def _repeated(work: Callable[[], Awaitable[None]], seconds: float) -> AsyncIterator[None]:
    """Do something at once, and again after so many seconds, while the block runs."""

    async def repeat() -> None:
        while True:
            await work()
            await asyncio.sleep(seconds)

    repeating = asyncio.create_task(repeat())
    try:
        yield
    finally:
        repeating.cancel()
        await asyncio.gather(repeating, return_exceptions=True)


def _options(limits: GatewayLimits) -> tuple[tuple[str, int], ...]:
    """Return gRPC's options of the server."""
    return (
        ("grpc.server.max_pending_requests", limits.pending_calls),
        ("grpc.server.max_pending_requests_hard_limit", limits.pending_calls),
        ("grpc.max_receive_message_length", limits.request_bytes),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.http2.lookahead_bytes", limits.unread_bytes),
        # It would let a fast sender send megabytes that nothing waits for.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.max_concurrent_streams", limits.connection_calls),
        *handshake_options(limits.handshake_seconds),
        *keepalive_options(limits.caller_timeout_seconds),
        ("grpc.so_reuseport", 0),
        # By default the connection of a client that pings more often than every five minutes is closed.
        ("grpc.http2.min_ping_interval_without_data_ms", 4000),
    )


def engine_of(choice: EngineChoice) -> ListingEngine:
    """Open the configured engine.

    Raises:
        SecurityError: An extra is not installed, or a file cannot be used.
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


def _pinot(pinot: Pinot) -> ListingEngine:
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
