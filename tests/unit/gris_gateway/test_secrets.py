"""Secrets stay where they are: the whole path at the finest log level, failures forced, and every output searched.

The markers are what nobody but their owner may see: accounts, elements, literals, keys, tokens and SQL.
"""
# ruff: noqa: S608  (the SQL is these tests' own)

from __future__ import annotations

import itertools
import re
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest
from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2, budget_pb2_grpc
from gris_api.common.v1 import cost_pb2
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc

from pinot_connector import AsyncGatewayClient, AsyncPrivateClient, Endpoint
from pinot_connector.channels import open_channel
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import GrisError
from pinot_connector.questions import sql_question, structured_question
from tests.support.agents import LEGACY, MODERN, over_http, trusting
from tests.support.gateways import stub_of
from tests.support.leaked_numbers import number_pattern
from tests.support.some import some
from tests.unit.gris_gateway.stage import ACCOUNT, ALIAS, COUNTS, ELEMENT, KEY, LITERAL, OTHER, REQUEST, Stage

_numbers = itertools.count()


async def everything_happens(stage: Stage) -> int:
    """Ask rightly, wrongly and too much, lose the ledger, forge; return how many results there were."""
    questions = [
        structured_question("visits", "element", k=None, where={"element": [f"{ELEMENT}-one", LITERAL]}),
        structured_question("visits", "element", k=3),
        sql_question(
            f"SELECT element, COUNT(DISTINCT member_id) AS {ALIAS} FROM visits GROUP BY element LIMIT 5"
        ),
        sql_question(f"SELECT element FROM visits WHERE member_id = '{LITERAL}'"),
        sql_question(f"SELECT '{LITERAL}"),
        sql_question(f"SELECT COUNT(*) FROM visits WHERE element IN (SELECT '{LITERAL}')"),
        structured_question(
            "visits", "element", k=3, where={"element": LITERAL, "member_id": COUNTS[f"{ELEMENT}-one"]}
        ),
    ]
    results = 0
    for address in (stage.gateway, stage.broken):
        for account in (None, f"{ACCOUNT}/below", OTHER, f"{ACCOUNT}/{LITERAL}/../x"):
            async with AsyncGatewayClient(Endpoint(address, stage.caller()), account=account) as client:
                for question in questions:
                    results += await reported(stage, client, question)
        for forged in (stage.caller(exp=1), stage.caller(iss=LITERAL)):
            async with AsyncGatewayClient(Endpoint(address, forged)) as client:
                await reported(stage, client, questions[0])
    return results


async def reported(stage: Stage, client: AsyncGatewayClient, question: Any) -> int:
    """Ask, and note what the error says if it fails; returns 1 for a result, else 0."""
    try:
        await client.explain(question)
        await client.ask(question, request_id=f"{REQUEST}-{next(_numbers)}")
        await client.remaining()
    except GrisError as error:
        stage.said.append(f"{type(error).__name__} {error}")
        return 0
    return 1


async def agents_ask(stage: Stage) -> None:
    """Let an agent ask rightly and wrongly over HTTP, in both eras of the protocol; note what failures say."""
    for mode in (LEGACY, MODERN):
        stage.caller()
        async with over_http(stage.mcp, stage.tokens[-1], stage.authority.ca_file, mode) as agent:
            # Paid for before, and all that this budget pays for.
            names = ", ".join(f"'{each}'" for each in (f"{ELEMENT}-one", LITERAL))
            sql = (
                f"SELECT element, COUNT(DISTINCT member_id) FROM visits WHERE element IN ({names}) GROUP BY 1"
            )
            assert (await agent.call("ask", sql=sql))["rows"]
            assert (await agent.call("history"))["answers"]
            for tool, arguments in (
                ("ask", {"sql": f"SELECT element FROM visits WHERE member_id = '{LITERAL}'"}),
                ("ask", {"table": "visits", "by": [LITERAL]}),
                ("ask", {"table": "visits", LITERAL: ELEMENT}),
                ("ask", {"table": LITERAL}),
                ("catalog", {"table": LITERAL}),
            ):
                stage.said.append(str(await agent.failure_of(tool, arguments)))
    stage.caller(iss=LITERAL)
    async with httpx2.AsyncClient(verify=trusting(stage.authority.ca_file)) as http:
        for method, path, content in (("POST", "/mcp", LITERAL), ("GET", f"/{LITERAL}", "")):
            headers = {"Authorization": f"Bearer {stage.tokens[-1]}", "Host": "localhost", "X-Id": LITERAL}
            answer = await http.request(
                method, f"https://{stage.mcp}{path}", content=content, headers=headers
            )
            stage.said.append(f"{answer.status_code} {answer.text}")


