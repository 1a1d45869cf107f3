"""Reports what the failure detector finds to the health service."""

from __future__ import annotations

import logging
from collections.abc import Callable

from budget_service.server.failure_detector import FailureDetector

log = logging.getLogger(__name__)


async def watch(detector: FailureDetector, report: Callable[[bool, bool], None]) -> None:
    """Report changes of the store's state, until cancelled.

    Args:
        detector: The failure detector of the store.
        report: Called with two flags: whether the store answers, and whether the service can serve.
    """
    reported: tuple[bool, bool] | None = None
    while True:
        await detector.changed.wait()
        detector.changed.clear()
        found = detector.answers, detector.is_serving
        if found != reported:
            reported = found
            answers, is_serving = found
            fields = {"answers": answers, "is_serving": is_serving}
            log.info(
                "The health of the store changed.", extra={"event": "store.health_changed", "fields": fields}
            )
            report(answers, is_serving)
