"""Why a question was refused: each refusal has an id, under which its own caller, and nobody else, may ask."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from dataclasses import replace
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RequestInfo
from google.rpc.status_pb2 import Status
from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import dp_pb2
from grpc_status import rpc_status

from gris_cli.__main__ import main
from gris_gateway.accounts import Caller
from gris_gateway.callers import current_caller
from gris_gateway.history import History
from gris_gateway.policy_names import PolicyNames
from gris_gateway.refused_questions import MAX_QUESTION_BYTES, RefusedQuestions
from gris_gateway.rpc_errors import RequestError, status_of_error
from gris_mcp.failures import failure_of
from pinot_connector import Credentials, dbapi, telemetry
from pinot_connector.audiences import Audience
from pinot_connector.dbapi import connect_gateway
from pinot_connector.errors import (
    BudgetExhausted,
    InvalidQuestion,
    RefusedByPolicy,
    ServiceUnavailable,
    Shortfall,
)
from pinot_connector.questions import sql_question, structured_question
from pinot_connector.release_store import MemoryReleaseStore
from pinot_connector.release_store.receipts import ReceiptLimits
from tests.gateway.calls import TOP, client_of
from tests.gateway.conftest import GatewayWorld, stub_of
from tests.support.command_line import run_json, run_text
from tests.support.pki import email

NO_BUDGET = BudgetExhausted((Shortfall(("app", "ana"), "information", 9, 2, None),), 3)
ANA = Caller("ana", ("app", "ana"))


@pytest.fixture
def poor(gateway: GatewayWorld) -> Credentials:
    """Return the certificate of somebody whose budget holds next to nothing."""
    return gateway.authority.client(email("poor@example.org"), file="poor")


@pytest.fixture
def history() -> History:
    """Return a history that keeps two results of an account."""
    return History(MemoryReleaseStore(ReceiptLimits(days=1, per_account=2)))


class Served:
    """A dp_service that serves a policy of this name; empty: it does not answer."""

    def __init__(self, policy: str = "one") -> None:
        self.policy = policy

    async def catalog_page(self, _: dp_pb2.GetCatalogRequest) -> dp_pb2.GetCatalogResponse:
        """Name the policy."""
        if not self.policy:
            raise ServiceUnavailable("dp_service", "no answer")
        return dp_pb2.GetCatalogResponse(policy_id=self.policy)

    async def offers_all(self) -> bool:
        """Say whether it has no audiences."""
        return "audiences" not in self.policy


def refused_in(history: History, served: Served | None = None) -> RefusedQuestions:
    """Return the refused questions of a history, which is all that is served."""
    served = served or Served()

    async def kept_as(account: tuple[str, ...], *, or_last: bool) -> tuple[str, ...]:
        return account

    return RefusedQuestions(history, PolicyNames(lambda: served), kept_as)


def asked(request_id: str = "", question: Any = TOP) -> app_pb2.AskRequest:
    """Return a question as it is sent."""
    return app_pb2.AskRequest(question=question, request_id=request_id)


def id_of(status: grpc.Status) -> str:
    """Return the id that a refusal carries."""
    ((_, packed),) = status.trailing_metadata
    said = Status.FromString(packed)
    info = RequestInfo()
    assert any(each.Unpack(info) for each in said.details)
    return str(info.request_id)


async def test_a_caller_asks_why_by_the_id_of_its_refusal_and_nobody_else_does(
    gateway: GatewayWorld, poor: Credentials, ana: Credentials
) -> None:
    """It gets the words, the limits and the question of then; another account hears that there is no such id."""
    async with client_of(gateway, poor) as client, client_of(gateway, ana) as other:
        with pytest.raises(BudgetExhausted) as refused:
            await client.ask(TOP)
        said = await client.refusal(refused.value.request_id)
        with pytest.raises(InvalidQuestion, match="request_id: no refused question") as unknown:
            await other.refusal(refused.value.request_id)
        with pytest.raises(InvalidQuestion) as never:
            await client.refusal("never asked")
        assert [] == [each async for each in client.releases()]
    assert ("BUDGET_EXHAUSTED", str(refused.value)) == (said.refusal.reason, said.refusal.message)
    assert [("alone", "one")] == [tuple(each.path) for each in said.refusal.shortfalls][:1]
    assert TOP == said.question
    assert str(unknown.value) == str(never.value)
    assert failure_of(refused.value).request_id == refused.value.request_id


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
    """What is kept of the refusal is no result, and is another question all the same."""
    wrong = structured_question("feedback", "no_such_column", k=10)
    async with client_of(gateway, gateway.analyst()) as client:
        with pytest.raises(RefusedByPolicy) as refused:
            await client.ask(wrong, request_id="again")
        assert "again" == refused.value.request_id
        assert (await client.ask(TOP, request_id="again")).rows
        assert "REFUSED_BY_POLICY" == (await client.refusal("again")).refusal.reason


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
        connection = connect_gateway(f"gris://{gateway.address}", credentials=poor)
        with closing(connection), pytest.raises(dbapi.Error) as failed:
            connection.cursor().execute(
                "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY 1 ORDER BY 2 DESC LIMIT 9"
            )
        return str(failed.value)

    assert " (request " in await asyncio.to_thread(read)


async def test_refusals_are_kept_beside_results_and_no_more_of_them(history: History) -> None:
    """A full list of refusals takes the place of no result; the oldest refusals make room."""
    refused = refused_in(history)
    current_caller.set(ANA)
    result = app_pb2.PastRelease(request_id="paid", question=TOP)
    result.released_at.GetCurrentTime()
    await history.add(ANA.own, result)
    names = [
        id_of(
            await refused.noted(
                asked(f"{number}"), await refused.policy(), NO_BUDGET, status_of_error(NO_BUDGET)
            )
        )
        for number in range(3)
    ]
    kept = [await refused.find(ANA.own, name) for name in names]
    await refused.finish()
    assert ["0", "1", "2"] == names
    assert kept[2] is not None
    assert 3 == kept[2].refusal.largest_k
    assert [None, False] == [kept[0], kept[1] is None]
    assert ["paid"] == [each.request_id for each in (await history.page(ANA.own, 10, None)).releases]


async def test_accounts_that_a_caller_makes_up_have_one_list_together(history: History) -> None:
    """And what is malformed is on none: nothing bounds how many calls are."""
    refused = refused_in(history)
    current_caller.set(replace(ANA, accounts_below=True))
    for number in range(3):
        request = asked("same")
        request.account.path.extend((*ANA.own, f"made up {number}"))
        await refused.noted(request, await refused.policy(), NO_BUDGET, status_of_error(NO_BUDGET))
    kept = [await refused.find((*ANA.own, f"made up {number}"), "same") for number in range(3)]
    assert kept[2] is not None
    assert await refused.find(ANA.own, "same") is None
    assert kept[0] is None
    malformed = RequestError("account", "expected another one")
    await refused.noted(asked("malformed"), await refused.policy(), malformed, status_of_error(malformed))
    assert await refused.find(ANA.own, "malformed") is None


async def test_another_audience_of_the_account_does_not_learn_what_was_refused(history: History) -> None:
    """A refusal may name a column that is not offered any more."""
    refused, error = refused_in(history), RefusedByPolicy("salary: not offered", "column")
    current_caller.set(STAFF)
    await refused.noted(asked("mine"), await refused.policy(), error, status_of_error(error))
    assert await refused.find(ANA.own, "mine") is not None
    for audience in (None, Audience("guests"), Audience("staff", {"country": "FR"})):
        current_caller.set(replace(ANA, audience=audience))
        assert await refused.find(ANA.own, "mine") is None
    current_caller.set(STAFF)
    assert await refused.find(("app",), "mine") is None
    assert await refused.find(ANA.own, "") is None


STAFF = replace(ANA, audience=Audience("staff", {"country": "DE"}))
SALARY = RefusedByPolicy("column salery: did you mean salary?", "column")


async def test_a_refusal_is_given_under_the_policy_that_made_it(history: History) -> None:
    """Not under the next one, which may offer less than it names; under the same again it is."""
    served = Served()
    refused = refused_in(history, served)
    current_caller.set(STAFF)
    await refused.noted(asked("mine"), await refused.policy(), SALARY, status_of_error(SALARY))
    for served.policy, is_given in (("one", True), ("two", False), ("one", True)):
        assert is_given == (await refused.find(ANA.own, "mine") is not None)
    served.policy = ""
    with pytest.raises(ServiceUnavailable):
        await refused.find(ANA.own, "mine")


@pytest.mark.parametrize(("before", "after"), [("one", "two"), ("one", ""), ("", "one"), ("", "")])
async def test_a_refusal_of_an_unknown_policy_is_not_kept(history: History, before: str, after: str) -> None:
    """It was replaced while the question was asked, or dp_service did not answer at one of the moments."""
    served = Served(before)
    refused = refused_in(history, served)
    current_caller.set(STAFF)
    policy = await refused.policy()
    served.policy = after
    status = await refused.noted(asked("mine"), policy, SALARY, status_of_error(SALARY))
    assert "mine" == id_of(status)
    for served.policy in ("one", "two"):
        assert await refused.find(ANA.own, "mine") is None


async def test_without_an_audience_nothing_is_given_under_a_policy_that_has_some(history: History) -> None:
    """Such a caller is offered nothing by it, and any other policy offers everybody everything."""
    served = Served()
    refused = refused_in(history, served)
    current_caller.set(ANA)
    await refused.noted(asked("mine"), await refused.policy(), SALARY, status_of_error(SALARY))
    for served.policy, is_given in (("two", True), ("audiences", False)):
        assert is_given == (await refused.find(ANA.own, "mine") is not None)


async def test_a_long_question_is_not_kept(history: History) -> None:
    """Nobody fills the history with what is refused."""
    refused, error = refused_in(history), InvalidQuestion("sql", "x" * 10_000)
    current_caller.set(ANA)
    long = sql_question(f"SELECT {'x' * MAX_QUESTION_BYTES}")
    await refused.noted(asked("long", long), await refused.policy(), error, status_of_error(error))
    kept = await refused.find(ANA.own, "long")
    assert kept is not None
    assert not kept.HasField("question")
    assert kept.ByteSize() < MAX_QUESTION_BYTES


class Broken(MemoryReleaseStore):
    """A store that cannot be written."""

    async def add_receipt(self, *_: object) -> None:
        """Fail."""
        raise OSError


async def test_a_history_that_fails_changes_no_refusal(caplog: pytest.LogCaptureFixture) -> None:
    """The caller is answered, and the log says that nothing was kept."""
    refused = refused_in(History(Broken()))
    current_caller.set(ANA)
    status = await refused.noted(asked("lost"), await refused.policy(), NO_BUDGET, status_of_error(NO_BUDGET))
    assert ("lost", grpc.StatusCode.RESOURCE_EXHAUSTED) == (id_of(status), status.code)
    assert ["history.not_written"] == [getattr(each, "event", "") for each in caplog.records]


def _shown(credentials: Credentials) -> dict[str, Any]:
    return {
        "ca_file": credentials.ca_file,
        "certificate_file": credentials.certificate_file,
        "key_file": credentials.key_file,
    }


@pytest.fixture
def shell(gateway: GatewayWorld, poor: Credentials, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands ask the gateway as the poor account."""
    monkeypatch.setenv("GRIS_GATEWAY", f"gris://{gateway.address}")
    for name, path in _shown(poor).items():
        monkeypatch.setenv(f"GRIS_{name.upper()}", str(path))


