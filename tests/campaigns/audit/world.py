"""Two neighbouring tables in DuckDB behind the real services, and questions with what they promise."""

# ruff: noqa: S608  (the SQL is the tests' own)
from __future__ import annotations

import asyncio
import itertools
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Protocol

import duckdb

from pinot_connector import AsyncPrivateClient, Timeouts, sql_question, structured_question
from pinot_connector.embedded import KEY_FILE, EmbeddedServices
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.results import PrivateResult
from pinot_connector.shown_values import AggregateValue

from .estimating import FALSE_ALARM, Event, Finding, proven_delta

EPSILON_PER = 4
DELTA = 0.05
WITH, WITHOUT = "with_member", "without_member"
AT_A_TIME = 8
_A_ROUND = 50
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
SMALL_EPSILON_PER = 0.25
"""Of choices, whose promises have no delta, some 100 answers can prove as much here as 50 000 at EPSILON_PER."""
SMALL_POLICY = POLICY.replace(f"epsilon_per: {EPSILON_PER}", f"epsilon_per: {SMALL_EPSILON_PER}")
# Only with the fourth member do as many use the web as are looked at over an unknown domain.
_BOUNDED_COLUMNS = """
    member: member_id
    consistency: fresh
    contributions: {bound: in_query, units: 1, min_count: 3}
    measures: {distinct_members: true}
    time: {column: day, type: date, buckets: {day: 1}}
    columns:
      member_id: {type: int64}
      app: {type: string, group_by: true, typical: 1, domain: [line, web]}
      program: {type: string, group_by: true, typical: 1}
"""
LOOKS = "_in_two_looks"
"""How the names of the tables end whose questions take two looks; they hold the same rows."""
_LOOKS_COLUMNS = _BOUNDED_COLUMNS.replace("units: 1, min_count: 3", "units: 2, min_count: 3, longest_list: 2")
SHIFTED = "_relative_to_the_total"
"""How the names of the tables end whose counts are released relative to the number of members."""
_SHIFTED_COLUMNS = _BOUNDED_COLUMNS.replace("typical: 1", "typical: 2").replace(", min_count: 3", "")
SUMMED = "_summed"
"""How the names of the tables end whose pieces are summed."""
_LARGEST_TOTAL = 4
_SUMMED_COLUMNS = (
    _BOUNDED_COLUMNS.replace("min_count: 3", "min_count: 3, sums: {max_members: 100, max_rows: 100}")
    + f"""    values:
      pieces: {{type: int64, lower: 0, upper: {_LARGEST_TOTAL}}}
"""
)
BOUNDED_POLICY = (
    f"epsilon_per: {EPSILON_PER}\ndelta: {DELTA}\ncount_noise: gaussian\n"
    f"tables:\n  {WITH}:{_BOUNDED_COLUMNS}  {WITHOUT}:{_BOUNDED_COLUMNS}"
    f"  {WITH}{LOOKS}:{_LOOKS_COLUMNS}  {WITHOUT}{LOOKS}:{_LOOKS_COLUMNS}"
    f"  {WITH}{SHIFTED}:{_SHIFTED_COLUMNS}  {WITHOUT}{SHIFTED}:{_SHIFTED_COLUMNS}"
    f"  {WITH}{SUMMED}:{_SUMMED_COLUMNS}  {WITHOUT}{SUMMED}:{_SUMMED_COLUMNS}"
)
BUDGET = """
accounts:
  - path: [audit]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [audit, "*"]
    limit: {information: 1000000000, calls: 1000000000}
"""
_DAY_COUNT = 16
_DAYS = (date(2026, 1, 1), date(2026, 1, 1 + _DAY_COUNT))
# The three members that both tables have; the fourth has an article and a cohort that nobody else has, and alone comes
# on every day.
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
    by: str | tuple[str, ...]
    k: int | None
    counts: bool
    epsilon: float
    delta: float
    events: tuple[Event[PrivateResult], ...]
    of_table: str = ""
    sums: tuple[str, ...] = ()
    by_day: bool = False

    def about(self, table: str) -> object:
        """Return the question to ask of one of the tables."""
        named = table + self.of_table
        if self.by_day:
            return structured_question(named, "DATE_TRUNC('day', day)", k=self.k, time_range=_DAYS)
        if self.sums:
            return sql_question(sums_of(named, str(self.by), self.sums))
        if self.counts:
            return structured_question(named, self.by, k=self.k)
        order = "ORDER BY COUNT(DISTINCT member_id) DESC"
        return sql_question(f"SELECT {self.by} FROM {named} GROUP BY {self.by} {order} LIMIT {self.k}")


def sums_of(table: str, by: str, columns: tuple[str, ...]) -> str:
    """Return the question for sums of members' totals beside their number, in SQL."""
    outer = ", ".join(f"SUM({each})" for each in columns)
    inner = ", ".join(f"SUM({each}) AS {each}" for each in columns)
    totals = f"SELECT member_id, {by}, {inner} FROM {table} GROUP BY member_id, {by}"
    return f"SELECT {by}, COUNT(*), {outer} FROM ({totals}) GROUP BY {by}"


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
_TOTALS = range(2, 6)


