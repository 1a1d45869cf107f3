"""Health, fed by the pulse of the store."""

from __future__ import annotations

import logging
from collections.abc import Callable

from budget_service.pulse import Pulse

log = logging.getLogger(__name__)


async def watch(pulse: Pulse, report: Callable[[bool], None]) -> None:
    """Report whether the store can serve whenever that changes; runs until it is cancelled."""
    was_serving: bool | None = None
    while True:
        await pulse.changed.wait()
        pulse.changed.clear()
        if pulse.is_serving is not was_serving:
            was_serving = pulse.is_serving
            log.info("the store %s", "can serve" if was_serving else "cannot serve")
            report(was_serving)
