"""A server of Pinot is killed and brought back, again and again, under a stream of questions.

    python -m tests.campaigns pinot_stream --answers 3600 --kills 5  # about ten minutes

Every answer that the engine confirms is compared with the truth, every failure must be one of ours with a name, and in
the end the ledger must hold exactly what the answers cost.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gris_api.dp.v1 import question_pb2

from deploy.pinot.cluster import PinotCluster, Ports
from examples.load import TABLES, load
from pinot_connector import AsyncPrivateClient, Between, Timeouts, structured_question
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import Engine, EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import GrisError
from tests.support.embedded import embedded
from tests.support.forgetful_store import ForgetfulStore
from tests.support.paths import EXAMPLES

COFACTS = "cofacts_feedback"
WORKERS = 8
DOWN_SECONDS = 4.0
ANSWERS_BEFORE_A_KILL = 40
SILENCE_SECONDS = 180.0
PAUSE_SECONDS = 0.2
BUDGET = """
accounts:
  - path: [stream]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [stream, "*"]
    limit: {information: 1000000000, calls: 1000000000}
"""

_log = logging.getLogger(__name__)

Histogram = frozenset[tuple[object, ...]]


def questions() -> list[question_pb2.Question]:
    """Return one question for each mechanism, and one with filters."""
    quarter = Between(datetime.date(2019, 1, 1), datetime.date(2019, 3, 31))
    return [
        structured_question(COFACTS, "article_id", k=10),
        structured_question(COFACTS, "cohort", k=None),
        structured_question(COFACTS, "score", k=2),
        structured_question(COFACTS, "app", k=None),
        structured_question(COFACTS, ["article_id", "score"], k=5, where={"day": quarter}),
    ]


class Witness:
    """An engine that keeps what it has confirmed, by the text of the query, and counts what is not the truth."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.dialect = engine.dialect
        self.truth: dict[str, Histogram] = {}
        self.wrong = 0

    def data_version(self, table: str) -> str:
        """See `Engine.data_version`."""
        return self._engine.data_version(table)

    def check(self, query: EngineQuery) -> None:
        """See `Engine.check`."""
        self._engine.check(query)

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """See `Engine.run`."""
        return self._engine.run(query, data_version)

    def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        """Compares what the engine confirms with the truth: the first answer, which is checked before the stream."""
        self._engine.confirm(query, answer)
        found = frozenset(zip(*answer.elements, answer.counts, strict=True))
        self.wrong += self.truth.setdefault(query.sql, found) != found

    def close(self) -> None:
        """See `Engine.close`."""
        self._engine.close()


@dataclass
class Totals:
    """What came of a stream."""

    asked: int = 0
    answered: int = 0
    wrong: int = 0
    kills: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    charged: Counter[str] = field(default_factory=Counter)
    spent: Counter[str] = field(default_factory=Counter)
    reserved: Counter[str] = field(default_factory=Counter)

    @property
    def is_sound(self) -> bool:
        """Whether no answer was wrong, none is missing, and the ledger holds what they cost and nothing besides."""
        is_complete = self.asked == self.answered + self.failures.total()
        is_paid = self.charged == self.spent and not any(self.reserved.values())
        return self.wrong == 0 and is_complete and is_paid


