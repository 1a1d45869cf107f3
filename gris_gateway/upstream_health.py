"""Whether the gateway's upstreams can serve: each service by its own health check, the engine by its last answer.

Upstreams are reported by name and do not make the gateway itself NOT_SERVING: it says clearly what it cannot do and
still returns what is in its history, and no other gateway would find the same upstream any healthier.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import grpc
from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gris_gateway.limits import DEFAULT_LIMITS, GatewayLimits
from gris_serving.health import OVERALL, Health
from gris_serving.instrumentation import Instrumentation
from pinot_connector.channels import open_channel
from pinot_connector.endpoints import Address
from pinot_connector.telemetry import ANSWERED

DP, BUDGET, ENGINE = "dp_service", "budget_service", "engine"
# The outcomes of a call to an engine that say that it is not healthy; others are about one question.
ENGINE_FAILS = frozenset(("engine_unavailable", "incomplete_answer"))

SERVICE_NAME = app_pb2.DESCRIPTOR.services_by_name["PrivateQueryService"].full_name
_STORE = f"{budget_pb2.DESCRIPTOR.services_by_name['BudgetService'].full_name}/store"
_HEALTHY = health_pb2.HealthCheckResponse.SERVING


class UpstreamHealth:
    """Reports the health of each upstream, as `gris.app.v1.PrivateQueryService/UPSTREAM`, and to the metrics.

    Belongs to one event loop; no request is sent before `watch` runs.

    Args:
        dp: The address of dp_service.
        budget: The address of budget_service.
        health: Where the health of each upstream is reported.
        instrumentation: Counts it.
        limits: How often both services are checked, and how long they have to answer.
    """

    def __init__(
        self,
        dp: Address,
        budget: Address,
        health: Health,
        instrumentation: Instrumentation,
        limits: GatewayLimits = DEFAULT_LIMITS,
    ) -> None:
        self._services = {DP: (dp, OVERALL), BUDGET: (budget, _STORE)}
        self._health = health
        self._limits = limits
        self._instrumentation = instrumentation
        # An engine that was not asked yet counts as healthy.
        self._report(ENGINE, serving=True)

    async def watch(self) -> None:
        """Check both services for ever."""
        async with AsyncExitStack() as opened:
            checks = []
            for upstream, (address, name) in self._services.items():
                channel = await opened.enter_async_context(open_channel(address))
                checks.append((upstream, name, health_pb2_grpc.HealthStub(channel)))
            while True:
                await asyncio.gather(*(self._check(*each) for each in checks))
                await asyncio.sleep(self._limits.health_interval_seconds)

    def question(self, outcome: str, seconds: float) -> None:
        """Do nothing: a question that was not answered does not say which upstream failed."""

    def engine_call(self, engine: str, step: str, outcome: str) -> None:
        """Record how a call to the engine ended."""
        if outcome == ANSWERED or outcome in ENGINE_FAILS:
            self._report(ENGINE, serving=outcome == ANSWERED)

    def budget_wait(self, outcome: str, seconds: float) -> None:
        """Do nothing: budget that others hold says nothing of an upstream."""

    def release_lookup(self, outcome: str) -> None:
        """Do nothing: the release store is part of the gateway."""

    async def _check(self, upstream: str, name: str, stub: Any) -> None:
        check: Callable[..., Awaitable[health_pb2.HealthCheckResponse]] = stub.Check
        try:
            answer = await check(
                health_pb2.HealthCheckRequest(service=name), timeout=self._limits.health_timeout_seconds
            )
            serving = answer.status == _HEALTHY
        except grpc.RpcError:
            serving = False
        self._report(upstream, serving=serving)

    def _report(self, upstream: str, *, serving: bool) -> None:
        self._health.report((f"{SERVICE_NAME}/{upstream}",), serving=serving)
        self._instrumentation.report(upstream, serving=serving)
