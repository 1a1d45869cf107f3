"""New questions, an engine that costs nothing, and a process that asks the one of the other when it is asked to.

    python -P bench/new_questions.py --policy FILE --budget FILE --parquet FILE

The process uses whichever checkout PYTHONPATH names, also one of an older version, so that two versions can take turns.
It starts both services, and then asks as many new questions as each line of its input says, one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import itertools
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from gris_api.dp.v1 import question_pb2

from pinot_connector import AsyncPrivateClient, NotIn, Timeouts, structured_question
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import MemoryReleaseStore, ReleaseStore

# What is asked must not fail because others keep the machine busy.
LONG_TIMEOUTS = Timeouts(dp=30, budget_attempt=20, budget=30, budget_silence=30)
TABLE = "cofacts_feedback"
READY = "ready"

_numbers = itertools.count()


def new_question(table: str) -> question_pb2.Question:
    """Returns a private top 10 that nobody has asked before."""
    return structured_question(
        table, "article_id", k=10, where={"article_id": NotIn([f"no article {next(_numbers)}"])}
    )


class StubEngine(DuckDBEngine):
    """DuckDB that answers every query as it answered the first."""

    _answer: EngineAnswer | None = None

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Returns the first answer."""
        if self._answer is None:
            self._answer = super().run(query, data_version)
        return self._answer


def client_of(dp: str, budget: str, engine: StubEngine, releases: ReleaseStore) -> AsyncPrivateClient:
    """Returns a client of the analyst that these benchmarks charge."""
    return AsyncPrivateClient(
        dp=dp,
        budget=budget,
        account="bench/analyst",
        engine=engine,
        timeouts=LONG_TIMEOUTS,
        releases=releases,
    )


async def _asked(services: EmbeddedServices, engine: StubEngine) -> None:
    async with client_of(
        services.dp_address, services.budget_address, engine, MemoryReleaseStore()
    ) as client:
        _say(READY)
        while line := await asyncio.to_thread(sys.stdin.readline):
            for _ in range(int(line)):
                await client.ask(new_question(TABLE))
            _say(READY)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _spared_collector() -> AbstractContextManager[None]:
    """Returns what a gateway of this version does about garbage; older versions did nothing."""
    try:
        found = importlib.import_module("gris_serving.garbage_collection")
    except ModuleNotFoundError:
        return nullcontext()
    spared: AbstractContextManager[None] = found.spared_collector()
    return spared


def main() -> None:
    """Asks until its input ends."""
    parser = argparse.ArgumentParser()
    for name in ("--policy", "--budget", "--parquet"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    engine = StubEngine({TABLE: options.parquet})
    with tempfile.TemporaryDirectory() as scratch:
        services = EmbeddedServices(
            policy=options.policy, budget_config=options.budget, directory=Path(scratch)
        )
        with services, _spared_collector():
            asyncio.run(_asked(services, engine))
    engine.close()


if __name__ == "__main__":
    main()
