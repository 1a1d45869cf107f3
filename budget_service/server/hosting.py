"""A running server: the budget service, its health and, if wanted, reflection, on one port."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import grpc
from gris_api.budget.v1 import admin_pb2_grpc, budget_pb2_grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from budget_service.server.admin_service import SERVICE_NAME as ADMIN_SERVICE_NAME
from budget_service.server.admin_service import BudgetAdminService
from budget_service.server.failure_detector import FailureDetector
from budget_service.server.health import watch
from budget_service.server.request_runner import RequestRunner
from budget_service.server.rpc_errors import DOMAIN
from budget_service.server.service import MAX_MESSAGE_BYTES, SERVICE_NAME, BudgetService
from budget_service.server.settings import LiveSettings
from budget_service.stores.interface import Store
from budget_service.tuning import DEFAULTS, Tuning
from gris_serving import health
from gris_serving.authorisation import Methods, Role, methods_of
from gris_serving.draining import connection_options, drain_and_stop
from gris_serving.instrumentation import NOTHING, CallRecorder, Instrumentation
from gris_serving.options import checked_address
from gris_serving.reloading_files import SecurityError
from gris_serving.security import Security, SecurityOptions

# Of a call only five small objects of gRPC's own are left that refer to one another, so that there is little to look
# for; as many new objects as this are looked at in a few milliseconds.
OBJECTS_BEFORE_COLLECTION = 20_000

GRACE_SECONDS = 5.0
STOP_AGAIN_SECONDS = 0.1
SERVICES = (SERVICE_NAME, health.OVERALL)
STORE = f"{SERVICE_NAME}/store"
"""The health check's name of the store: whether it answers at this moment."""
ALIVE = f"{SERVICE_NAME}/alive"
"""The health check's name that serves as long as the process can answer, whatever its store does."""

# So many calls may wait to be taken up. By default gRPC cancels calls at random from 1000 on, without a reason.
MAX_PENDING_CALLS = 100_000

OPTIONS = (
    ("grpc.server.max_pending_requests", MAX_PENDING_CALLS),
    ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING_CALLS),
    # By default a client that asks more often than every five minutes whether this lives is sent away.
    ("grpc.http2.min_ping_interval_without_data_ms", 4000),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)

_SPEND = ("ReserveBudget", "UpdateBudget", "ReleaseReservation")
_ADMIN = (
    "SetLimits",
    "ListCharges",
    "GetUsageReport",
    "VerifyLedger",
    "SealJournal",
    "BeginCurrency",
    "WithdrawCurrency",
    "ResumeClock",
    "RefundCharge",
    "GetStatus",
)
METHODS = Methods(
    DOMAIN,
    {
        **methods_of(SERVICE_NAME, _SPEND, Role.SPEND),
        **methods_of(SERVICE_NAME, ("CheckBudget", "GetBudget"), Role.READ),
        **methods_of(ADMIN_SERVICE_NAME, _ADMIN, Role.ADMIN),
    },
)
OPEN = Security(SecurityOptions(), METHODS)


class ListenError(Exception):
    """The address cannot be listened on."""


def spare_the_collector() -> None:
    """Take what is loaded for good out of Python's garbage collection, and let it look at the rest less often.

    It costs a charge a tenth of its time otherwise. Call it once for the process, when everything is imported.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION)


def new_server(
    *,
    shares_port: bool = False,
    interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
    drain_seconds: float = 0.0,
) -> grpc.aio.Server:
    """Return a server with nothing on it yet, that is drained for so long in the end.

    Only workers of one service share a port: two services on one would share its calls by chance.
    """
    options = (*OPTIONS, *connection_options(drain_seconds), ("grpc.so_reuseport", int(shares_port)))
    return grpc.aio.server(interceptors=interceptors, options=options)


@asynccontextmanager
async def serving(
    store: Store,
    settings: LiveSettings,
    listen: str,
    *,
    with_reflection: bool = False,
    server: grpc.aio.Server | None = None,
    security: Security = OPEN,
    instrumentation: Instrumentation = NOTHING,
    recorders: Mapping[str, CallRecorder] = MappingProxyType({}),
    drain_seconds: float = 0.0,
    detector: FailureDetector | None = None,
    tuning: Tuning = DEFAULTS,
) -> AsyncIterator[str]:
    """Serve `store` on `listen` (HOST:PORT, port 0: any free one) and give the address; raises ListenError.

    `server` is one that has not been started, by default a `new_server`; `security` says over what line it listens.
    A `detector` of the store that others look at, too, is followed here.

    On leaving, the service reports NOT_SERVING and goes on for `drain_seconds` (which the server must know, too); then
    no new calls are taken, those that have begun get GRACE_SECONDS, and every commit is finished. The store stays open.
    """
    server = server or new_server()
    detector = detector or FailureDetector(store)
    calls = RequestRunner(detector, tuning)
    service = BudgetService(store, settings, calls, tuning)
    health_service = health.Health()
    budget_pb2_grpc.add_BudgetServiceServicer_to_server(service, instrumentation.before(server, recorders))
    health_pb2_grpc.add_HealthServicer_to_server(health_service, server)
    if with_reflection:
        reflection.enable_server_reflection(
            (SERVICE_NAME, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )
    address = _bind(server, listen, security)

    def report(answers: bool, serving: bool) -> None:
        # A store that was away may have been set back meanwhile.
        service.forget_limits()
        health_service.report((STORE,), serving=answers)
        health_service.report(SERVICES, serving=serving)
        instrumentation.report("store", serving=answers)

    report(False, False)
    health_service.report((ALIVE,), serving=True)
    await server.start()
    instrumentation.report("server", serving=True)
    followers = (detector.watch(), detector.check_again_and_again(), watch(detector, report))
    following = [asyncio.create_task(each) for each in followers]
    try:
        yield address
    finally:
        instrumentation.report("server", serving=False)
        # The store is followed to the end: calls go on meanwhile.
        await drain_and_stop(
            server, health_service, SERVICES, drain_seconds=drain_seconds, grace_seconds=GRACE_SECONDS
        )
        for each in following:
            await _stop(each)
        await calls.finish()


@asynccontextmanager
async def administering(
    store: Store,
    settings: LiveSettings,
    listen: str,
    archive: Path | None = None,
    *,
    server: grpc.aio.Server | None = None,
    security: Security = OPEN,
    instrumentation: Instrumentation = NOTHING,
    detector: FailureDetector,
    tuning: Tuning = DEFAULTS,
) -> AsyncIterator[str]:
    """Serve the administrator's service for `store` on an address of its own, as `serving` does the other.

    Sealed journals may be moved to the folder `archive`. What changes the ledger is refused while its `detector`, which
    `serving` follows, says that it must not be used; what only reads is not: whoever mends it has to look at it.
    """
    server = server or new_server()
    changes, readings = RequestRunner(detector, tuning), RequestRunner(None, tuning)
    service = BudgetAdminService(store, settings, changes, readings, archive=archive, tuning=tuning)
    admin_pb2_grpc.add_BudgetAdminServiceServicer_to_server(service, instrumentation.before(server))
    address = _bind(server, listen, security)
    await server.start()
    try:
        yield address
    finally:
        await server.stop(GRACE_SECONDS)
        await changes.finish()
        await readings.finish()


def split_address(listen: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT; raises ListenError."""
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
    except RuntimeError:
        raise ListenError(f"cannot listen on {listen}") from None


async def _stop(task: asyncio.Task[None]) -> None:
    # More than once: redis-py loses a cancellation that comes while it takes a connection from its pool.
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=STOP_AGAIN_SECONDS)