def total_is(at_least: int) -> Event[PrivateResult]:
    """Return the event that a total is at least this large."""
    return Event(f"total >= {at_least}", lambda result: (result.rows[0].noisy_count or 0) >= at_least)


TOTAL = Question(
    "KnownLap, total",
    (),
    k=None,
    counts=True,
    epsilon=EPSILON_PER / 2,
    delta=0.0,
    events=tuple(each for count in _TOTALS for each in _either(total_is(count))),
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
SMALL_KNOWN_GUMB, SMALL_KNOWN_GUMB_ORDER = (
    replace(each, epsilon=each.epsilon * SMALL_EPSILON_PER / EPSILON_PER)
    for each in (KNOWN_GUMB, KNOWN_GUMB_ORDER)
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


def _gaussian_delta(epsilon: float, units: int = 1) -> float:
    """Return the delta of one count that a member changes by 1, at the variance of some units: 4 / (units e^2)."""
    precision = units * EPSILON_PER**2 / 4
    masses = {n: math.exp(-n * n * precision / 2) for n in range(-20, 21)}
    beyond = (masses[n] - math.exp(epsilon) * masses.get(n - 1, 0.0) for n in masses)
    return sum(max(each, 0.0) for each in beyond) / sum(masses.values())


_GAUSSIAN_EPSILON = 2.0
BOUND_GAUSS_KNOWN = Question(
    "BoundGauss, known",
    "app",
    k=None,
    counts=True,
    epsilon=_GAUSSIAN_EPSILON,
    delta=_gaussian_delta(_GAUSSIAN_EPSILON),
    events=KNOWN_LAP.events,
)
BOUND_GAUSS = Question(
    "BoundGauss",
    "program",
    k=None,
    counts=True,
    epsilon=_GAUSSIAN_EPSILON,
    delta=DELTA + _gaussian_delta(_GAUSSIAN_EPSILON),
    events=(replace(shows("web"), impossible_without=True),),
)


def days_are(at_least: int) -> Event[PrivateResult]:
    """Return the event that the counts of all days add up to at least this."""
    return Event(
        f"all days >= {at_least}",
        lambda result: sum(row.noisy_count or 0 for row in result.rows) >= at_least,
    )


# Of the fourth member's days one counts.
SERIES = Question(
    "BoundGauss, series",
    (),
    k=None,
    counts=True,
    epsilon=_GAUSSIAN_EPSILON,
    delta=_gaussian_delta(_GAUSSIAN_EPSILON),
    events=tuple(each for count in (4, 8, 12) for each in _either(days_are(count))),
    by_day=True,
)
# Who is named and counted at least as often as this is seen in both looks.
TWO_LOOKS = Question(
    "BoundGauss, looks",
    "program",
    k=None,
    counts=True,
    epsilon=_GAUSSIAN_EPSILON,
    delta=DELTA + _gaussian_delta(_GAUSSIAN_EPSILON, units=2),
    events=tuple(
        replace(event, impossible_without=True)
        for event in (shows("web"), *(shows("web", at_least=count) for count in (2, 3)))
    ),
    of_table=LOOKS,
)


def members_are(at_least: int) -> Event[PrivateResult]:
    """Return the event that at least so many members are released."""
    return Event(
        f"members >= {at_least}",
        lambda result: result.total is not None and result.total.noisy_count >= at_least,
    )


# Each of the draws has more noise than one count of the same price, which a member changes as much.
SHIFT = Question(
    "BoundGauss, shift",
    "app",
    k=None,
    counts=True,
    epsilon=_GAUSSIAN_EPSILON,
    delta=_gaussian_delta(_GAUSSIAN_EPSILON),
    events=(*KNOWN_LAP.events, *(each for count in _TOTALS for each in _either(members_are(count)))),
    of_table=SHIFTED,
)


def _moments_delta(epsilon: float) -> float:
    """Return the delta of a count and a sum of half a unit each, of a member whose total is the largest there is."""
    by_rho = EPSILON_PER**2 / 8
    of_count = _masses(1 / by_rho)
    of_sum = _masses(_LARGEST_TOTAL**2 / by_rho)
    beyond = (
        p * q - math.exp(epsilon) * of_count.get(n - 1, 0.0) * of_sum.get(b - _LARGEST_TOTAL, 0.0)
        for n, p in of_count.items()
        for b, q in of_sum.items()
    )
    return sum(max(each, 0.0) for each in beyond)


def _masses(variance: float) -> dict[int, float]:
    """Return the discrete Gaussian of this parameter."""
    weights = {n: math.exp(-n * n / (2 * variance)) for n in range(-60, 61)}
    whole = sum(weights.values())
    return {n: weight / whole for n, weight in weights.items()}


def sum_is(at_least: int, *, centred: bool) -> Event[PrivateResult]:
    """Return the event that the sum of those who use the web, or what it is without their count, is so large."""

    def seen(result: PrivateResult) -> bool:
        row = next(row for row in result.rows if row.element == ("web",))
        value = row.values[0]
        assert isinstance(value, AggregateValue)
        found = value.value
        return (2 * found - _LARGEST_TOTAL * int(row.noisy_count or 0) if centred else found) >= at_least

    return Event(f"{'centred sum' if centred else 'sum'} >= {at_least}", seen)


# Each of the two members of web has a total of 0; the fourth member has the largest.
BOUND_MOMENTS = Question(
    "BoundMoments",
    "app",
    k=None,
    counts=True,
    epsilon=_GAUSSIAN_EPSILON,
    delta=_moments_delta(_GAUSSIAN_EPSILON),
    events=(
        *KNOWN_LAP.events,
        *(each for total in (0, 2, 4) for each in _either(sum_is(total, centred=False))),
        *(each for total in (-6, -5) for each in _either(sum_is(total, centred=True))),
    ),
    of_table=SUMMED,
    sums=("pieces",),
)
BOUNDED_QUESTIONS = (BOUND_GAUSS_KNOWN, BOUND_GAUSS, SERIES, TWO_LOOKS, SHIFT, BOUND_MOMENTS)
QUESTIONS = (KNOWN_LAP, TOTAL, KNOWN_GUMB, KNOWN_GUMB_ORDER, UNK_LAP, UNK_GUMB)


class Asked(Protocol):
    """A question that can be asked of either table."""

    def about(self, table: str) -> object:
        """Return the question to ask of one of the tables."""


@dataclass(frozen=True)
class World:
    """Running services over the two tables."""

    dp: str
    budget: str
    directory: Path

    async def answers(self, question: Asked, table: str, times: int, dp: str = "") -> list[PrivateResult]:
        """Ask a question again and again; every answer is a new release and is charged."""
        files = {name: self.directory / f"{name}.parquet" for name in (WITH, WITHOUT)}
        others = {f"{name}{end}": path for name, path in files.items() for end in (LOOKS, SHIFTED, SUMMED)}
        engine = DuckDBEngine(files | others)
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

    def proves_a_fault(self, question: Question, most: int, dp: str) -> bool:
        """Ask in rounds until the answers prove more than the promise, at most so often.

        The rounds share one false alarm, so that a right build is accused no more often than by `audit`.
        """

        async def ask(table: str) -> list[PrivateResult]:
            return await self.answers(question, table, min(_A_ROUND, most), dp)

        async def rounds() -> bool:
            answers: dict[str, list[PrivateResult]] = {WITH: [], WITHOUT: []}
            looks = math.ceil(most / _A_ROUND)
            for _ in range(looks):
                for table in answers:
                    answers[table] += await ask(table)
                finding = proven_delta(
                    answers[WITH],
                    answers[WITHOUT],
                    question.events,
                    epsilon=question.epsilon,
                    delta=question.delta,
                    false_alarm=FALSE_ALARM / looks,
                )
                if finding.proven_delta > question.delta:
                    return True
            return False

        return asyncio.run(rounds())

    @contextmanager
    def broken(self, fault: str) -> Iterator[str]:
        """Run a dp_service with this fault beside the right one, and give its address."""
        key, policy = self.directory / "state" / KEY_FILE, self.directory / "policy.yaml"
        command = [sys.executable, "-m", "tests.campaigns.audit.broken_service", fault]
        options = ["--policy", str(policy), "--key-file", str(key), "--listen", "127.0.0.1:0"]
        with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield json.loads(process.stdout.readline())["address"]
            finally:
                process.terminate()


@contextmanager
def running_world(directory: Path, policy: str = POLICY) -> Iterator[World]:
    """Write both tables and run both services."""
    for name, rows in ((WITHOUT, _MEMBERS), (WITH, [*_MEMBERS, _ONE_MORE])):
        columns = "member_id, app, score, cohort, article"
        path = directory / f"{name}.parquet"
        days = f"CASE article WHEN 'rare' THEN {_DAY_COUNT} ELSE 1 END"
        # An empty column has no type of its own.
        query = (
            "SELECT * REPLACE (article::VARCHAR AS article), app AS program, "
            f"CASE WHEN article = 'rare' THEN {_LARGEST_TOTAL} ELSE 0 END AS pieces, "
            f"DATE '{_DAYS[0]}' + CAST(unnest(range({days})) AS INT) AS day "
            f"FROM (VALUES {', '.join(rows)}) AS t({columns})"
        )
        duckdb.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    with running_services(directory, policy) as world:
        yield world


@contextmanager
def running_services(directory: Path, policy: str) -> Iterator[World]:
    """Run both services over the tables that are in a directory."""
    (directory / "policy.yaml").write_text(policy)
    (directory / "budget.yaml").write_text(BUDGET)
    with EmbeddedServices(
        policy=directory / "policy.yaml",
        budget_config=directory / "budget.yaml",
        directory=directory / "state",
    ) as services:
        yield World(services.dp_address, services.budget_address, directory)
