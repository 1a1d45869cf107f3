"""Requests for more budget through a gateway: in the name of the caller, for its own account or a level above it."""

from __future__ import annotations

from typing import Any

import pytest
from gris_api.app.v1 import app_pb2

from pinot_connector import AsyncGatewayClient, Credentials, Endpoint
from pinot_connector.errors import InvalidQuestion, ServiceRefused
from tests.gateway.calls import client_of
from tests.gateway.conftest import GatewayWorld


def asked(**fields: Any) -> app_pb2.RequestBudgetRequest:
    """Return a request for more."""
    given: dict[str, Any] = {"information": 4000, "calls": 400, "reason": "audit", "request_id": "more"}
    return app_pb2.RequestBudgetRequest(**(given | fields))


async def test_a_caller_asks_once_and_changes_nothing(gateway: GatewayWorld) -> None:
    """A retry is the same request, and a second one has to wait; a level above has its own."""
    async with client_of(gateway, gateway.analyst("asker")) as client:
        before = await client.remaining()
        first = await client.request_budget(asked())
        assert first == await client.request_budget(asked())
        with pytest.raises(InvalidQuestion, match="as many requests for another limit"):
            await client.request_budget(asked(request_id="second"))
        above = asked(path=["app", "acme"], request_id="above", information=10**9)
        assert first != await client.request_budget(above)
        assert before == await client.remaining()
    async with client_of(gateway, gateway.analyst()) as other:
        # Ids belong to the account.
        assert first != await other.request_budget(asked(information=5000))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"path": ["app", "globex"]}, "path"),
        ({"information": -1}, "information"),
        ({"reason": "a\u202eb"}, "reason"),
        ({"reason": ""}, "reason"),
        ({"request_id": ""}, "request_id"),
    ],
)
async def test_what_is_wrong_is_named(gateway: GatewayWorld, fields: dict[str, Any], field: str) -> None:
    """By the field of the request."""
    async with client_of(gateway, gateway.analyst()) as client:
        with pytest.raises(InvalidQuestion) as refused:
            await client.request_budget(asked(**fields))
    assert field == refused.value.field


async def test_who_has_no_name_asks_for_nothing(gateway: GatewayWorld) -> None:
    """Nobody could tell whether who approves it has asked."""
    async with client_of(gateway, gateway.by_token(org="globex")) as client:
        with pytest.raises(InvalidQuestion, match=r"authorization: .*\(sub\)"):
            await client.request_budget(asked())


async def test_nobody_asks_for_others(gateway: GatewayWorld, ana: Credentials) -> None:
    """An account that the caller may not name is out of reach."""
    named = Endpoint(gateway.address, ana)
    async with AsyncGatewayClient(named, account="app/acme/bob") as client:
        with pytest.raises(ServiceRefused) as refused:
            await client.request_budget(asked())
    assert "ACCOUNT_OUT_OF_REACH" == refused.value.reason