@contextmanager
def running_services() -> Iterator[EmbeddedServices]:
    """Both services, with fresh noise, so that every question is charged."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        policy = (EXAMPLES / "policy.yaml").read_text()
        member = "    member: member_id\n"
        with embedded(
            folder, policy.replace(member, f"{member}    consistency: fresh\n"), BUDGET
        ) as services:
            yield services


async def stream(cluster: PinotCluster, services: EmbeddedServices, *, answers: int, kills: int) -> Totals:
    """Ask until so many questions are answered, and a server was killed and came back `kills` times in between."""
    witness = Witness(PinotEngine(controller=cluster.controller_url, broker=cluster.broker_url))
    duck = Witness(DuckDBEngine(TABLES))
    totals = Totals()
    try:
        await _learn_truth(services, witness, duck)
        killing = asyncio.create_task(_keep_killing(cluster, totals, answers, kills))
        run = _Stream(services, witness, totals, answers, killing)
        async with asyncio.TaskGroup() as workers:
            for number in range(WORKERS):
                workers.create_task(run.keep_asking(f"worker-{number}"))
        await killing
    finally:
        witness.close()
        duck.close()
    totals.wrong = witness.wrong
    return totals


async def _learn_truth(services: EmbeddedServices, witness: Witness, duck: Witness) -> None:
    """Ask every question on both engines while all servers live; their histograms must agree."""
    for engine in (witness, duck):
        async with _client(services, engine, "truth") as client:
            for question in questions():
                await client.ask(question)
    if list(witness.truth.values()) != list(duck.truth.values()):
        raise AssertionError("the two engines do not agree on the truth")


async def _keep_killing(cluster: PinotCluster, totals: Totals, answers: int, kills: int) -> None:
    for kill in range(kills):
        # Only a cluster that answers can show what a kill does to its answers.
        share = answers * (kill + 1) // (kills + 1)
        await _until_answered(totals, max(share, totals.answered + ANSWERS_BEFORE_A_KILL))
        _log.info("kill %d after %d answers to %d questions", kill + 1, totals.answered, totals.asked)
        await asyncio.to_thread(cluster.kill_server, kill % 2)
        totals.kills += 1
        # Long enough for the broker to notice, after which it leaves half the data out in silence.
        await asyncio.sleep(DOWN_SECONDS)
        await asyncio.to_thread(cluster.start_server, kill % 2)


async def _until_answered(totals: Totals, enough: int) -> None:
    """Wait for answers; raises TimeoutError if none comes for minutes."""
    while totals.answered < enough:
        before = totals.answered
        async with asyncio.timeout(SILENCE_SECONDS):
            while totals.answered == before:  # noqa: ASYNC110 - eight callers count, and nobody is in a hurry
                await asyncio.sleep(0.1)


@dataclass(frozen=True)
class _Stream:
    services: EmbeddedServices
    engine: Engine
    totals: Totals
    answers: int
    killing: asyncio.Task[None]

    async def keep_asking(self, account: str) -> None:
        """Ask as one analyst until enough was answered and killed, and note what the ledger says."""
        asked, totals = questions(), self.totals
        async with _client(self.services, self.engine, account) as client:
            while totals.answered < self.answers or not self.killing.done():
                totals.asked += 1
                try:
                    result = await client.ask(asked[totals.asked % len(asked)])
                except GrisError as error:
                    totals.failures[type(error).__name__] += 1
                    # Failures come fast, and the machine is needed to bring the server back.
                    await asyncio.sleep(PAUSE_SECONDS)
                    continue
                totals.answered += 1
                totals.charged[account] += result.charged.information
            (*_, level) = await client.remaining()
            totals.spent[account] = level.spent.information
            totals.reserved[account] = level.reserved.information


def _client(services: EmbeddedServices, engine: Engine, account: str) -> AsyncPrivateClient:
    return AsyncPrivateClient(
        dp=services.dp_address,
        budget=services.budget_address,
        account=("stream", account),
        engine=engine,
        # Starting a server of Pinot keeps a small machine busy; a busy ledger is not a dead one.
        timeouts=Timeouts(budget_silence=10),
        # Every answer is to come from the cluster.
        releases=ForgetfulStore(),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a cluster, run the stream, print the totals; exit code 1 if anything is unsound."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--answers", type=int, default=3600, help="at least so many")
    parser.add_argument("--kills", type=int, default=5)
    chosen = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    _log.setLevel(logging.INFO)
    with (
        tempfile.TemporaryDirectory() as folder,
        PinotCluster(2, directory=Path(folder), ports=Ports.free(2)) as cluster,
        running_services() as services,
    ):
        load(TABLES[COFACTS], COFACTS, controller=cluster.controller_url, broker=cluster.broker_url)
        totals = asyncio.run(stream(cluster, services, answers=chosen.answers, kills=chosen.kills))
    print(f"asked {totals.asked}, answered {totals.answered}, wrong {totals.wrong}, kills {totals.kills}")
    print(f"failures by name: {dict(totals.failures)}")
    charged, spent, reserved = (
        sum(each.values()) for each in (totals.charged, totals.spent, totals.reserved)
    )
    print(f"information charged {charged}, spent {spent}, still reserved {reserved}")
    return 0 if totals.is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
