"""The standard health service, `grpc.health.v1.Health`.

grpcio-health-checking has one, but there a watcher that leaves silences all others of the same name, and clients that
balance between replicas rely on the notice that one of them is about to end.
"""
# ruff: noqa: N802 - the names of the RPCs are the proto's

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gris_serving.listening import ListeningError, require_free
from gris_serving.reloading_files import SecurityError
from gris_serving.slow_callers import handshake_options

OVERALL = ""
"""The name under which the health of a whole process is asked for."""

SERVICE_NAME = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name

MAX_REQUEST_BYTES = 4096

_Context = grpc.aio.ServicerContext[Any, Any]


class Health(health_pb2_grpc.HealthServicer):
    """The health of each name, to be asked for or watched. A name that was never reported is unknown."""

    def __init__(self) -> None:
        self._serving: dict[str, bool] = {}
        self._withdrawn: frozenset[str] = frozenset()
        self._changed = asyncio.Event()
        self._ended = False

    def report(self, names: Iterable[str], *, serving: bool) -> None:
        """Report whether each name can serve; names that were withdrawn are no longer reported."""
        self._serving |= dict.fromkeys(set(names) - self._withdrawn, serving)
        self._notify()

    def withdraw(self, names: Iterable[str]) -> None:
        """Report for good that each name does not serve, whatever is reported later."""
        self._withdrawn |= frozenset(names)
        self._serving |= dict.fromkeys(self._withdrawn, False)
        self._notify()

    def end(self) -> None:
        """End all watches, so that the server need not wait for the watchers."""
        self._ended = True
        self._notify()

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: _Context
    ) -> health_pb2.HealthCheckResponse:
        """Return the health of a name now; NOT_FOUND if it is unknown."""
        if request.service not in self._serving:
            await context.abort(grpc.StatusCode.NOT_FOUND, "service: expected one that is served here")
        return self._response(request.service)

    async def Watch(
        self, request: health_pb2.HealthCheckRequest, _: _Context
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        """Send the health of a name now and whenever it changes."""
        sent: health_pb2.HealthCheckResponse | None = None
        while True:
            # Taken before the state is read, so that no change falls in between.
            changed = self._changed
            response = self._response(request.service)
            if response != sent:
                yield response
                sent = response
            if self._ended:
                return
            await changed.wait()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _response(self, name: str) -> health_pb2.HealthCheckResponse:
        kinds = health_pb2.HealthCheckResponse
        if name not in self._serving:
            return kinds(status=kinds.SERVICE_UNKNOWN)
        return kinds(status=kinds.SERVING if self._serving[name] else kinds.NOT_SERVING)


@asynccontextmanager
async def serving_health(health: Health, listen: str) -> AsyncIterator[str]:
    """Serve health in plain text on an address of its own, for probes that cannot speak TLS, while the block runs.

    Args:
        health: What is served.
        listen: HOST:PORT.

    Yields:
        The address.

    Raises:
        SecurityError: The server cannot listen on the address.
    """
    server = grpc.aio.server(
        options=(
            ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
            ("grpc.so_reuseport", 0),
            *handshake_options(),
        )
    )
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    try:
        require_free(listen)
        port = server.add_insecure_port(listen)
    except ListeningError as error:
        raise SecurityError(f"--health-listen: cannot listen on {listen}: {error}") from None
    except RuntimeError:
        raise SecurityError(f"--health-listen: cannot listen on {listen}") from None
    await server.start()
    try:
        yield f"{listen.rpartition(':')[0]}:{port}"
    finally:
        await server.stop(None)
