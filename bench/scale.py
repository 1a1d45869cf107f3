"""What a question costs by a raw table, by its pairs copy, and by the copy with a star-tree.

    python -m bench.scale --events 1000000 10000000 --engine duckdb pinot

Events are made up: elements by Zipf's law out of 100,000, members by Pareto's with integers for names (or texts of 32
characters, by `--members text`), an attribute of 20 values, two months. Each way answers in its turn within every
round:

- plain: the `COUNT(DISTINCT member)` of a top 10 that a user writes, without any option, by the raw table;
- raw: the private question's query by the raw table, with all that makes it exact;
- pairs: the same by the pairs copy, without an index;
- star-tree: the same by the copy with Pinot's star-tree;
- its query: the query of "star-tree" alone, sent as the plain one is, without the requests that show its answer whole;
- private: a private top 10 from end to end, with services, budget and noise, by the best copy of the engine.

Figures are medians of seconds and, in brackets, their ratio to plain in the same run. "tool" are runs of
`gris bound --pairs`: of both months at once, and of the second one alone, with the whole table and with
`--new-periods-only`, from a file in the order of time. DuckDB reads Parquet. Pinot has two servers on this machine.
Beyond 10^7 events nothing is appended, and Pinot holds the copy with the star-tree alone.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import httpx

from deploy.pinot.cluster import PinotCluster, Ports
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import Filter, In, TimeRange
from dp_service.queries.policy import read_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from examples.load import load, load_pairs
from pinot_connector import PrivateClient
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import Engine, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from tests.support.engine_queries import engine_query

ELEMENTS, ATTRIBUTES, EVENTS_OF_A_MEMBER, ROWS_OF_A_SEGMENT = 100_000, 20, 10, 1_250_000
MOST_SEGMENTS = 8
EVENTS_OF_A_COPYS_SEGMENT = 5 * 10**7
# Beyond these, making and loading what is only compared would take hours.
MOST_RAW_EVENTS_ON_PINOT, MOST_EVENTS_APPENDED = 10**7, 10**7
FEBRUARY, UNTIL = datetime.date(2024, 2, 1), datetime.date(2024, 3, 1)
TIMEOUT_SECONDS = 300.0
POLICY = """
epsilon_per: 0.15
delta: 1e-11
tables:
  events:
    member: member
    time: {column: day, type: date}
    consistency: fresh
    measures: {distinct_members: true}
    columns:
      member: {type: MEMBER}
      article: {type: string, group_by: true}
      country: {type: string, filter: [in], attribute: true}
    prepared: {table: pairs, manifest: copy/manifest.json}
