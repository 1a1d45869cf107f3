"""The examples in the docstrings of the gateway clients hold."""

from __future__ import annotations

import pytest

from pinot_connector import AsyncGatewayClient, Endpoint, GatewayClient
from pinot_connector.questions import structured_question
from tests.gateway.conftest import GatewayWorld
from tests.support.docstring_examples import FRONT_DOOR, run_examples


@pytest.mark.parametrize("name", FRONT_DOOR)
async def test_the_examples_of_the_sync_client_hold(gateway: GatewayWorld, name: str) -> None:
    """They run as they stand, in an account of their own."""
    with GatewayClient(Endpoint(gateway.address, gateway.analyst())) as client:
        assert await run_examples(
            getattr(GatewayClient, name), client=client, structured_question=structured_question
        )


@pytest.mark.parametrize("name", [name for name in FRONT_DOOR if name in vars(AsyncGatewayClient)])
async def test_the_examples_of_the_async_client_hold(gateway: GatewayWorld, name: str) -> None:
    """They run as they stand, with their `await`."""
    async with AsyncGatewayClient(Endpoint(gateway.address, gateway.analyst())) as client:
        assert await run_examples(
            getattr(AsyncGatewayClient, name), client=client, structured_question=structured_question
        )