@pytest.mark.usefixtures("shell")
def test_gris_why_says_what_would_be_needed(capsys: pytest.CaptureFixture[str]) -> None:
    """The id is on the refusal; the answer has the limit that would do, when to come again, and what is cheaper."""
    words = ("ask", "--table", "feedback", "--by", "article_id", "--k", "10")
    assert 4 == main([*words, "--json"])
    request_id = json.loads(capsys.readouterr().out)["error"]["request_id"]
    assert 4 == main([*words])
    assert "`gris why " in capsys.readouterr().err
    facts = run_json(capsys, "why", request_id)
    assert "BUDGET_EXHAUSTED" == facts["refused"]["reason"]
    (missing,) = [each for each in facts["now"]["missing"] if each["unit"] == "information"]
    assert (["alone", "one"], 5, 21) == (missing["level"], missing["limit"], missing["limit_needed"])
    text = run_text(capsys, "why", request_id)
    assert "a limit of 21 information of alone/one, now 5; or waiting does not help" in text
    assert "with --k 2 it would fit now" in text
    cheaper = ("--table", "feedback", "--by", "article_id", "--k")
    lacking = [run_json(capsys, "why", *cheaper, k)["now"]["missing"] for k in (2, 3)]
    assert [False, True] == [any(each["unit"] == "information" for each in missing) for missing in lacking]


@pytest.mark.usefixtures("shell")
def test_gris_why_takes_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    """It says what that lacks now; one that the policy forbids is refused in its words, and both are too much."""
    words = ("--table", "feedback", "--by", "article_id", "--k", "10")
    assert run_json(capsys, "why", *words)["refused"] is None
    assert 3 == main(["why", "--table", "feedback", "--by", "nothing"])
    assert "lists no column with that name" in capsys.readouterr().err
    assert 2 == main(["why", "an-id", *words])
    assert "give the id of a request, or a question" in capsys.readouterr().err
    assert 2 == main(["why", "an-id"])
    assert "no refused question" in capsys.readouterr().err
