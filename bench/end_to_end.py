"""A private top 10 through the whole path beside the same d_bar = 1000 query through the engine's own client alone.

    python -m bench.end_to_end --engine duckdb
    python -m bench.end_to_end --engine pinot        # PINOT_BROKER and PINOT_CONTROLLER, or a cluster that it starts
    python -m bench.end_to_end --engine pinot --events 1000000    # a made-up table of that size, in place of a real one

1, 8 and 32 callers ask, in turns with as many who ask the engine alone, in one process, so that a slow moment of the
machine meets both. Figures are medians over all questions, ratios are medians over the turns. Every private question
has fresh noise and is charged. CPU is that of every process that the benchmark started, for each question.

A Pinot in service is warm: Java compiles what is used often, and a fresh controller takes several times as much CPU for
a request as one that has answered thousands. So all of it is asked for a while before anything is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import httpx
import pinotdb

from bench.cpu import cpu_seconds
from bench.stages import TimedPipeline
from bench.tables import Table, engagement, feedback
from deploy.pinot.cluster import PinotCluster, Ports
from examples.load import load
from pinot_connector import structured_question
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import Engine
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine

CALLERS = (1, 8, 32)
TURNS = 5
WARM_UP = 100
CONTROLLER_WARM_UP = 3000
TARGET_P50, TARGET_THROUGHPUT = 1.15, 0.9
BUDGET = """
create_at_first_use: true
accounts:
  - path: [bench]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [bench, "*"]
    limit: {information: 1000000000, calls: 1000000000}
"""

Ask = Callable[[], object]


@dataclass(frozen=True)
class Turn:
    """One turn: the seconds of each question, of all together, and of the CPU in each process for one question."""

    each: list[float]
    whole: float
    cpu: dict[str, float]

    @property
    def throughput(self) -> float:
        """Questions a second."""
        return len(self.each) / self.whole


@dataclass(frozen=True)
class Figures:
    """Medians in milliseconds and questions a second; ratios are private over alone, turn by turn."""

    callers: int
    private_p50_ms: float
    alone_p50_ms: float
    ratio_p50: float
    private_per_second: float
    alone_per_second: float
    ratio_throughput: float
    stages_ms: dict[str, float]
    private_cpu_ms: dict[str, float]
    alone_cpu_ms: dict[str, float]


@dataclass(frozen=True)
class Engines:
    """The engine of the private path, and how somebody asks who goes round it: each caller with a client of its own.

    All ask about one `table`. `warm_up` asks what a controller is asked for each question, many times.
    """

    table: Table
    private: Engine
    alone: Callable[[str], Ask]
    warm_up: Callable[[], None] = lambda: None


def main() -> None:
    """Measure, and print a table for people or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=["duckdb", "pinot"], default="duckdb")
    parser.add_argument("--questions", type=int, default=100, help="in each turn, all callers together")
    parser.add_argument(
        "--events", type=int, help="rows of a made-up table; without it, a real one of 74,000"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.questions < max(CALLERS):
        parser.error(f"--questions: expected at least {max(CALLERS)}, one for each caller")
    with tempfile.TemporaryDirectory() as folder:
        table = feedback() if options.events is None else engagement(options.events, Path(folder))
        with _engines(options.engine, table) as engines:
            found = asyncio.run(_measure(engines, options.questions))
    if options.json:
        print(json.dumps([asdict(each) for each in found]))
    else:
        _print(options.engine, found)


def _print(engine: str, found: list[Figures]) -> None:
    print(f"{engine}: private top 10 beside the same d_bar = 1000 query alone")
    print("callers  p50 private   alone   ratio (target)      /s private   alone   ratio (target)")
    for each in found:
        print(
            f"{each.callers:7d} {each.private_p50_ms:9.1f} ms {each.alone_p50_ms:5.1f} ms {each.ratio_p50:6.2f} "
            f"(<= {TARGET_P50})    {each.private_per_second:10.1f} {each.alone_per_second:7.1f} "
            f"{each.ratio_throughput:7.2f} (>= {TARGET_THROUGHPUT})"
        )
    for each in found:
        stages = ", ".join(f"{name} {value:.1f}" for name, value in each.stages_ms.items())
        print(f"{each.callers} callers, medians in ms: {stages}")
        for side, cpu_ms in (("private", each.private_cpu_ms), ("alone", each.alone_cpu_ms)):
            parts = ", ".join(f"{name} {value:.1f}" for name, value in sorted(cpu_ms.items()))
            print(f"    {side}: {sum(cpu_ms.values()):.1f} ms of CPU a question: {parts}")


async def _measure(engines: Engines, questions: int) -> list[Figures]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "policy.yaml").write_text(engines.table.policy)
        (folder / "budget.yaml").write_text(BUDGET)
        services = EmbeddedServices(
            policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder
        )
        engines.warm_up()
        with services:
            return [await _with_callers(services, engines, callers, questions) for callers in CALLERS]


