"""How exact bounded counts and sums are as the services answer them, beside goals, and the CPU of their queries.

    python -m bench bounded_served [--runs 5] [--only cofacts retail events cpu]

Every number is of results that a client has paid for: policy, query on DuckDB, reservation, noise and charge. The error
is the mean distance of the shown numbers from those **before** bounding, or that as a share of each; all of that tells
of the data, and is for their owner. Bounds were chosen on the same data, for each number of units by itself. Goals are
of simulations with continuous noise and any bounds; a mean of few runs may miss one by chance.

CPU is that of the query that DuckDB gets, beside the same question in the clear, by turns.
"""

# ruff: noqa: S608  (the SQL is this benchmark's own)
from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import duckdb

from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from pinot_connector import PrivateClient
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import ChargedUnanswered, EngineUnavailable, OutcomeUnknown, ServiceUnavailable
from pinot_connector.results import PrivateResult
from pinot_connector.shown_values import AggregateValue
from tests.campaigns.newcomers.tables import write_tables

HEADER = "epsilon_per: 0.15\ndelta: 1e-10\ncount_noise: gaussian\ntables:\n"
BUDGET = """
accounts:
  - path: [bench]
    limit: {information: 1000000000, calls: 1000000}
"""
EXAMPLES = Path(__file__).parent.parent / "examples"
EVENTS = 200_000
TRIES, TURNS = 10, 9

_Done = TypeVar("_Done")


@dataclass(frozen=True)
class Data:
    """A file, its member's and its elements' column, and keys of its table in a policy that follow from bounds."""

    path: Path
    member: str
    element: str
    keys: str = ""


@dataclass(frozen=True)
class Bound:
    """Units, and the bounds of members for them: elements, rows, and up to what a total counts in an element.

    `goal` is the error that is expected, and `top` how many of the true top.
    """

    units: int
    typical: int
    goal: float
    rows: int = 1
    upper: int = 1
    top: float = 0.0


@dataclass(frozen=True)
class Asked:
    """A question and the bounds under which it is asked.

    Attributes:
        title: What it is.
        data: The name of its data.
        number: What is counted or summed of each element, in SQL.
        bounds: The bounds.
        listed: How many elements are listed; None: all.
        names: How many elements the domain has, those of most members; 0: it is unknown.
        looks: How many looks there are.
        by: What is grouped by; empty: the elements' column.
        is_relative: Whether errors are shares of each number.
    """

    title: str
    data: str
    number: str
    bounds: tuple[Bound, ...]
    listed: int | None = None
    names: int = 0
    looks: int = 1
    by: str = ""
    is_relative: bool = False


MEMBERS = "COUNT(DISTINCT member_id)"
SUMMED = """    values:
      quantity: {{type: int64, lower: 0, upper: {upper}, row_lower: -10000, row_upper: 10000}}
"""
HOURS = "    time: {{column: ts, type: timestamp, zone: UTC, parts: {{hour: {typical}}}}}\n"
ASKED = (
    Asked(
        "Cofacts, members by article, top 50",
        "cofacts",
        MEMBERS,
        (Bound(7, 6, 15, top=46.2), Bound(20, 8, 9.4, top=47.4), Bound(71, 10, 6, top=48.2)),
        listed=50,
        looks=2,
    ),
    Asked(
        "Retail, members by product, top 50",
        "retail",
        MEMBERS,
        (Bound(20, 32, 16.5, top=44), Bound(100, 32, 9.1, top=47.6)),
        listed=50,
        looks=2,
    ),
    Asked(
        "Retail, rows by product, 75 names",
        "retail",
        "COUNT(*)",
        (Bound(5, 2, 126, 32), Bound(20, 4, 86, 64), Bound(71, 4, 57, 64)),
        names=75,
    ),
    Asked(
        "Retail, sums by product, 75 names",
        "retail",
        "SUM(quantity)",
        (Bound(20, 1, 3493, upper=768), Bound(71, 1, 2833, upper=1280)),
        names=75,
    ),
    Asked(
        "events, rows by page, top 10",
        "events",
        "COUNT(*)",
        (Bound(5, 4, 0.031, 64),),
        listed=10,
        is_relative=True,
    ),
    Asked(
        "events, rows by hour",
        "events",
        "COUNT(*)",
        (Bound(5, 1, 0.70, 8), Bound(20, 1, 0.56, 16)),
        by="EXTRACT(HOUR FROM ts)",
        is_relative=True,
    ),
)
TIMED = (MEMBERS, "COUNT(*)", "SUM(quantity)", "AVG(quantity)")
MOST_CPU = 2.5
PARTS = ("cofacts", "retail", "events", "cpu")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each question and number of units, and for each query's CPU."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory, duckdb.connect() as rows:
        data = dict(_written(Path(directory), options.only, rows))
        print(f"{'':38}{'units':>6}{'shown':>6} {'of the top':>20} {'error':>20}")
        for each in ASKED:
            if each.data in options.only:
                _answered(each, data[each.data], rows, options.runs)
        if "cpu" in options.only:
            _cpu_table(data, rows)


