"""Reports what the failure detector finds to the health service."""

from __future__ import annotations

import logging
from collections.abc import Callable

from budget_service.server.failure_detector import FailureDetector

log = logging.getLogger(__name__)


async def watch(detector: FailureDetector, report: Callable[[bool, bool, bool], None]) -> None:
    """Report changes of the store's state, until cancelled.

    Args:
        detector: The failure detector of the store.
        report: Called with three flags: whether the store answers, whether the service can serve, and whether no damage
            of the ledger was met.
    """
    reported: tuple[bool, bool, bool] | None = None
    while True:
        await detector.changed.wait()
        detector.changed.clear()
        found = detector.answers, detector.is_serving, detector.is_sound
        if found != reported:
            reported = found
            answers, is_serving, is_sound = found
            fields = {"answers": answers, "is_serving": is_serving, "is_sound": is_sound}
            log.info(
                "The health of the store changed.", extra={"event": "store.health_changed", "fields": fields}
            )
            report(answers, is_serving, is_sound)
