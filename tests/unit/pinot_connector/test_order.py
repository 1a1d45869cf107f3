"""The steps of a question come in the order that keeps the promise, and nothing is shown that a later one refuses."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from gris_api.dp.v1 import question_pb2

from pinot_connector import sql_question, structured_question
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import BudgetExhausted, IncompleteAnswer, InvalidQuestion, RefusedByPolicy
from tests.support.clients import asking_client, client_of, untouched
from tests.support.relay import relayed
from tests.support.world import COFACTS, World, new_account, write_small

ARTICLES = (
    "SELECT article_id, COUNT(DISTINCT member_id) FROM salaries GROUP BY article_id ORDER BY 2 DESC LIMIT 5"
)


class _Watched(DuckDBEngine):
    """DuckDB that writes down when it is called."""

    def __init__(self, log: list[tuple[str, bytes]], table: str = "feedback", path: Path = COFACTS) -> None:
        super().__init__({table: path})
        self._log = log

    def data_version(self, table: str) -> str:
        self._log.append(("engine.data_version", b""))
        return super().data_version(table)

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        self._log.append(("engine.run", b""))
        return super().run(query, data_version)

    def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        # Longer than noise takes, so that a draw that does not wait for it comes first.
        time.sleep(0.3)
        super().confirm(query, answer)
        self._log.append(("engine.confirm", b""))


async def test_the_steps_come_in_their_order(world: World) -> None:
    """Policy, version, translation; reservation and query; confirmation; noise; charge; and nothing besides."""
    async with relayed(world) as relay:
        # Long after the query: noise has to wait for the reservation all the same.
        relay.delays["ReserveBudget"] = 0.5
        engine = _Watched(relay.calls)
        async with client_of(relay.address, engine) as client:
            asking = asyncio.ensure_future(client.top_k("feedback", "article_id", 5))
            await relay.called("ReserveBudget")
            await asyncio.sleep(0.3)
            assert "AddNoiseUnary" not in relay.methods
            await asking
        engine.close()
    first, beside, noise, last = (relay.methods[i:j] for i, j in ((0, 3), (3, 5), (5, 7), (7, None)))
    assert ["TranslateQuery", "engine.data_version", "TranslateQuery"] == first
    assert {"ReserveBudget", "engine.run"} == set(beside)
    assert ["engine.confirm", "AddNoiseUnary"] == noise
    assert ["UpdateBudget"] == last


async def test_the_budget_is_asked_before_an_engine_that_is_to_be_spared(world: World) -> None:
    """Where the policy says reserve_first, the query waits for the reservation."""
    async with relayed(world) as relay:
        relay.delays["ReserveBudget"] = 0.2
        write_small(world.tables["small"], 100)
        engine = _Watched(relay.calls, "small", world.tables["small"])
        async with client_of(relay.address, engine) as client:
            asking = asyncio.ensure_future(client.histogram("small", "element"))
            await relay.called("ReserveBudget")
            assert "engine.run" not in relay.methods
            await asking
        engine.close()
    assert [
        "ReserveBudget",
        "engine.run",
        "engine.confirm",
        "AddNoiseUnary",
        "UpdateBudget",
    ] == relay.methods[3:]


async def test_a_refusal_by_the_budget_does_not_wait_for_the_engine(world: World) -> None:
    """How long a refused question takes says nothing of how long the query for it does, nor of its rows."""
    finished = threading.Event()

    class Held(DuckDBEngine):
        def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
            assert finished.wait(60)
            return super().run(query, data_version)

    engine = Held({"feedback": COFACTS})
    account = new_account("poor")
    try:
        async with asking_client(world, engine, account=account) as client, asyncio.timeout(30):
            with pytest.raises(BudgetExhausted):
                await client.top_k("feedback", "article_id", 5)
    finally:
        finished.set()
    engine.close()


async def test_an_answer_that_the_engine_does_not_confirm_is_neither_shown_nor_charged(world: World) -> None:
    """No noise is drawn from it."""

    class Doubting(DuckDBEngine):
        def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
            raise IncompleteAnswer("half of it is missing")

    engine = Doubting(world.tables)
    async with relayed(world) as relay, client_of(relay.address, engine) as client:
        with pytest.raises(IncompleteAnswer):
            await client.top_k("feedback", "article_id", 5)
        assert await untouched(client)
        assert not {"AddNoiseUnary", "UpdateBudget"} & set(relay.methods)
    engine.close()


async def test_a_table_is_brought_before_the_policy_only_once(world: World) -> None:
    """Later questions about it cost no call more."""
    async with relayed(world) as relay:
        engine = _Watched(relay.calls)
        async with client_of(relay.address, engine) as client:
            await client.top_k("feedback", "article_id", 5)
            await client.top_k("feedback", "score", 1)
            assert 3 == relay.methods.count("TranslateQuery")
            for _ in range(2):
                await client.sql(ARTICLES.replace("salaries", "feedback"))
        engine.close()
    # Only dp_service can tell which table a text is about: once for each text.
    assert 6 == relay.methods.count("TranslateQuery")


@pytest.mark.parametrize(
    "question",
    [
        structured_question("salaries", "article_id", k=5),
        sql_question(ARTICLES),
    ],
)
async def test_a_table_that_the_policy_does_not_list_never_reaches_the_engine(
    world: World, question: question_pb2.Question
) -> None:
    """The engine has the table; a caller that may not ask about it learns nothing of it, not even from the time."""
    async with relayed(world) as relay:
        engine = _Watched(relay.calls, table="salaries")
        async with client_of(relay.address, engine) as client:
            with pytest.raises((RefusedByPolicy, InvalidQuestion)):
                await client.ask(question)
        engine.close()
    assert ["TranslateQuery"] == relay.methods
