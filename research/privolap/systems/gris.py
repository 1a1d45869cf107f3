"""Gris as its users run it: both services, a strict ledger, DuckDB over Parquet, and a policy."""

from __future__ import annotations

import hashlib
import math
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

from dp_service.accounting.solving import Split, Target, information_for, split_of
from dp_service.mechanisms import Currency
from gris_cli.data.bound.source import Columns
from gris_cli.data.errors import InputError
from pinot_connector import PrivateClient
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import BudgetExhausted
from pinot_connector.results import PrivateResult, Row
from pinot_connector.shown_values import AggregateValue
from research.lab.bound.contributions import DataFile, counts_of_file
from research.lab.bound.looks import Question as ListQuestion
from research.lab.bound.proposal import policy_block, proposal, trade_off
from research.lab.bound.search import USEFUL
from research.lab.simulation import Draws
from research.privolap.questions import (
    MEMBERS,
    ROWS,
    SUM,
    Answer,
    Budget,
    BudgetSpentError,
    Data,
    Key,
    Kind,
    Question,
    System,
    version_of,
)

EPSILON_PER, K, D_BAR, TRIALS = Fraction("0.05"), 50, 1000, 20
TABLES = {Kind.TOP: "lists", Kind.SERIES: "months", Kind.SUM: "sums"}


class Gris(System):
    """Gris with lists bounded as in the documentation, or as the laboratory proposes for these data.

    The second one is what a specialist makes of it, who also gives lists a larger part of the budget.
    """

    def __init__(self, *, planned: bool = False) -> None:
        self.name = "Gris, planned" if planned else "Gris"
        self._planned = planned
        self._stack = ExitStack()
        self._running: dict[Path, EmbeddedServices] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has services of its own.
        return partial(Gris, planned=self._planned), ()

    def version(self) -> str:
        """Return that of the package, and the commit of this copy, where it is one of git."""
        asked = ("git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD")
        commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
        return f"{version_of('gris-dp')} {commit}".strip()

    def close(self) -> None:
        """Stop the services."""
        self._stack.close()
        self._running.clear()

    @contextmanager
    def open(self, data: Data, budget: Budget, state: Path) -> Iterator[_Session]:
        """Open data for the account that is called as the folder; folders beside each other share the services."""
        target = Target(Fraction(str(budget.epsilon)), Fraction(str(budget.delta)), gaussian=True)
        calls = 2 * len(budget.script)
        split = split_of(target, calls, share=Fraction(1, 2))
        # Rounded down, so that a policy can say it.
        split = replace(split, delta=Fraction(math.floor(split.delta * 10**12), 10**12))
        information = information_for(target, split, epsilon_per=EPSILON_PER)
        policy = self._policy(data, budget, information, split)
        services = self._services(state.parent, policy, _accounts(information, calls))
        tables = ("lists", "months", "numbers", "sums")
        with (
            closing(DuckDBEngine(dict.fromkeys(tables, data.path))) as engine,
            PrivateClient(
                dp=services.dp_address,
                budget=services.budget_address,
                account=f"privolap/{state.name}",
                engine=engine,
            ) as client,
        ):
            yield _Session(client, data, information)

    def _services(self, parent: Path, policy: str, accounts: str) -> EmbeddedServices:
        home = parent / f"gris-{hashlib.sha256((policy + accounts).encode()).hexdigest()[:16]}"
        if home not in self._running:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            (home / "policy.yaml").write_text(policy)
            (home / "budget.yaml").write_text(accounts)
            self._running[home] = self._stack.enter_context(
                EmbeddedServices(
                    policy=home / "policy.yaml", budget_config=home / "budget.yaml", directory=home / "state"
                )
            )
        return self._running[home]

    def _policy(self, data: Data, budget: Budget, information: int, split: Split) -> str:
        units = {
            kind: max(1, int(information * budget.share(of_kind, weighted=self._planned)))
            for kind in Kind
            for of_kind in [next((each for each in budget.script if each.kind is kind), budget.script[0])]
        }
        lengths = frozenset(each.k for each in budget.script if each.kind is Kind.TOP)
        lists, typical = (
            planned(data, lengths, units[Kind.TOP], split.delta)
            if self._planned
            else _documented(data, units[Kind.TOP])
        )
        return (
            f"epsilon_per: {float(EPSILON_PER)}\ndelta: {float(split.delta):g}\ncount_noise: gaussian\ntables:\n"
            + "".join(
                f"  {name}:\n    member: member\n    time: {{column: day, type: date, buckets: {{month: {data.months}}}}}\n{text}"
                for name, text in (
                    ("lists", f"    {lists}\n    measures: {{distinct_members: true}}\n{_columns(data, typical)}"),
                    ("months", _months(data, units[Kind.SERIES])),
                    ("numbers", _numbers(data, units[Kind.MEMBERS])),
                    ("sums", _sums(data, units[Kind.SUM])),
                )
            )
        )


def _accounts(information: int, calls: int) -> str:
    """Return as many accounts as are opened, each with the whole budget."""
    return (
        "accounts:\n"
        f"  - {{path: [privolap], limit: {{information: {1000 * information}, calls: {1000 * calls}}}}}\n"
        f'  - {{path: [privolap, "*"], limit: {{information: {information}, calls: {calls}}}}}\n'
    )


