"""Alerts at a share of a limit: whom the configuration names hears of it, beside answers and never before them.

An alert is due when a charge leads from below the share to it, so that of many processes on one ledger the one whose
charge that was sends it, and none again after a restart. Where levels above an account count worst cases, what a charge
adds there is not in its outcome: each process compares with what it saw last.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any, TypeAlias

from budget_service.configuration.alerts import Alerts
from budget_service.ledger.outcomes import Charged, LevelStatus
from budget_service.ledger.values import Account, Unit
from budget_service.ledger.windows import datetime_of
from budget_service.server.settings import LiveSettings
from gris_serving.https_client import FetchError

# More are dropped: a hook that hangs must not fill the memory.
MOST_WAITING = 100
MOST_KNOWN = 20_000

Way: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Sends an alert, in bounded time; it raises if that fails."""

WAYS = ("url", "mail")
_Waiting: TypeAlias = asyncio.Queue[tuple[Way, Mapping[str, Any]]]

log = logging.getLogger(__name__)


class ShareAlerts:
    """Sends the alerts of one process, each way's one after the other. For one event loop."""

    def __init__(self, settings: LiveSettings, ways: Callable[[Alerts], Mapping[str, Way]]) -> None:
        self._settings = settings
        self._ways = ways
        # One that hangs keeps no other from its alerts.
        self._waiting = {name: _Waiting(MOST_WAITING) for name in WAYS}
        self._seen: OrderedDict[Hashable, int] = OrderedDict()

    def note(self, account: Account, charged: Charged) -> None:
        """Have an alert sent for each level that a charge has just led to the share; it waits for nothing."""
        configuration = self._settings.current.configuration
        if not configuration.alerts.are_wanted:
            return
        for level in charged.levels:
            is_worst = configuration.counts_worst_cases and level.depth < account.depth
            for unit in Unit:
                self._note(configuration.alerts, account.level(level.depth), level, unit, charged, is_worst)

    async def run(self) -> None:
        """Send what waits, until cancelled."""
        await asyncio.gather(*(_send_all(name, waiting) for name, waiting in self._waiting.items()))

    def _note(  # noqa: PLR0917
        self,
        alerts: Alerts,
        level: Account,
        status: LevelStatus,
        unit: Unit,
        charged: Charged,
        is_worst: bool,
    ) -> None:
        limit, spent = status.maximum.of(unit), status.spent.of(unit)
        share = Fraction(str(alerts.share)) * limit
        key = (level, status.purpose, unit, limit, status.window.start)
        before = spent - charged.charged.of(unit)
        if is_worst:
            before = min(before, self._seen.get(key, before))
        is_due = bool(limit) and before < share <= spent and self._seen.get(key, 0) < share
        # Only what has reached the share is kept, or has to be compared: a refund makes no second alert.
        if is_due or is_worst:
            self._seen[key] = max(spent, self._seen.pop(key, 0))
            while len(self._seen) > MOST_KNOWN:
                self._seen.popitem(last=False)
        if is_due:
            self._send(alerts, level, status, unit)

    def _send(self, alerts: Alerts, level: Account, status: LevelStatus, unit: Unit) -> None:
        end = status.window.end
        alert = {
            "account": level.text,
            **({"purpose": status.purpose} if status.purpose else {}),
            "unit": unit.value,
            "spent": status.spent.of(unit),
            "limit": status.maximum.of(unit),
            "share": alerts.share,
            "refreshes_at": None if end is None else datetime_of(end).isoformat(),
        }
        for name, way in self._ways(alerts).items():
            try:
                self._waiting[name].put_nowait((way, alert))
            except asyncio.QueueFull:
                _log_unsent(name, "queue")


async def _send_all(name: str, waiting: _Waiting) -> None:
    loop = asyncio.get_running_loop()
    sending, unsent = ThreadPoolExecutor(1, "gris-alerts"), 0
    try:
        while True:
            way, alert = await waiting.get()
            unsent = 1
            try:
                await loop.run_in_executor(sending, way, alert)
            except FetchError as error:
                _log_unsent(name, str(error))
            except Exception as error:
                # Its text may name an account.
                _log_unsent(name, type(error).__name__)
            unsent = 0
    finally:
        sending.shutdown(wait=False, cancel_futures=True)
        for _ in range(unsent + waiting.qsize()):
            _log_unsent(name, "stopped")


def _log_unsent(way: str, problem: str) -> None:
    fields = {"way": way, "problem": problem}
    log.warning("An alert was not sent.", extra={"event": "alert.not_sent", "fields": fields})
