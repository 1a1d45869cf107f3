"""Two neighbouring tables in DuckDB behind the real services, and questions with what they promise."""

# ruff: noqa: S608  (the SQL is the tests' own)
from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from pinot_connector import AsyncPrivateClient, Timeouts, structured_question
from pinot_connector.embedded import KEY_FILE, EmbeddedServices
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.results import PrivateResult

from .estimating import Event, Finding, proven_delta

EPSILON_PER = 4
DELTA = 0.05
WITH, WITHOUT = "with_member", "without_member"
AT_A_TIME = 8
# An audit asks a great deal of a machine that may be busy, and is not about how soon a dead ledger is noticed.
UNHURRIED = Timeouts(budget_silence=10)

_COLUMNS = """
    member: member_id
    consistency: fresh
    measures: {distinct_members: true}
    columns:
      member_id: {type: int64}
      app: {type: string, group_by: true, domain: [line, web], delta: 1}
      score: {type: string, group_by: true, domain: [high, low]}
      cohort: {type: string, group_by: true, delta: 1}
      article: {type: string, group_by: true}
"""
POLICY = f"epsilon_per: {EPSILON_PER}\ndelta: {DELTA}\ntables:\n  {WITH}:{_COLUMNS}  {WITHOUT}:{_COLUMNS}"
BUDGET = """
create_at_first_use: true
accounts:
  - path: [audit]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [audit, "*"]
    limit: {information: 1000000000, calls: 1000000000}
"""
# The three members that both tables have; the fourth has an article and a cohort that nobody else has.
_MEMBERS = [
    "(1, 'web', 'low', 'old', NULL)",
    "(2, 'web', 'high', 'old', NULL)",
    "(3, 'line', 'low', 'old', NULL)",
]
_ONE_MORE = "(4, 'web', 'high', 'rare', 'rare')"
WEB_WITHOUT = 2

_accounts = itertools.count()


@dataclass(frozen=True)
class Question:
    """A question whose answers are audited, and the (epsilon, delta) that its mechanism promises."""

    name: str
    by: str
    k: int | None
    counts: bool
    epsilon: float
    delta: float
    events: tuple[Event[PrivateResult], ...]

    def about(self, table: str) -> object:
        """Return the question to ask of one of the tables."""
        return structured_question(table, self.by, k=self.k, counts=self.counts)


def shows(element: str, *, at_least: int | None = None) -> Event[PrivateResult]:
    """Return the event that an element comes first or anywhere with at least this noisy count."""

    def seen(result: PrivateResult) -> bool:
        return any(
            row.element == (element,) and (at_least is None or (row.noisy_count or 0) >= at_least)
            for row in result.rows
        )

    name = f"{element} is shown" if at_least is None else f"{element} >= {at_least}"
    return Event(name, seen, impossible_without=element == "rare")


def first_is(element: str) -> Event[PrivateResult]:
    """Return the event that an element comes first."""
    return Event(
        f"{element} is first", lambda result: bool(result.rows) and result.rows[0].element == (element,)
    )


def _either(event: Event[PrivateResult]) -> tuple[Event[PrivateResult], ...]:
    """Return an event and its opposite."""
    return event, Event(f"not ({event.name})", lambda result: not event.shows(result))


_COUNTS = range(WEB_WITHOUT - 1, WEB_WITHOUT + 3)
KNOWN_LAP = Question(
    "KnownLap",
    "app",
    k=None,
    counts=True,
    epsilon=EPSILON_PER / 2,
    delta=0.0,
    events=tuple(each for count in _COUNTS for each in _either(shows("web", at_least=count))),
)
KNOWN_GUMB = Question(
    "KnownGumb",
    "score",
    k=1,
    counts=True,
    epsilon=2 * EPSILON_PER,
    delta=0.0,
    events=(first_is("high"), first_is("low"), *(shows("high", at_least=count) for count in range(4))),
)
KNOWN_GUMB_ORDER = Question(
    "KnownGumb, order",
    "score",
    k=1,
    counts=False,
    epsilon=EPSILON_PER,
    delta=0.0,
    events=(first_is("high"), first_is("low")),
)
UNK_LAP = Question(
    "UnkLap",
    "cohort",
    k=None,
    counts=True,
    epsilon=EPSILON_PER / 2,
    delta=DELTA,
    events=(shows("rare"), shows("old")),
)
UNK_GUMB = Question(
    "UnkGumb", "article", k=1, counts=False, epsilon=2 * EPSILON_PER, delta=DELTA, events=(shows("rare"),)
)
QUESTIONS = (KNOWN_LAP, KNOWN_GUMB, KNOWN_GUMB_ORDER, UNK_LAP, UNK_GUMB)


@dataclass(frozen=True)
class World:
    """Running services over the two tables."""

    dp: str
    budget: str
    directory: Path

    async def answers(self, question: Question, table: str, times: int, dp: str = "") -> list[PrivateResult]:
        """Ask a question again and again; every answer is a new release and is charged."""
        engine = DuckDBEngine({name: self.directory / f"{name}.parquet" for name in (WITH, WITHOUT)})
        account = f"audit/auditor-{next(_accounts)}"
        limit = asyncio.Semaphore(AT_A_TIME)
        async with AsyncPrivateClient(
            dp=dp or self.dp, budget=self.budget, account=account, engine=engine, timeouts=UNHURRIED
        ) as client:

            async def ask() -> PrivateResult:
                async with limit:
                    return await client.ask(question.about(table))  # type: ignore[arg-type]

            answers = await asyncio.gather(*(ask() for _ in range(times)))
        engine.close()
        return answers

    def audit(self, question: Question, times: int, dp: str = "") -> Finding:
        """Ask a question of both tables and return what the answers prove."""

        async def both() -> list[list[PrivateResult]]:
            return [await self.answers(question, table, times, dp) for table in (WITH, WITHOUT)]

        with_member, without_member = asyncio.run(both())
        return proven_delta(
            with_member, without_member, question.events, epsilon=question.epsilon, delta=question.delta
        )

    @contextmanager
    def broken(self, fault: str) -> Iterator[str]:
        """Run a dp_service with this fault beside the right one, and give its address."""
        key, policy = self.directory / "state" / KEY_FILE, self.directory / "policy.yaml"
        command = [sys.executable, "-m", "tests.campaigns.audit.broken_service", fault]
        options = ["--policy", str(policy), "--key-file", str(key), "--listen", "127.0.0.1:0"]
        root = Path(__file__).parents[3]
        with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, cwd=root, text=True) as process:
            try:
                assert process.stdout is not None
                yield json.loads(process.stdout.readline())["address"]
            finally:
                process.terminate()


@contextmanager
def running_world(directory: Path) -> Iterator[World]:
    """Write both tables and run both services."""
    (directory / "policy.yaml").write_text(POLICY)
    (directory / "budget.yaml").write_text(BUDGET)
    for name, rows in ((WITHOUT, _MEMBERS), (WITH, [*_MEMBERS, _ONE_MORE])):
        columns = "member_id, app, score, cohort, article"
        path = directory / f"{name}.parquet"
        # An empty column has no type of its own.
        query = (
            f"SELECT * REPLACE (article::VARCHAR AS article) FROM (VALUES {', '.join(rows)}) AS t({columns})"
        )
        duckdb.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    with ExitStack() as stack:
        services = stack.enter_context(
            EmbeddedServices(
                policy=directory / "policy.yaml",
                budget_config=directory / "budget.yaml",
                directory=directory / "state",
            )
        )
        yield World(services.dp_address, services.budget_address, directory)
