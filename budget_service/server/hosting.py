"""A running server: the budget service, its health and, if wanted, reflection, on one port."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import grpc
from gris_api.budget.v1 import admin_pb2_grpc, budget_pb2_grpc, regions_pb2_grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from budget_service.regions.lease_maintenance import LeaseMaintenance
from budget_service.server.actors import actor_of
from budget_service.server.admin_service import MAX_REQUEST_BYTES as ADMIN_REQUEST_BYTES
from budget_service.server.admin_service import SERVICE_NAME as ADMIN_SERVICE_NAME
from budget_service.server.admin_service import BudgetAdminService
from budget_service.server.health import watch
from budget_service.server.home_client import Caller
from budget_service.server.ledger import Ledger
from budget_service.server.lending_service import SERVICE_NAME as LENDING_NAME
from budget_service.server.lending_service import RegionService
from budget_service.server.limit_cache import LimitCache
from budget_service.server.regional_service import RegionalBudgetService
from budget_service.server.request_runner import RequestRunner
from budget_service.server.rpc_errors import DOMAIN, LOG_LEVELS
from budget_service.server.service import (
    MAX_REQUEST_BYTES,
    MAX_RESPONSE_BYTES,
    SERVICE_NAME,
    BudgetService,
    SpendingService,
)
from budget_service.server.settings import LiveSettings
from budget_service.tuning import DEFAULTS, Tuning
from gris_serving import health
from gris_serving.authorisation import Methods, Role, methods_of
from gris_serving.draining import connection_options, drain_and_stop
from gris_serving.instrumentation import NOTHING, CallRecorder, Instrumentation
from gris_serving.listening import ListeningError
from gris_serving.options import checked_address
from gris_serving.reloading_files import SecurityError
from gris_serving.security import Security, SecurityOptions
from gris_serving.slow_callers import handshake_options

GRACE_SECONDS = 5.0
STOP_AGAIN_SECONDS = 0.1
SERVICES = (SERVICE_NAME, health.OVERALL)
STORE = f"{SERVICE_NAME}/store"
"""The health check's name of the store: whether it answers now."""
LEDGER = f"{SERVICE_NAME}/ledger"
"""The health check's name of what the store holds: SERVING as long as no damage was met."""
REGION = f"{SERVICE_NAME}/region"
"""The health check's name of a region's ledger: SERVING unless the home has found that another copy of it goes on."""
ALIVE = f"{SERVICE_NAME}/alive"
"""The health check's name of the process: SERVING as long as it can answer, whatever its store does."""

# How many calls may wait to be accepted. By default gRPC cancels calls at random from 1000 on, without a reason.
MAX_PENDING_CALLS = 100_000

# Every request of the service that can be granted fits into it, so that none of them takes another round trip.
UNREAD_BYTES = 16 * 1024

# How many calls of one connection are accepted at a time: HTTP/2 leaves further ones with their client. Calls that were
# accepted are served in the order in which they came, so those of one connection must not be many. It is more than
# what is committed together.
CALLS_OF_A_CONNECTION = 64

OPTIONS = (
    ("grpc.max_concurrent_streams", CALLS_OF_A_CONNECTION),
    # Else a call that has been answered counts until this process has forgotten it, and a client that begins the next
    # one meanwhile, as it may, is refused.
    ("grpc.http.overload_protection", 0),
    ("grpc.server.max_pending_requests", MAX_PENDING_CALLS),
    ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING_CALLS),
    # By default gRPC disconnects clients that send keepalive pings more often than every five minutes.
    ("grpc.http2.min_ping_interval_without_data_ms", 4000),
    ("grpc.max_send_message_length", MAX_RESPONSE_BYTES),
    # How much of a request is taken before anything waits for it. By default that grows with a caller's speed.
    ("grpc.http2.lookahead_bytes", UNREAD_BYTES),
    ("grpc.http2.bdp_probe", 0),
    *handshake_options(),
)

