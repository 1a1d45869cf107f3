"""The standard health service, fed by the pulse of the store."""

from __future__ import annotations

import logging

from grpc_health.v1 import health_pb2
from grpc_health.v1.health import aio as health

from budget_service.pulse import Pulse

OVERALL = ""

log = logging.getLogger(__name__)


async def watch(pulse: Pulse, servicer: health.HealthServicer, services: tuple[str, ...]) -> None:
    """Report SERVING while the store can serve, else NOT_SERVING; runs until it is cancelled."""
    was_serving: bool | None = None
    while True:
        await pulse.changed.wait()
        pulse.changed.clear()
        if pulse.is_serving is not was_serving:
            was_serving = pulse.is_serving
            log.info("the store %s", "can serve" if was_serving else "cannot serve")
            await report(servicer, services, serving=was_serving)


async def report(servicer: health.HealthServicer, services: tuple[str, ...], *, serving: bool) -> None:
    """Report the same of every service, in their order."""
    status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
    for service in services:
        await servicer.set(service, status)
