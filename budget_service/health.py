"""The standard health service, fed by asking the store again and again."""

from __future__ import annotations

import asyncio
import logging

from grpc_health.v1 import health_pb2
from grpc_health.v1.health import aio as health

from budget_service.stores.interface import Store, StoreError

OVERALL = ""
INTERVAL_SECONDS = 1.0
TIMEOUT_SECONDS = 2.0

log = logging.getLogger(__name__)


async def watch(store: Store, servicer: health.HealthServicer, services: tuple[str, ...]) -> None:
    """Report SERVING while the store can serve, else NOT_SERVING; runs until it is cancelled."""
    was_serving: bool | None = None
    while True:
        serving = await _is_serving(store)
        if serving is not was_serving:
            log.info("the store %s", "can serve" if serving else "cannot serve")
            await report(servicer, services, serving=serving)
        was_serving = serving
        await asyncio.sleep(INTERVAL_SECONDS)


async def _is_serving(store: Store) -> bool:
    try:
        # Not wait_for: in Python 3.11 it swallows a cancellation that comes together with the result.
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await store.check()
    except (StoreError, TimeoutError):
        return False
    return True


async def report(servicer: health.HealthServicer, services: tuple[str, ...], *, serving: bool) -> None:
    """Report the same of every service, in their order."""
    status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
    for service in services:
        await servicer.set(service, status)
