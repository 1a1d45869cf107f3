"""A private top 10 through the whole path beside the same d_bar = 1000 query through the engine alone.

    python -m bench.path --engine duckdb
    python -m bench.path --engine pinot        # PINOT_BROKER and PINOT_CONTROLLER say where

Both run in turn in one process, so that a slow moment of the machine meets both; figures are medians, and the ratio
is taken pair by pair. Every private question is a new one (fresh consistency) and is charged.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pinotdb

from pinot_connector import PrivateClient, structured_question
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import Engine
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TABLE = "cofacts_feedback"
BUDGET = """
create_at_first_use: true
accounts:
  - path: [bench, "*"]
    limit: {information: 1000000000, calls: 1000000000}
"""


@dataclass(frozen=True)
class Figures:
    """Medians in milliseconds, and the median of the ratios pair by pair."""

    engine: str
    pairs: int
    private_p50_ms: float
    engine_alone_p50_ms: float
    ratio_p50: float


def main() -> None:
    """Measure, print the figures as a line for people or as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=["duckdb", "pinot"], default="duckdb")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options.engine, options.pairs)
    if options.json:
        print(json.dumps(asdict(figures)))
        return
    print(
        f"{figures.engine}: private top 10 {figures.private_p50_ms:.1f} ms, "
        f"d_bar = 1000 query alone {figures.engine_alone_p50_ms:.1f} ms, "
        f"ratio {figures.ratio_p50:.2f} (medians of {figures.pairs} pairs)"
    )


def measure(engine_name: str, pairs: int) -> Figures:
    """Ask in turn through the whole path and through the engine alone."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "policy.yaml").write_text(_policy_with_fresh_noise())
        (folder / "budget.yaml").write_text(BUDGET)
        services = EmbeddedServices(
            policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder
        )
        engine, alone = _engines(engine_name)
        with services, _client(services, engine) as client:
            text = _rendered(client, engine.dialect)
            timings = [
                (_seconds(lambda: client.top_k(TABLE, "article_id", 10)), _seconds(lambda: alone(text)))
                for _ in range(pairs + 20)
            ][20:]
        engine.close()
    return _figures(engine_name, timings)


def _figures(engine: str, timings: list[tuple[float, float]]) -> Figures:
    private, alone = zip(*timings, strict=True)
    return Figures(
        engine=engine,
        pairs=len(timings),
        private_p50_ms=statistics.median(private) * 1e3,
        engine_alone_p50_ms=statistics.median(alone) * 1e3,
        ratio_p50=statistics.median(p / a for p, a in timings),
    )


def _policy_with_fresh_noise() -> str:
    text = (EXAMPLES / "policy.yaml").read_text()
    return text.replace("    member: member_id\n", "    member: member_id\n    consistency: fresh\n")


def _client(services: EmbeddedServices, engine: Engine) -> PrivateClient:
    return PrivateClient(
        dp=services.dp_address, budget=services.budget_address, account="bench/analyst", engine=engine
    )


def _rendered(client: PrivateClient, dialect: str) -> str:
    question = structured_question(TABLE, "article_id", k=10)
    return next(query.sql for query in client.explain(question).queries if query.dialect == dialect)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _engines(name: str) -> tuple[Engine, Callable[[str], object]]:
    return _duckdb() if name == "duckdb" else _pinot()


def _duckdb() -> tuple[Engine, Callable[[str], object]]:
    path = EXAMPLES / "cofacts" / "feedback.parquet"
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW {TABLE} AS SELECT * FROM '{path}'")  # noqa: S608 - our own file
    return DuckDBEngine({TABLE: path}), lambda sql: connection.execute(sql).fetchall()


def _pinot() -> tuple[Engine, Callable[[str], object]]:
    broker = os.environ.get("PINOT_BROKER", "http://localhost:8099")
    controller = os.environ.get("PINOT_CONTROLLER", "http://localhost:9000")
    address = urlsplit(broker)
    connection = pinotdb.connect(
        host=address.hostname, port=address.port, path="/query/sql", scheme=address.scheme
    )

    def ask(sql: str) -> object:
        # pinotdb reads every percent sign as a place for a parameter.
        return connection.cursor().execute(sql.replace("%", "%%")).fetchall()

    return PinotEngine(controller=controller, broker=broker), ask


if __name__ == "__main__":
    main()
