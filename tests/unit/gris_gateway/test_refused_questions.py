"""A question that is not answered has an id: its own, that of the call, or a new one."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RequestInfo
from gris_api.app.v1 import app_pb2
from grpc_status import rpc_status

from pinot_connector import Credentials, dbapi, telemetry
from pinot_connector.errors import (
    BudgetExhausted,
    InvalidQuestion,
    RefusedByPolicy,
)
from pinot_connector.questions import structured_question
from tests.support.gateways import GatewayWorld, stub_of
from tests.support.pki import email
from tests.unit.gris_gateway.calls import TOP, client_of


@pytest.fixture
def poor(gateway: GatewayWorld) -> Credentials:
    """Return the certificate of somebody whose budget holds next to nothing."""
    return gateway.authority.client(email("poor@example.org"), file="poor")


def asked(request_id: str = "", question: Any = TOP) -> app_pb2.AskRequest:
    """Return a question as it is sent."""
    return app_pb2.AskRequest(question=question, request_id=request_id)


async def test_an_application_names_its_request(gateway: GatewayWorld, poor: Credentials) -> None:
    """The id is that of the question, or else of the call; a refusal of an id does not take its place."""
    async with client_of(gateway, poor) as client:
        with telemetry.request_id("by-the-call"), pytest.raises(BudgetExhausted) as of_call:
            await client.ask(TOP)
        for _ in range(2):
            with pytest.raises(BudgetExhausted) as of_question:
                await client.ask(TOP, request_id="by the question")
        with pytest.raises(InvalidQuestion) as unusable:
            await client.ask(TOP, request_id="no\nid")
    assert ("by-the-call", "by the question") == (of_call.value.request_id, of_question.value.request_id)
    assert unusable.value.request_id not in ("", "no\nid")


async def test_a_question_that_was_refused_is_answered_under_its_id_once_it_can_be(
    gateway: GatewayWorld, ana: Credentials
) -> None:
    """The refusal was no result."""
    wrong = structured_question("feedback", "no_such_column", k=10)
    async with client_of(gateway, gateway.analyst()) as client:
        with pytest.raises(RefusedByPolicy) as refused:
            await client.ask(wrong, request_id="again")
        assert "again" == refused.value.request_id
        assert (await client.ask(TOP, request_id="again")).rows


async def test_every_client_sees_the_id(gateway: GatewayWorld, poor: Credentials) -> None:
    """Go and Node read it in google.rpc.RequestInfo; the DB-API has it in its message."""
    async with gateway.channel(poor) as channel:
        call = stub_of(channel).Ask(asked("by hand"))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call.read()
    info, status = RequestInfo(), rpc_status.from_call(refused.value)  # type: ignore[arg-type]  # as rpc_errors does
    assert status is not None
    assert any(each.Unpack(info) for each in status.details)
    assert "by hand" == info.request_id

    def read() -> str:
        connection = dbapi.connect(f"gris://{gateway.address}", credentials=poor)
        with closing(connection), pytest.raises(dbapi.Error) as failed:
            connection.cursor().execute(
                "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY 1 ORDER BY 2 DESC LIMIT 9"
            )
        return str(failed.value)

    assert " (request " in await asyncio.to_thread(read)