def _written(
    folder: Path, parts: Sequence[str], rows: duckdb.DuckDBPyConnection
) -> Iterator[tuple[str, Data]]:
    """Yield the data by name, each a view of a connection too."""
    data = {
        "cofacts": Data(EXAMPLES / "cofacts" / "feedback.parquet", "member_id", "article_id"),
        "retail": Data(EXAMPLES / "online_retail" / "purchases.parquet", "member_id", "stock_code", SUMMED),
    }
    if "events" in parts:
        path = folder / "some_events.parquet"
        duckdb.sql(f"COPY (FROM '{write_tables(folder, 1.0)['events']}' LIMIT {EVENTS}) TO '{path}'")
        data["events"] = Data(path, "user_id", "page", HOURS)
    for name, each in data.items():
        rows.sql(f"CREATE VIEW {name} AS SELECT * FROM '{each.path}' WHERE {each.member} IS NOT NULL")
        yield name, each


def _text(asked: Asked, data: Data, table: str) -> str:
    by = asked.by or data.element
    ordered = f" ORDER BY 2 DESC LIMIT {asked.listed}" if asked.listed else ""
    return f"SELECT {by}, {asked.number} FROM {table} GROUP BY 1{ordered}"


def _policy(data: Data, bounds: Mapping[str, Bound], domain: Sequence[str], *, looks: int = 1) -> str:
    """Return a policy with a table for each bound."""
    known = f", domain: {json.dumps(domain)}" if domain else ""
    more = ", longest_list: 75" if looks == 2 else ""
    if data.keys is SUMMED:
        more += ", sums: {max_members: 10000, max_rows: 1000000}"
    tables = (
        f"  {name}:\n    member: {data.member}\n    consistency: fresh\n"
        f"    contributions: {{bound: in_query, units: {bound.units}{more}}}\n"
        f"    measures: {{distinct_members: true, rows: {bound.rows}}}\n    columns:\n"
        f"      {data.member}: {{type: string}}\n"
        f"      {data.element}: {{type: string, group_by: true, typical: {bound.typical}{known}}}\n"
        + data.keys.format(upper=bound.upper, typical=bound.typical)
        for name, bound in bounds.items()
    )
    return HEADER + "".join(tables)