async def services_fail(stage: Stage) -> None:
    """Send both services what they must refuse, with markers in every field."""
    cost = cost_pb2.Cost(information=COUNTS[f"{ELEMENT}-one"], calls=1, unit_id=LITERAL)
    account = budget_pb2.Account(path=[ACCOUNT, "e\u0301", LITERAL])
    header = dp_pb2.ReleaseHeader(plan=LITERAL.encode() * 10, data_version=LITERAL)
    async with open_channel(Endpoint(stage.budget, stage.app)) as channel:
        budget: Any = budget_pb2_grpc.BudgetServiceStub(channel)
        for path in (account, budget_pb2.Account(path=[ACCOUNT, LITERAL])):
            request = budget_pb2.UpdateBudgetRequest(
                account=path, cost=cost, request_id=REQUEST, reservation_id=LITERAL, release_id=ELEMENT
            )
            await noted(stage, budget.UpdateBudget(request, timeout=30))
        await noted(stage, budget.GetBudget(budget_pb2.GetBudgetRequest(account=account), timeout=30))
    async with open_channel(Endpoint(stage.dp, stage.app)) as channel:
        dp: Any = dp_pb2_grpc.DpServiceStub(channel)
        histogram = dp_pb2.AddNoiseUnaryRequest(header=header)
        histogram.histogram.counts.extend(COUNTS.values())
        histogram.histogram.columns.add(name=ELEMENT).strings.values.extend(COUNTS)
        await noted(stage, dp.AddNoiseUnary(histogram, timeout=30))
        raw: Any = channel.unary_unary("/gris.dp.v1.DpService/AddNoiseUnary")
        await noted(stage, raw(LITERAL.encode(), timeout=30))


async def noted(stage: Stage, call: Any) -> None:
    """Note what the error of a failed call says, with all that came beside it."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        stage.said.append(f"{error.details()} {error.trailing_metadata()}")
    else:
        raise AssertionError("it must be refused")


async def engine_fails(stage: Stage) -> None:
    """Let the engine's file become another in the middle: what DuckDB says holds the path and the query."""
    engine = DuckDBEngine({"visits": stage.folder / "visits.parquet"})
    async with AsyncPrivateClient(
        dp=Endpoint(stage.dp, stage.app),
        budget=Endpoint(stage.budget, stage.app),
        account=ACCOUNT,
        engine=engine,
    ) as client:
        (stage.folder / "visits.parquet").write_bytes(LITERAL.encode() * 100)
        question = structured_question("visits", "element", k=2, where={"element": LITERAL})
        with pytest.raises(GrisError) as refused:
            await client.ask(question)
        stage.said.append(str(refused.value))
        async with stage_channel(stage) as channel:
            call = stub_of(channel).Ask(app_pb2.AskRequest(question=question), timeout=20)
            await noted(stage, call.read())
    with suppress(Exception):
        engine.close()


def stage_channel(stage: Stage) -> grpc.aio.Channel:
    """Open a channel to the gateway."""
    return open_channel(Endpoint(stage.gateway, stage.caller()))


@pytest.mark.usefixtures("starts_processes")
async def test_no_secret_is_ever_written_or_told(tmp_path: Path) -> None:
    """Neither in a log, at debug level and with gRPC's own, nor in an error, whatever goes wrong."""
    with ExitStack() as opened:
        stage = Stage(tmp_path, opened)
        assert 1 <= await everything_happens(stage)
        await agents_ask(stage)
        await services_fail(stage)
        await engine_fails(stage)
    outputs = stage.outputs()
    # The search means something: every process logged, and failures of every kind were reported.
    assert all(outputs[f"{name}.log"].strip() for name in ("dp", "budget", "gateway", "broken"))
    kinds = ("InvalidQuestion", "ServiceUnavailable", "ServiceRefused", "BudgetExhausted", "RefusedByPolicy")
    assert [] == [kind for kind in kinds if kind not in outputs["errors"]], sorted(set(stage.said))
    words = [ELEMENT, LITERAL, ALIAS, REQUEST, OTHER, KEY, *stage.tokens]
    secret = [*map(re.escape, words), *map(number_pattern, COUNTS.values())]
    # An error says which level of an analyst's own account lacks what, and where SQL is wrong; no log does.
    for name, text in some(outputs.items()):
        for marker in some(secret if name == "errors" else [*secret, ACCOUNT, "SELECT"]):
            found = re.search(marker, text)
            # What stands around it shows who wrote it.
            assert found is None, (name, marker, text[max(0, found.start() - 200) : found.end() + 100])