async def _with_callers(
    services: EmbeddedServices, engines: Engines, callers: int, questions: int
) -> Figures:
    pipeline = TimedPipeline(services.dp_address, services.budget_address, engines.private)
    question = structured_question(engines.table.name, "article_id", k=10)
    with ThreadPoolExecutor(callers) as threads:
        loop = asyncio.get_running_loop()
        text = await pipeline.rendered(question, engines.private.dialect)
        clients = [engines.alone(text) for _ in range(callers)]

        async def private(_: int) -> object:
            return await pipeline.ask(question)

        async def alone(caller: int) -> object:
            return await loop.run_in_executor(threads, clients[caller])

        for ask in (private, alone):
            await _turn(ask, callers, max(WARM_UP, callers))
        pipeline.forget()
        turns = [
            (await _turn(private, callers, questions), await _turn(alone, callers, questions))
            for _ in range(TURNS)
        ]
    stages = pipeline.medians_ms()
    await pipeline.close()
    return _figures(callers, turns, stages)


async def _turn(ask: Callable[[int], Awaitable[object]], callers: int, questions: int) -> Turn:
    """Have `callers` ask one question after the other, as many together as are said."""
    each: list[float] = []

    async def calling(caller: int) -> None:
        for _ in range(questions // callers):
            started = time.perf_counter()
            await ask(caller)
            each.append(time.perf_counter() - started)

    started, cpu = time.perf_counter(), cpu_seconds()
    await asyncio.gather(*(calling(caller) for caller in range(callers)))
    whole = time.perf_counter() - started
    return Turn(each, whole, {name: (now - cpu[name]) / len(each) for name, now in cpu_seconds().items()})


def _figures(callers: int, turns: list[tuple[Turn, Turn]], stages_ms: dict[str, float]) -> Figures:
    private, alone = ([each for turn in side for each in turn.each] for side in zip(*turns, strict=True))
    return Figures(
        callers=callers,
        private_p50_ms=statistics.median(private) * 1e3,
        alone_p50_ms=statistics.median(alone) * 1e3,
        ratio_p50=statistics.median(statistics.median(p.each) / statistics.median(a.each) for p, a in turns),
        private_per_second=statistics.median(p.throughput for p, _ in turns),
        alone_per_second=statistics.median(a.throughput for _, a in turns),
        ratio_throughput=statistics.median(p.throughput / a.throughput for p, a in turns),
        stages_ms=stages_ms,
        private_cpu_ms=_mean_cpu_ms([p for p, _ in turns]),
        alone_cpu_ms=_mean_cpu_ms([a for _, a in turns]),
    )


def _mean_cpu_ms(turns: list[Turn]) -> dict[str, float]:
    return {name: statistics.mean(turn.cpu[name] for turn in turns) * 1e3 for name in turns[0].cpu}


@contextmanager
def _engines(name: str, table: Table) -> Iterator[Engines]:
    with ExitStack() as stack:
        engines = _duckdb(table) if name == "duckdb" else _pinot(table, *_addresses(stack, table))
        try:
            yield engines
        finally:
            engines.private.close()


def _duckdb(table: Table) -> Engines:
    database = duckdb.connect()
    database.execute(f"CREATE VIEW {table.name} AS SELECT * FROM '{table.parquet}'")  # noqa: S608 - our own file

    def client(sql: str) -> Ask:
        cursor = database.cursor()
        return lambda: cursor.execute(sql).fetchall()

    return Engines(table, DuckDBEngine({table.name: table.parquet}), client)


def _addresses(stack: ExitStack, table: Table) -> tuple[str, str]:
    """Return broker and controller of the cluster that the environment names, or of one that is started."""
    if "PINOT_BROKER" in os.environ:
        return os.environ["PINOT_BROKER"], os.environ["PINOT_CONTROLLER"]
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    cluster = stack.enter_context(PinotCluster(2, directory=folder, ports=Ports.free(2)))
    to = {"controller": cluster.controller_url, "broker": cluster.broker_url}
    load(table.parquet, table.name, segments=table.segments, **to)
    return cluster.broker_url, cluster.controller_url


def _pinot(table: Table, broker: str, controller: str) -> Engines:
    address = urlsplit(broker)

    def client(sql: str) -> Ask:
        connection = pinotdb.connect(
            host=address.hostname, port=address.port, path="/query/sql", scheme=address.scheme
        )
        # pinotdb reads every percent sign as a place for a parameter.
        text = sql.replace("%", "%%")
        return lambda: connection.cursor().execute(text).fetchall()

    def warm_up() -> None:
        with httpx.Client(base_url=controller) as http:
            for _ in range(CONTROLLER_WARM_UP):
                http.get(f"/segments/{table.name}_OFFLINE/crc").raise_for_status()

    return Engines(table, PinotEngine(controller=controller, broker=broker), client, warm_up)


if __name__ == "__main__":
    main()
