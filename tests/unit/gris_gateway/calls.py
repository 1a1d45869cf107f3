"""Calls of a gateway, and how they end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from gris_api.common.v1 import cost_pb2

from pinot_connector import AsyncGatewayClient, Credentials, Endpoint, Timeouts
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.questions import structured_question
from tests.support.gateways import GatewayWorld

TOP = structured_question("feedback", "article_id", k=10)


async def ended(call: Any) -> grpc.StatusCode:
    """Return how a call ends."""
    try:
        async for _ in call:
            pass
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def client_of(gateway: GatewayWorld, credentials: Credentials) -> AsyncGatewayClient:
    """Return a client of the gateway."""
    return AsyncGatewayClient(Endpoint(gateway.address, credentials))


@asynccontextmanager
async def all_held(gateway: GatewayWorld, credentials: Credentials) -> AsyncIterator[None]:
    """Hold all of an analyst's budget while the block runs."""
    async with client_of(gateway, credentials) as client:
        unit_id = (await client.explain(TOP)).worst_case_cost.unit_id
        path = (await client.remaining())[-1].path
    calls = BudgetServiceClient(gateway.budget, path, Timeouts())
    try:
        cost = cost_pb2.Cost(information=3000, calls=1, unit_id=unit_id)
        held = (await calls.reserve(cost, "another question")).reservation_id
        yield
        await calls.cancel(held)
    finally:
        await calls.close()
