"""Questions that are asked at once, and whose worst cases do not fit beside each other, through the gateway."""

from __future__ import annotations

import asyncio
import datetime
import time
from itertools import pairwise

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from gris_api.app.v1 import app_pb2

from pinot_connector.errors import BudgetHeld
from pinot_connector.rpc_errors import Service, error_of_rpc
from tests.support.gateways import GatewayWorld, stub_of
from tests.unit.gris_gateway.calls import TOP, all_held, client_of


async def test_many_large_panels_at_once_of_a_fresh_analyst_are_all_answered(gateway: GatewayWorld) -> None:
    """Thirty that may cost 201 of 3,000 units each: some wait for others, and nothing is left reserved."""
    days = [datetime.date(2019, 3, day) for day in range(1, 32)]
    async with client_of(gateway, gateway.analyst("panels")) as client:
        results = await asyncio.gather(
            *(client.top_k("feedback", "article_id", 1000, time_range=each) for each in pairwise(days))
        )
        level = (await client.remaining())[-1]
    charged = sum(result.charged.information for result in results)
    assert len({result.release_id for result in results}) == 30
    assert (charged, 0) == (level.spent.information, level.reserved.information)


async def test_a_caller_learns_before_the_deadline_that_the_budget_is_held(gateway: GatewayWorld) -> None:
    """With its own reason and a pause; the client of the connector makes a BudgetHeld of it, and retries nothing."""
    credentials = gateway.analyst("waits")
    async with all_held(gateway, credentials), gateway.channel(credentials) as channel:
        began = time.monotonic()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            async for _ in stub_of(channel).Ask(app_pb2.AskRequest(question=TOP), timeout=3):
                pass
        assert 1 < time.monotonic() - began < 3
    error = refused.value
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    metadata = dict(tuple(error.trailing_metadata() or ()))
    status = Status.FromString(bytes(metadata["grpc-status-details-bin"]))
    info, retry = ErrorInfo(), RetryInfo()
    assert status.details[0].Unpack(info)
    assert status.details[1].Unpack(retry)
    assert (info.domain, info.reason, info.metadata["unit"]) == ("gris.app", "BUDGET_HELD", "information")
    assert retry.retry_delay.ToMilliseconds() == 1000
    translated = error_of_rpc(Service.GATEWAY, error, "a:1")
    assert isinstance(translated, BudgetHeld)
    assert "not exhausted" in str(translated)


async def test_a_caller_who_leaves_while_the_question_waits_leaves_nothing(gateway: GatewayWorld) -> None:
    """The budget is whole as soon as the other question ends."""
    credentials = gateway.analyst("leaves")
    async with client_of(gateway, credentials) as client:
        async with all_held(gateway, credentials):
            asked = asyncio.ensure_future(client.ask(TOP))
            await asyncio.sleep(0.5)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        async with asyncio.timeout(20):
            while (level := (await client.remaining())[-1]).reserved.information:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    assert (0, 0) == (level.spent.information, level.reserved.information)
