"""A question that had no connection to be sent by was not charged, and nobody says that it may have been."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from gris_api.common.v1 import cost_pb2

from gris_cli.app import run
from gris_gateway.faces.mcp.failures import failure_of
from gris_gateway.faces.page.asking import Problem
from pinot_connector import dbapi
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.channels import Timeouts
from pinot_connector.dbapi.errors import dbapi_error
from pinot_connector.errors import GrisError, OutcomeUnknown, ServiceUnavailable
from pinot_connector.gateway_client import AsyncGatewayClient, gateway_address
from pinot_connector.questions import structured_question

QUESTION = structured_question("feedback", "app", k=None)
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextmanager
def nobody() -> Iterator[str]:
    """Give an address at which nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{unused.getsockname()[1]}"


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[str]:
    """Serve connections by a handler, and give the address."""
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def answers_in_plain_text(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As an HTTP server that expects no TLS."""
    await reader.read(10)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()


async def hangs_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As a server that expects something else."""
    writer.close()


async def takes_the_question(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As a gateway that dies once it has a question: HTTP/2's first frame of a server, and then nothing."""
    writer.write(bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
    while b"PrivateQueryService" not in await reader.read(4096):
        pass
    writer.close()


async def asked(gateway: AsyncGatewayClient) -> GrisError:
    """Return how a question ends."""
    async with gateway:
        with pytest.raises(GrisError) as raised:
            await gateway.ask(QUESTION)
    return raised.value


def says_that_nothing_was_charged(error: GrisError) -> None:
    """Look at what agents, people and programs are shown."""
    with pytest.raises(dbapi.Error) as raised, dbapi_error():
        raise error
    texts = [failure_of(error)["what_to_do"], Problem.of(error).advice, str(error), str(raised.value)]
    assert "nothing was charged" in texts[0]
    assert "Nothing was charged" in texts[1]
    for text in texts:
        assert "may have been" not in text
        assert "not known" not in text


@pytest.mark.parametrize("handler", [answers_in_plain_text, hangs_up])
async def test_a_gateway_that_cannot_be_spoken_to_has_charged_nothing(handler: Handler) -> None:
    """It does not speak TLS, or hangs up before there is a connection."""
    async with listening(handler) as address:
        error = await asked(AsyncGatewayClient(gateway_address(f"gris://{address}")))
    says_that_nothing_was_charged(error)
    if handler is answers_in_plain_text:
        assert "it does not speak TLS" in str(error)


@pytest.mark.parametrize("form", ["{}", "dns:///{}", "ipv4:{}", "{}.invalid:1"])
async def test_a_gateway_that_cannot_be_reached_has_charged_nothing(form: str) -> None:
    """Whether it is one server or replicas, or has a name that nobody knows."""
    with nobody() as address:
        says_that_nothing_was_charged(await asked(AsyncGatewayClient(form.format(address))))


def test_the_command_line_says_no_more_than_that_there_is_no_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where to look is said, and nothing of a charge."""
    with nobody() as address:
        assert run(["ask", "--gateway", f"gris://{address}", "--table", "feedback", "--by", "app"]) == 5
    said = capsys.readouterr().err
    assert f"no answer at gris://{address}" in said
    assert "charged" not in said


async def test_a_charge_that_no_ledger_was_there_for_did_not_happen() -> None:
    """After every retry: none of them had a connection."""
    timeouts = Timeouts(budget_attempt=0.5, budget=0.5)
    with nobody() as address:
        calls = BudgetServiceClient(address, ("demo", "ana"), timeouts)
        with pytest.raises(ServiceUnavailable):
            await calls.charge(
                cost_pb2.Cost(information=1),
                reservation_id="r",
                release_id="a",
                query_id="b",
                charge_ticket=b"",
                policy_statement="",
            )
        await calls.close()


async def test_a_question_that_left_may_have_been_charged() -> None:
    """The connection breaks after it was sent."""
    async with listening(takes_the_question) as address:
        error = await asked(AsyncGatewayClient(address))
    assert type(error) is OutcomeUnknown
    assert "may have been charged" in Problem.of(error).advice