_SPEND = ("ReserveBudget", "UpdateBudget", "ReleaseReservation")
_ADMIN = (
    "SetLimits",
    "ReadJournal",
    "VerifyLedger",
    "TrimJournal",
    "BackUpLedger",
    "BeginCurrency",
    "ResumeClock",
    "RefundCharge",
    "CloseAccount",
    "ReopenAccount",
)
METHODS = Methods(
    DOMAIN,
    {
        # A role of its own: what a region reports is counted, whatever the limit.
        **methods_of(LENDING_NAME, ("BorrowBudget", "ReportCharges", "ReturnBudget"), Role.REGION),
        **methods_of(SERVICE_NAME, _SPEND, Role.SPEND),
        **methods_of(SERVICE_NAME, ("CheckBudget", "GetBudget"), Role.READ),
        **methods_of(ADMIN_SERVICE_NAME, _ADMIN, Role.ADMIN),
    },
)
OPEN = Security(SecurityOptions(), METHODS)


class RegionParts(Protocol):
    """What makes a server one of a region."""

    @property
    def maintenance(self) -> LeaseMaintenance:
        """The region, with its background work."""

    @property
    def home(self) -> Caller:
        """Its connection to the home."""


class ListenError(Exception):
    """The server cannot listen on the address."""


def new_server(
    *,
    interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
    drain_seconds: float = 0.0,
    request_bytes: int = MAX_REQUEST_BYTES,
) -> grpc.aio.Server:
    """Return a server without services.

    Args:
        interceptors: What each call passes through.
        drain_seconds: How long the server will be drained before it stops.
        request_bytes: The largest request that is read; gRPC refuses a larger one before it is in memory.
    """
    options = (
        *OPTIONS,
        *connection_options(drain_seconds),
        ("grpc.max_receive_message_length", request_bytes),
        # Two services on one port would get each other's calls.
        ("grpc.so_reuseport", 0),
    )
    return grpc.aio.server(interceptors=interceptors, options=options)


@asynccontextmanager
async def serving(
    ledger: Ledger,
    settings: LiveSettings,
    listen: str,
    *,
    with_reflection: bool = False,
    server: grpc.aio.Server | None = None,
    security: Security = OPEN,
    instrumentation: Instrumentation = NOTHING,
    recorders: Mapping[str, CallRecorder] = MappingProxyType({}),
    drain_seconds: float = 0.0,
    health_service: health.Health | None = None,
    tuning: Tuning = DEFAULTS,
    region: RegionParts | None = None,
    lending_counts: Counter[str] | None = None,
) -> AsyncIterator[str]:
    """Serve the budget service, its health and, if wanted, reflection.

    On leaving, the service reports NOT_SERVING and goes on for `drain_seconds`. Then it takes no new calls, running
    ones get GRACE_SECONDS, and every commit is finished. The store stays open.

    Args:
        ledger: The ledger. Its failure detector runs as long as the server.
        settings: The configuration and ticket keys in force.
        listen: HOST:PORT; port 0 takes any free one.
        with_reflection: Whether clients may list the services.
        server: A server that has not been started; by default a `new_server` without drain.
        security: TLS and authorisation.
        instrumentation: Makes metrics, spans and log events of the calls.
        recorders: Further metrics, by method.
        drain_seconds: How long to go on after NOT_SERVING; `server` must be made with the same.
        health_service: The health, if others serve it too.
        tuning: Bounds of the service.
        region: The leases of a region, if this is one; else this may be the home of regions.
        lending_counts: Counts what is lent.

    Yields:
        The address it listens on.

    Raises:
        ListenError: The server cannot listen on the address.
    """
    server = server or new_server()
    calls = RequestRunner(ledger.detector, tuning)
    instrumented = instrumentation.before(server, recorders, levels=LOG_LEVELS)
    service: SpendingService
    if region is not None:
        service = RegionalBudgetService(region.maintenance, region.home, settings, calls)
    else:
        limits = LimitCache(ledger, settings)
        service = BudgetService(ledger, settings, calls, tuning, limits)
        lending = RegionService(limits, settings, calls, regions_of=security.regions, counts=lending_counts)
        regions_pb2_grpc.add_RegionServiceServicer_to_server(lending, instrumented)
    budget_pb2_grpc.add_BudgetServiceServicer_to_server(service, instrumented)
    health_service = health_service or health.Health()
    _add_health(server, health_service, with_reflection=with_reflection)
    address = _bind(server, listen, security)

    report = _reporting(service, health_service, instrumentation)
    report(False, False, True)
    health_service.report((ALIVE,), serving=True)
    await server.start()
    instrumentation.report("server", serving=True)
    watchers = [ledger.detector.watch(), ledger.detector.keep_checking(), watch(ledger.detector, report)]
    if region is not None:
        watchers.append(_report_copy(region.maintenance.region.copied, health_service))
    watching = [asyncio.create_task(each) for each in watchers]
    try:
        yield address
    finally:
        instrumentation.report("server", serving=False)
        # The failure detector runs to the end: calls go on meanwhile.
        await drain_and_stop(
            server, health_service, SERVICES, drain_seconds=drain_seconds, grace_seconds=GRACE_SECONDS
        )
        for each in watching:
            await cancelled(each)
        await calls.finish()