def _documented(data: Data, units: int) -> tuple[str, int]:
    """Return what `examples/bounded` has, for members with so many items, and how many are typical."""
    longest = f"longest_list: {3 * K // 2}"
    return f"contributions: {{bound: in_query, units: {units}, min_count: 1, {longest}}}", data.items


@cache
def planned(data: Data, lengths: frozenset[int], units: int, delta: Fraction) -> tuple[str, int]:
    """Return block and typical items that are proposed for the longest list that is expected to be useful.

    Where none is, they are for the shortest.
    """
    proposed = _documented(data, units)
    for k in sorted(lengths, reverse=True):
        asked = ListQuestion(Currency(EPSILON_PER, delta), k, 1, D_BAR)
        source = DataFile(data.path, Columns("member", ("item",)), drops_nulls=True, memory="2GB")
        try:
            counts = counts_of_file(source, asked.k, asked.most_names)
        except InputError:
            # A trap's table has too few items to plan for.
            continue
        made = trade_off(counts, asked, (units,), TRIALS, Draws(1), seed=1)
        best = proposal(made, counts, asked).proposed
        proposed = policy_block(best.look, asked)
        if USEFUL.is_met(best.worth, k):
            break
    return proposed


def _months(data: Data, units: int) -> str:
    bound = f"bound: in_query, units: {units}"
    return f"    contributions: {{{bound}}}\n    measures: {{distinct_members: true}}\n{_columns(data)}"


def _numbers(data: Data, units: int) -> str:
    return (
        f"    contributions: {{bound: in_query, units: {units}}}\n"
        f"    measures: {{distinct_members: true, rows: {data.rows}}}\n{_columns(data)}"
    )


def _sums(data: Data, units: int) -> str:
    # Apart from rows: a table with both allows sums over rows too, whose noise may be too large to be drawn.
    return (
        f"    contributions: {{bound: in_query, units: {units}, "
        "sums: {max_members: 1000000, max_rows: 100000000}}\n"
        "    measures: {distinct_members: true}\n"
        f"    values: {{amount: {{type: decimal, quantum: 1, lower: 0, upper: {data.total}, "
        f"row_lower: -{data.row}, row_upper: {data.row}}}}}\n{_columns(data)}"
    )


def _columns(data: Data, typical: int = 1) -> str:
    slices, tags = (
        "[" + ", ".join(f"'{each}'" for each in known) + "]" for known in (data.slices, data.tags)
    )
    return (
        "    columns:\n      member: {type: string}\n      " f"item: {{type: string, group_by: true, typical: {typical}}}\n"
        f"      slice: {{type: string, group_by: true, typical: {typical}, filter: [in, not_in], domain: {slices}}}\n"
        f"      tag: {{type: string, group_by: true, typical: {typical}, filter: [in, not_in], domain: {tags}}}\n"
        "      day: {type: date, filter: [range]}\n"
    )


class _Session:
    def __init__(self, client: PrivateClient, data: Data, information: int) -> None:
        self._client, self._data, self._information = client, data, information

    def price(self, question: Question) -> float:
        cost = self._client.explain(self._text(question)).worst_case_cost
        return cost.information / self._information

    def left(self) -> float:
        return self._client.remaining()[-1].remaining.information / self._information

    def ask(self, question: Question) -> Answer:
        try:
            result = self._client.sql(self._text(question))
        except BudgetExhausted as error:
            raise BudgetSpentError(str(error)) from None
        return _answer(question, result)

    def _text(self, question: Question) -> str:
        table = TABLES.get(question.kind, "numbers")
        ending = f"FROM {table} WHERE {question.conditions}"
        steps = ", ".join(f"tag = '{each}'" for each in self._data.tags)
        return {
            Kind.TOP: f"SELECT item, {MEMBERS} {ending} GROUP BY item ORDER BY 2 DESC LIMIT {question.k}",
            Kind.ROWS: f"SELECT {ROWS} {ending}",
            Kind.SUM: f"SELECT {MEMBERS}, {SUM} {ending}",
            Kind.MEMBERS: f"SELECT {MEMBERS} {ending}",
            Kind.SERIES: f"SELECT DATE_TRUNC('month', day), {MEMBERS} {ending} GROUP BY 1",
            Kind.FUNNEL: f"SELECT FUNNEL_COUNT(STEPS({steps}), CORRELATE_BY(member)) {ending}",
        }[question.kind]


def _answer(question: Question, result: PrivateResult) -> Answer:
    return {_key(question, place, row): _number(question, row) for place, row in enumerate(result.rows, 1)}


def _key(question: Question, place: int, row: Row) -> Key:
    if question.kind is Kind.FUNNEL:
        return place
    if question.kind not in (Kind.TOP, Kind.SERIES):
        return 0
    element = row.element[0]
    if question.kind is Kind.SERIES:
        return str(element)[: len("2020-01")]
    return element if isinstance(element, str) else None


def _number(question: Question, row: Row) -> float:
    if question.kind is Kind.SUM:
        return next(float(each.value) for each in row.values if isinstance(each, AggregateValue))
    return float(row.noisy_count or 0)
