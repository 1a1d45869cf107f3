"""The CPU that a question costs beside its engine, in each process.

    python -m bench.question_cpu

A private top 10, whose engine gives at once what DuckDB answered the first time: what is left is Gris, the connector in
this process and both services.

    new      a question that nobody has asked before, structured, by one caller after the other
    in SQL   the same text again and again, drawn and charged each time
    viewers  a hundred accounts ask one new question at the same time, as those who open a dashboard do

CPU depends less than time on what else runs; still, compare only figures that were taken in turns on one machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

from gris_api.dp.v1 import question_pb2

from bench.cpu import cpu_seconds
from bench.path import BUDGET
from bench.tables import EXAMPLES, feedback
from pinot_connector import AsyncPrivateClient, NotIn, Timeouts, structured_question
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import MemoryReleaseStore, ReleaseStore
from tests.support.forgetful_store import ForgetfulStore

WARM_UP = 100
VIEWERS = 100
SQL = """
    SELECT article_id, COUNT(DISTINCT member_id) AS members FROM cofacts_feedback
    WHERE score = 1 AND day BETWEEN DATE '2019-01-01' AND DATE '2020-12-31'
    GROUP BY article_id ORDER BY members DESC LIMIT 10"""
_LONG_TIMEOUTS = Timeouts(dp=30, budget_attempt=20, budget=30, budget_silence=30)


class AtOnce(DuckDBEngine):
    """DuckDB that answers every query as it answered the first."""

    _answer: EngineAnswer | None = None

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Returns the first answer."""
        if self._answer is None:
            self._answer = super().run(query, data_version)
        return self._answer


def main() -> None:
    """Measures, and prints a table for people or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=500, help="of each kind")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(_measured(options.questions))
    if options.json:
        print(json.dumps({"milliseconds": found, "load": os.getloadavg()[0]}))
        return
    print(f"ms of CPU a question, beside its engine; load {os.getloadavg()[0]:.1f}")
    for kind, each in found.items():
        parts = ", ".join(f"{name} {value:.2f}" for name, value in sorted(each.items()))
        print(f"{kind:>8}: {sum(each.values()):6.2f} = {parts}")


async def _measured(questions: int) -> dict[str, dict[str, float]]:
    table = feedback()
    engine = AtOnce({table.name: table.parquet})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "policy.yaml").write_text((EXAMPLES / "policy.yaml").read_text())
        (folder / "budget.yaml").write_text(BUDGET)
        with EmbeddedServices(
            policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder
        ) as services:
            numbers = count()
            async with _client(services, engine, ForgetfulStore()) as client:
                found = {
                    "new": await _each_ms(lambda: client.ask(_new(table.name, next(numbers))), questions, 1),
                    "in SQL": await _each_ms(lambda: client.sql(SQL), questions, 1),
                }
            async with _client(services, engine, MemoryReleaseStore()) as client:
                accounts = [client.on_behalf_of(["bench", f"viewer {each}"]) for each in range(VIEWERS)]

                async def all_at_once() -> None:
                    question = _new(table.name, next(numbers))
                    await asyncio.gather(*(each.ask(question) for each in accounts))

                rounds = max(1, questions // VIEWERS)
                found["viewers"] = await _each_ms(all_at_once, rounds, VIEWERS)
    engine.close()
    return found


def _client(services: EmbeddedServices, engine: AtOnce, releases: ReleaseStore) -> AsyncPrivateClient:
    return AsyncPrivateClient(
        dp=services.dp_address,
        budget=services.budget_address,
        account="bench/analyst",
        engine=engine,
        timeouts=_LONG_TIMEOUTS,
        releases=releases,
    )


async def _each_ms(ask: Callable[[], Awaitable[object]], rounds: int, questions: int) -> dict[str, float]:
    """Returns the CPU of a question in each process; `ask` asks so many."""
    for _ in range(-(-WARM_UP // questions)):
        await ask()
    before = cpu_seconds()
    for _ in range(rounds):
        await ask()
    return {name: 1e3 * (now - before[name]) / (rounds * questions) for name, now in cpu_seconds().items()}


def _new(table: str, number: int) -> question_pb2.Question:
    return structured_question(
        table, "article_id", k=10, where={"article_id": NotIn([f"no article {number}"])}
    )


if __name__ == "__main__":
    main()