def _answered(asked: Asked, data: Data, rows: duckdb.DuckDBPyConnection, runs: int) -> None:
    """Ask under each bound so often, and print what came out."""
    of_members = f"{data.element} FROM {asked.data} GROUP BY 1 ORDER BY COUNT(DISTINCT {data.member}) DESC, 1"
    top = [
        name
        for (name,) in rows.sql(f"SELECT {of_members} LIMIT {asked.names or asked.listed or 0}").fetchall()
    ]
    true = dict(rows.sql(_text(replace(asked, listed=None), data, asked.data)).fetchall())
    bounds = {f"t{bound.units}": bound for bound in asked.bounds}
    domain = top if asked.names else []
    policy = _policy(data, bounds, domain, looks=asked.looks)
    with _client(policy, dict.fromkeys(bounds, data.path)) as client:
        for name, bound in bounds.items():
            found = [_repeated(partial(client.sql, _text(asked, data, name))) for _ in range(runs)]
            shown = [pair for each in found for pair in _numbers(each)]
            errors = [abs(number - true[of]) / (true[of] if asked.is_relative else 1) for of, number in shown]
            of_top = sum(of in top for of, _ in shown) / runs
            print(
                f"{asked.title:38}{bound.units:6}{len(shown) / runs:6.1f} "
                f"{_beside(of_top, bound.top, of_top < bound.top) if bound.top else '':20} "
                f"{_beside(statistics.fmean(errors), bound.goal, statistics.fmean(errors) > bound.goal)}",
                flush=True,
            )


def _numbers(result: PrivateResult) -> Iterator[tuple[object, float]]:
    """Yield each element with what was selected of it."""
    for row in result.rows:
        sums = [each.value for each in row.values if isinstance(each, AggregateValue)]
        yield row.element[0], float(sums[0] if sums else row.noisy_count or 0)


def _beside(found: float, goal: float, is_missed: bool) -> str:
    return f"{found:.4g} (goal {goal:g}{', MISSED' if is_missed else ''})"


def _cpu_table(data: Mapping[str, Data], rows: duckdb.DuckDBPyConnection) -> None:
    """Print what queries take that bound members, beside the same numbers of all rows, on one thread."""
    rows.execute("SET threads = 1")
    for name in ("cofacts", "retail"):
        policy = parse_policy(_policy(data[name], {name: Bound(20, 32, 0, 512)}, []))
        for number in TIMED:
            if "quantity" in number and data[name].keys is not SUMMED:
                continue
            plain = _text(Asked("", name, number, (), listed=50), data[name], name)
            bounded = render(resolve(parse_sql(plain, policy), policy, now=0), "duckdb")
            taken = [(_cpu_of(rows, plain), _cpu_of(rows, bounded)) for _ in range(TURNS)]
            one, other = (1e3 * statistics.median(each) for each in zip(*taken, strict=True))
            ratio = _beside(other / one, MOST_CPU, other > MOST_CPU * one)
            print(f"{name}, {number:28}{one:6.0f} ms in the clear,{other:6.0f} bounded: {ratio} times")


def _cpu_of(rows: duckdb.DuckDBPyConnection, sql: str) -> float:
    before = time.process_time()
    rows.execute(sql).fetchall()
    return time.process_time() - before


def _repeated(work: Callable[[], _Done]) -> _Done:
    """Try again if a service does not answer: on a machine that is busy with other work its heartbeat may be late."""
    for _ in range(TRIES - 1):
        try:
            return work()
        except (ServiceUnavailable, EngineUnavailable, OutcomeUnknown, ChargedUnanswered):
            time.sleep(1)
    return work()


@contextmanager
def _client(policy: str, tables: Mapping[str, Path]) -> Iterator[PrivateClient]:
    """Run both services, and give a client that asks DuckDB."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        folder = Path(directory)
        (folder / "policy.yaml").write_text(policy)
        (folder / "budget.yaml").write_text(BUDGET)
        services = _repeated(lambda: stack.enter_context(_services(folder)))
        engine = DuckDBEngine(dict(tables))
        stack.callback(engine.close)
        client = PrivateClient(
            dp=services.dp_address, budget=services.budget_address, account="bench", engine=engine
        )
        yield stack.enter_context(client)


def _services(folder: Path) -> EmbeddedServices:
    return EmbeddedServices(
        policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder / "state"
    )


if __name__ == "__main__":
    main()
