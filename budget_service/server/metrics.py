"""The ledger's own metrics: units by outcome, what administrators did, open reservations, and commits.

Labels are constants, never values that a client sent. Amounts are sums over all accounts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import Any

from gris_api.budget.v1 import budget_pb2
from gris_api.common.v1 import cost_pb2
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from budget_service.ledger.windows import SECOND, Microseconds
from budget_service.server.ledger import Ledger
from budget_service.stores.interface import StoreError
from gris_serving.instrumentation import CallRecorder
from gris_serving.metrics import SECONDS

INTERVAL_SECONDS = 5.0
# Open reservations are counted for the roots that were used last.
MAX_ROOTS = 1000
_REFUSALS = {"BUDGET_EXHAUSTED": "refused", "BUDGET_HELD": "held"}
# What administrators do to accounts, by method.
_ACTS = {
    "SetLimits": "set_limits",
    "RefundCharge": "refund",
    "CloseAccount": "close",
    "ReopenAccount": "reopen",
}
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class LedgerMetrics:
    """The metrics of one ledger."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._units = Counter(
            "gris_budget_units",
            "Units asked for, by operation (reserve, charge, release) and by what became of them: granted, refused "
            "(the budget is exhausted), held (it would fit if no reservation were open; counted at each retry), "
            "replayed (repeats without an effect), already_paid (free).",
            ("operation", "outcome", "unit"),
            registry=registry,
        )
        self._acts = Counter(
            "gris_budget_administrator_acts",
            "What administrators asked for, by act (set_limits, refund, close, reopen) "
            "and by what became of it: "
            "done, refused (for whatever reason), replayed (a repeat without an effect).",
            ("act", "outcome"),
            registry=registry,
        )
        self._open = Gauge(
            "gris_budget_open_reservations",
            f"Reservations that are open, of the {MAX_ROOTS} root accounts that this process served last.",
            registry=registry,
        )
        self._sizes = Histogram(
            "gris_budget_commit_requests",
            "Requests that were committed together.",
            buckets=SIZES,
            registry=registry,
        )
        self._seconds = Histogram(
            "gris_budget_commit_seconds", "How long commits took.", buckets=SECONDS, registry=registry
        )
        self._still = Gauge(
            "gris_budget_time_stands_still_seconds",
            "For how long the time of a root account will stand still because its store's clock was ahead once; the "
            "longest, as of each root's last change.",
            registry=registry,
        )
        self._roots: dict[str, None] = {}
        self._stands_still: dict[str, Microseconds] = {}

    def recorders(self) -> Mapping[str, CallRecorder]:
        """Return the recorder for each method that changes the ledger."""
        return {
            "ReserveBudget": _Units(
                self._units, "reserve", lambda request: [request.max_cost], "held", self._roots
            ),
            "UpdateBudget": _Units(self._units, "charge", _costs_of_charges, "charged", self._roots),
            "ReleaseReservation": _Units(self._units, "release", None, "returned", self._roots),
        }

    def administrator_recorders(self) -> Mapping[str, CallRecorder]:
        """Return the recorder for each method by which administrators change limits and accounts."""
        return {method: _Acts(self._acts, act) for method, act in _ACTS.items()}

    def committed(self, requests: int, seconds: float, stands_still: Mapping[str, Microseconds]) -> None:
        """Count one commit, and remember whose time stands still."""
        self._sizes.observe(requests)
        self._seconds.observe(seconds)
        if self._stands_still or any(stands_still.values()):
            known = {**self._stands_still, **stands_still}
            self._stands_still = {root: still for root, still in known.items() if still}
            self._still.set(max(self._stands_still.values(), default=0) / SECOND)

    async def follow(self, ledger: Ledger) -> None:
        """Update the number of open reservations regularly, until cancelled."""
        while True:
            # The failure detector reports a store that fails; until it answers, the number is the last one.
            with suppress(StoreError):
                self._open.set(await ledger.open_reservations(list(self._roots)))
            await asyncio.sleep(INTERVAL_SECONDS)


class _Acts:
    """Counts one act of administrators."""

    def __init__(self, acts: Counter, act: str) -> None:
        # Samples are there from the start, so that the first act is an increase.
        self._counters = {outcome: acts.labels(act, outcome) for outcome in ("done", "refused", "replayed")}

    def answered(self, _request: Any, response: Any) -> None:
        """Count what was done, now or before."""
        self._counters["replayed" if response.replayed else "done"].inc()

    def refused(self, _request: Any, _reason: str) -> None:
        """Count what was refused, or failed."""
        self._counters["refused"].inc()


class _Units:
    """Counts the units of one operation: what a request has `asked` for, and the field that says what was `given`."""

    def __init__(
        self,
        units: Counter,
        operation: str,
        asked: Callable[[Any], Iterable[cost_pb2.Cost]] | None,
        given: str,
        roots: dict[str, None],
    ) -> None:
        self._counters = {
            outcome: (
                units.labels(operation, outcome, "information"),
                units.labels(operation, outcome, "calls"),
            )
            for outcome in ("granted", "refused", "held", "replayed", "already_paid")
            if asked or outcome in ("granted", "replayed")
        }
        self._asked = asked
        self._given = attrgetter(given)
        self._roots = roots

    def answered(self, request: Any, response: Any) -> None:
        """Count units that were granted, replayed or free."""
        self._remember(request.account.path[0])
        if response.replayed:
            self._add("replayed", [self._given(response)])
        elif self._asked is not None and response.already_paid:
            self._add("already_paid", self._asked(request))
        else:
            self._add("granted", [self._given(response)])

    def refused(self, request: Any, reason: str) -> None:
        """Count units that an exhausted budget refused, or that others held."""
        if self._asked is not None and reason in _REFUSALS:
            self._add(_REFUSALS[reason], self._asked(request))

    def _add(self, outcome: str, costs: Iterable[cost_pb2.Cost]) -> None:
        information, calls = self._counters[outcome]
        for cost in costs:
            information.inc(cost.information)
            calls.inc(cost.calls)

    def _remember(self, root: str) -> None:
        if root not in self._roots:
            self._roots[root] = None
            if len(self._roots) > MAX_ROOTS:
                del self._roots[next(iter(self._roots))]


def _costs_of_charges(request: budget_pb2.UpdateBudgetRequest) -> list[cost_pb2.Cost]:
    return [request.cost, *[each.cost for each in request.further]]