"""
BUDGET = "accounts:\n  - path: [bench]\n    limit: {information: 1000000000, calls: 1000000}\n"


@dataclass(frozen=True)
class Asked:
    """A question: the condition that a user would write, and what the private question says."""

    what: str
    condition: str
    start: datetime.date | None
    filters: tuple[Filter, ...]


QUESTIONS = (
    Asked("all", "", None, ()),
    Asked("one month", "day >= {feb}", FEBRUARY, ()),
    Asked("one attribute", "country = 'c3'", None, (In("country", ("c3",)),)),
)
Ways = Mapping[str, Callable[[], object]]
Plain = Callable[[str], object]
# What a policy calls a member's name of this kind, and how one is made of its number.
MEMBERS = {"integer": ("int64", "member"), "text": ("string", "md5(member::VARCHAR)")}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--engine", nargs="+", choices=("duckdb", "pinot"), default=["duckdb", "pinot"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--members", choices=list(MEMBERS), default="integer", help="what members are named by"
    )
    parser.add_argument("--tool-only", action="store_true", help="ask nothing: measure how copies are made")
    parser.add_argument(
        "--tool-on-spark", action="store_true", help="make the copy on Spark too, with one and two cores"
    )
    options = parser.parse_args(arguments)
    for events in options.events:
        with tempfile.TemporaryDirectory() as folder:
            kind, name = MEMBERS[options.members]
            _generate(Path(folder) / "events.parquet", events, name)
            (Path(folder) / "policy.yaml").write_text(POLICY.replace("MEMBER", kind))
            _make_copies(Path(folder), events)
            if options.tool_on_spark:
                _make_copies_on_spark(Path(folder), events)
            if not options.tool_only:
                _of_size(Path(folder), events, options.engine, options.rounds)


def _of_size(folder: Path, events: int, engines: Sequence[str], rounds: int) -> None:
    (folder / "budget.yaml").write_text(BUDGET)
    for name in engines:
        opened = _duckdb if name == "duckdb" else _pinot
        services = EmbeddedServices(
            policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder
        )
        with (
            opened(folder, events) as (engine, plain, has_raw),
            services as running,
            PrivateClient(
                dp=running.dp_address, budget=running.budget_address, account="bench", engine=engine
            ) as client,
        ):
            for asked in QUESTIONS:
                ways = _ways(folder, asked, engine, plain, client, has_raw=has_raw)
                _print(events, name, asked.what, _medians(ways, rounds))


def _generate(path: Path, events: int, name: str) -> None:
    """Write the events, with members by this name; what is drawn is the same in every run."""
    members = max(1, events // EVENTS_OF_A_MEMBER)
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute("SELECT setseed(0.25)")
        # Pareto's and Zipf's law by inversion, cut at the last member and element.
        drawn = (
            f"SELECT least({members}, floor(random() ** -0.9 * {members} / 20))::INTEGER AS member, "  # noqa: S608
            f"least({ELEMENTS}, floor(random() ** -1.1))::INTEGER AS element, floor(random() * 60)::INTEGER AS day "
            f"FROM range({events})"
        )
        connection.execute(
            f"COPY (SELECT {name} AS member, 'article ' || element AS article, "  # noqa: S608
            f"'c' || hash(member) % {ATTRIBUTES} AS country, DATE '2024-01-01' + day AS day FROM ({drawn})) "
            f"TO '{path}' (FORMAT parquet)"
        )


def _make_copies(folder: Path, events: int) -> None:
    """Make the copy of both months, and append the second one to copies of the first."""
    _run_tool(folder / "events.parquet", folder / "copy", UNTIL, events, "at once")
    if events > MOST_EVENTS_APPENDED:
        return
    ordered = folder / "by_day.parquet"
    with duckdb.connect() as connection:
        rows = f"SELECT * FROM read_parquet('{folder}/events.parquet') ORDER BY day"  # noqa: S608
        connection.execute(f"COPY ({rows}) TO '{ordered}' (FORMAT parquet)")
    for what, options in (("appending", ()), ("appending, new periods only", ("--new-periods-only",))):
        with tempfile.TemporaryDirectory(dir=folder) as grown:
            _run_tool(ordered, Path(grown), FEBRUARY, events, "one month")
            _run_tool(ordered, Path(grown), UNTIL, events, what, *options)
    ordered.unlink()


def _make_copies_on_spark(folder: Path, events: int) -> None:
    """Make the copy of both months."""
    for cores in (1, 2):
        with tempfile.TemporaryDirectory(dir=folder) as copy:
            options = ("--engine", "spark", "--spark", f"local[{cores}]")
            what = f"at once, on Spark with {cores} of its threads"
            _run_tool(folder / "events.parquet", Path(copy), UNTIL, events, what, *options)


def _run_tool(source: Path, copy: Path, until: datetime.date, events: int, what: str, *options: str) -> None:
    command = [sys.executable, "-m", "gris_cli", "bound", "--input", str(source), "--pairs", str(copy)]
    command += ["--table", "events", "--member", "member", "--elements", "article", "--attributes", "country"]
    command += ["--period", "day", "--calendar", "month", "--until", until.isoformat(), "--json", *options]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    peak, ended = 0, 0
    while not ended:
        # What the process itself had: the system's own figure counts what this one had when it was forked.
        peak = max(peak, _peak_kib(process.pid))
        time.sleep(0.02)
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
    output = process.stdout.read() if process.stdout else b""
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    seconds, cpu = time.perf_counter() - start, used.ru_utime + used.ru_stime
    # Spark's work is done by another process.
    used_here = "" if "spark" in options else f", {cpu:.1f} CPU s, {peak / 1024:.0f} MiB"
    pairs = json.loads(output)["pairs"]
    print(f"{events:>12,} tool, {what}: {pairs:,} pairs written, {seconds:.1f} s{used_here}", flush=True)


def _peak_kib(process: int) -> int:
    """Return the most memory that a process has had; 0 if it has ended."""
    found = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if "VmHWM" in line]
    return int(found[0].split()[1]) if found else 0


@contextmanager
def _duckdb(folder: Path, _events: int) -> Iterator[tuple[Engine, Plain, bool]]:
    files = {"events": folder / "events.parquet", "pairs": folder / "copy" / "manifest.json"}
    engine = DuckDBEngine(files, timeout_seconds=TIMEOUT_SECONDS)
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE VIEW events AS SELECT * FROM read_parquet('{folder}/events.parquet')"  # noqa: S608
        )
        yield (
            engine,
            lambda sql: connection.execute(sql.replace("{feb}", "DATE '2024-02-01'")).fetchall(),
            True,
        )
    engine.close()


@contextmanager
def _pinot(folder: Path, events: int) -> Iterator[tuple[Engine, Plain, bool]]:
    segments = max(2, min(MOST_SEGMENTS, -(-events // ROWS_OF_A_SEGMENT)))
    with (
        PinotCluster(directory=folder / "pinot", ports=Ports.free(servers=2)) as cluster,
        httpx.Client(timeout=TIMEOUT_SECONDS) as http,
    ):
        urls: dict[str, Any] = {"controller": cluster.controller_url, "broker": cluster.broker_url}
        # A server that builds the star-tree of a segment holds all of its pairs.
        of_a_period = -(-events // EVENTS_OF_A_COPYS_SEGMENT)
        load_pairs(folder / "copy", "pairs", segments=of_a_period, **urls)
        has_raw = events <= MOST_RAW_EVENTS_ON_PINOT
        if has_raw:
            load_pairs(folder / "copy", "bare_pairs", segments=of_a_period, star_tree=False, **urls)
            load(folder / "events.parquet", "events", segments=segments, **urls)
        engine = PinotEngine(
            controller=cluster.controller_url, broker=cluster.broker_url, timeout_seconds=TIMEOUT_SECONDS
        )

        def plain(sql: str) -> object:
            text = f"SET timeoutMs={int(TIMEOUT_SECONDS * 1000)}; {sql.replace('{feb}', '19754')}"
            answer = http.post(f"{cluster.broker_url}/query/sql", json={"sql": text}).json()
            if answer.get("exceptions"):
                raise RuntimeError("Pinot did not answer the plain query")
            return answer

        yield engine, plain, has_raw
        engine.close()


def _ways(
    folder: Path, asked: Asked, engine: Engine, plain: Plain, client: PrivateClient, *, has_raw: bool
) -> Ways:
    policy = read_policy((folder / "policy.yaml").read_bytes(), str(folder / "policy.yaml")).policy
    bare = replace(policy, tables=tuple(each.model_copy(update={"prepared": None}) for each in policy.tables))
    midnight = datetime.time(tzinfo=datetime.UTC)
    start = None if asked.start is None else datetime.datetime.combine(asked.start, midnight)
    whole = TimeRange(start, datetime.datetime.combine(UNTIL, midnight))
    query = HistogramQuery("events", ("article",), Measure.DISTINCT_MEMBERS, asked.filters, whole, k=10)
    of_copy = resolve(query, policy, now=0)
    where = f" WHERE {asked.condition}" if asked.condition else ""
    sql = (
        f"SELECT article, COUNT(DISTINCT member) FROM events{where} GROUP BY article "  # noqa: S608
        "ORDER BY COUNT(DISTINCT member) DESC LIMIT 10"
    )
    conditions = {each.column: list(each.values) for each in asked.filters if isinstance(each, In)}
    is_pinot = isinstance(engine, PinotEngine)
    without_index = (
        replace(of_copy, query=replace(of_copy.query, table="bare_pairs")) if is_pinot else of_copy
    )
    ways: dict[str, Callable[[], object]] = {}
    if has_raw:
        ways["plain"] = lambda: plain(sql)
        ways["raw"] = _of(engine, engine_query(resolve(query, bare, now=0), engine.dialect))
        ways["pairs"] = _of(engine, engine_query(without_index, engine.dialect))
    if is_pinot:
        prepared = engine_query(of_copy, engine.dialect)
        ways["star-tree"] = _of(engine, prepared)
        ways["its query"] = lambda: plain(prepared.sql)
    ways["private"] = lambda: client.top_k(
        "events", "article", 10, where=conditions, time_range=(asked.start or datetime.date(1, 1, 1), UNTIL)
    )
    return ways


def _of(engine: Engine, query: EngineQuery) -> Callable[[], object]:
    def ask() -> object:
        answer = engine.run(query, engine.data_version(query.table))
        engine.confirm(query, answer)
        return answer

    return ask


def _medians(ways: Ways, rounds: int) -> dict[str, float]:
    """Return the median seconds of each way; a first round is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, ask in ways.items():
            start = time.perf_counter()
            ask()
            if number:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in seconds.items()}


def _print(events: int, engine: str, what: str, medians: Mapping[str, float]) -> None:
    plain = medians.get("plain")
    shown = "  ".join(
        f"{name} {each:.3f}" + (f" ({each / plain:.3f})" if plain else "") for name, each in medians.items()
    )
    print(f"{events:>12,} {engine:>7} {what:>14}  {shown}", flush=True)


if __name__ == "__main__":
    main()
