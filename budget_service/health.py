"""Health, fed by asking the store again and again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from budget_service.stores.interface import Store, StoreError

INTERVAL_SECONDS = 1.0
TIMEOUT_SECONDS = 2.0

log = logging.getLogger(__name__)


async def watch(store: Store, report: Callable[[bool], None]) -> None:
    """Report whether the store can serve whenever that changes; runs until it is cancelled."""
    was_serving: bool | None = None
    while True:
        serving = await _is_serving(store)
        if serving is not was_serving:
            log.info("the store %s", "can serve" if serving else "cannot serve")
            report(serving)
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
