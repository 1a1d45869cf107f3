"""Whether what the gateway asks is there: each service by its own health check, the engine by its last answer.

Parts are told by name and do not make the gateway itself unfit to serve: it says clearly what it cannot do, gives what
it has in its history, and no other gateway would find the same part any healthier.
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

from gris_serving.health import OVERALL, Health
from gris_serving.instrumentation import Instrumentation
from pinot_connector.channels import open_channel
from pinot_connector.endpoints import Address
from pinot_connector.telemetry import ANSWERED

LOOK_SECONDS = 2.0
ANSWER_SECONDS = 1.0

DP, BUDGET, ENGINE = "dp_service", "budget_service", "engine"
# Which outcomes of a call to an engine say that it cannot do its part; others are about one question.
ENGINE_FAILS = frozenset(("engine_unavailable", "incomplete_answer"))

SERVICE_NAME = app_pb2.DESCRIPTOR.services_by_name["PrivateQueryService"].full_name
_STORE = f"{budget_pb2.DESCRIPTOR.services_by_name['BudgetService'].full_name}/store"
_HEALTHY = health_pb2.HealthCheckResponse.SERVING


class UpstreamHealth:
    """Tells the health of each part, as `gris.app.v1.PrivateQueryService/PART`, and to the metrics.

    Belongs to one event loop; nothing is asked before `watch` runs.
    """

    def __init__(self, dp: Address, budget: Address, told: Health, instrumentation: Instrumentation) -> None:
        self._services = {DP: (dp, OVERALL), BUDGET: (budget, _STORE)}
        self._told = told
        self._instrumentation = instrumentation
        # Nothing speaks against an engine that was not asked yet.
        self._report(ENGINE, serving=True)

    async def watch(self) -> None:
        """Ask both services for ever."""
        async with AsyncExitStack() as opened:
            asked = []
            for part, (address, name) in self._services.items():
                channel = await opened.enter_async_context(open_channel(address))
                asked.append((part, name, health_pb2_grpc.HealthStub(channel)))
            while True:
                await asyncio.gather(*(self._look(*each) for each in asked))
                await asyncio.sleep(LOOK_SECONDS)

    def question(self, outcome: str, seconds: float) -> None:
        """Nothing: a question that was not answered does not say which part failed."""

    def engine_call(self, engine: str, step: str, outcome: str) -> None:
        """Note how a call to the engine ended."""
        if outcome == ANSWERED or outcome in ENGINE_FAILS:
            self._report(ENGINE, serving=outcome == ANSWERED)

    async def _look(self, part: str, name: str, stub: Any) -> None:
        check: Callable[..., Awaitable[health_pb2.HealthCheckResponse]] = stub.Check
        try:
            answer = await check(health_pb2.HealthCheckRequest(service=name), timeout=ANSWER_SECONDS)
            serving = answer.status == _HEALTHY
        except grpc.RpcError:
            serving = False
        self._report(part, serving=serving)

    def _report(self, part: str, *, serving: bool) -> None:
        self._told.report((f"{SERVICE_NAME}/{part}",), serving=serving)
        self._instrumentation.report(part, serving=serving)