def _reporting(
    service: SpendingService, health_service: health.Health, instrumentation: Instrumentation
) -> Callable[[bool, bool, bool], None]:
    def report(answers: bool, serving: bool, sound: bool) -> None:
        # A store that was away may have been set back to an earlier state meanwhile.
        service.forget_limits()
        health_service.report((STORE,), serving=answers)
        health_service.report((LEDGER,), serving=sound)
        health_service.report(SERVICES, serving=serving)
        instrumentation.report("store", serving=answers)
        instrumentation.report("ledger", serving=sound)

    return report


async def _report_copy(copied: asyncio.Event, health_service: health.Health) -> None:
    health_service.report((REGION,), serving=True)
    await copied.wait()
    health_service.report((REGION,), serving=False)


def _add_health(server: grpc.aio.Server, service: health.Health, *, with_reflection: bool) -> None:
    health_pb2_grpc.add_HealthServicer_to_server(service, server)
    if with_reflection:
        reflection.enable_server_reflection(
            (SERVICE_NAME, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )


@asynccontextmanager
async def administering(
    ledger: Ledger,
    settings: LiveSettings,
    listen: str,
    backups: Path | None = None,
    *,
    server: grpc.aio.Server | None = None,
    security: Security = OPEN,
    instrumentation: Instrumentation = NOTHING,
    recorders: Mapping[str, CallRecorder] = MappingProxyType({}),
    tuning: Tuning = DEFAULTS,
) -> AsyncIterator[str]:
    """Serve the administrator's service on an address of its own; arguments as in `serving`.

    A ledger in SQLite may be copied to the folder `backups`. Changes are refused while the ledger's failure detector,
    which `serving` runs, finds that the store must not be used. Reads are not refused: they help to repair it.
    """
    server = server or new_server(request_bytes=ADMIN_REQUEST_BYTES)
    changes = RequestRunner(ledger.detector, tuning, names_damage=True)
    readings = RequestRunner(None, tuning, names_damage=True)
    service = BudgetAdminService(
        ledger,
        settings,
        changes,
        readings,
        actor_of=partial(actor_of, security),
        backups=backups,
        tuning=tuning,
    )
    admin_pb2_grpc.add_BudgetAdminServiceServicer_to_server(
        service, instrumentation.before(server, recorders)
    )
    address = _bind(server, listen, security)
    await server.start()
    try:
        yield address
    finally:
        await server.stop(GRACE_SECONDS)


def split_address(listen: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT, or raise ListenError."""
    try:
        host, _, port = checked_address(listen).rpartition(":")
    except ValueError as error:
        raise ListenError(f"{listen!r}: {error}") from None
    return host, int(port)


def _bind(server: grpc.aio.Server, listen: str, security: Security) -> str:
    host, _ = split_address(listen)
    try:
        return f"{host}:{security.bind(server, listen)}"
    except SecurityError as error:
        raise ListenError(str(error)) from None
    except ListeningError as error:
        raise ListenError(f"cannot listen on {listen}: {error}") from None
    except RuntimeError:
        raise ListenError(f"cannot listen on {listen}") from None


async def cancelled(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait until it is done."""
    # More than once: redis-py loses a cancellation that comes while it takes a connection from its pool.
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=STOP_AGAIN_SECONDS)
