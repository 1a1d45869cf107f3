"""Every form of condition, on each engine, beside each odd row alone; some hours, most of them Spark's.

    python -m tests.campaigns one_row --engine duckdb --engine spark --engine pinot

Fails with every answer that is an error, or of other rows than the reference selects.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from deploy.pinot.cluster import PinotCluster, Ports
from pinot_connector.engines.spark import SparkEngine
from tests.campaigns.one_row.asking import TABLES, Held, Totals, as_it_is, faults, on_duckdb, written
from tests.campaigns.one_row.forms import forms, policy
from tests.campaigns.one_row.pinot import held_by
from tests.campaigns.one_row.rows import ORDINARY
from tests.engines.pinot.facts import wanted_version


@contextmanager
def on_spark(folder: Path) -> Iterator[Held]:
    """Give a Spark of its own that reads the same."""
    path = folder / "t.parquet"
    written(path, ORDINARY)
    with closing(SparkEngine.at("local[2]", dict.fromkeys(TABLES, str(path)))) as engine:
        yield Held(engine, lambda rows: written(path, rows), as_it_is)


@contextmanager
def on_pinot(folder: Path) -> Iterator[Held]:
    """Give a Pinot of its own, with one server."""
    started = PinotCluster(directory=folder / "pinot", ports=Ports.free(servers=1), version=wanted_version())
    with started as cluster, held_by(cluster) as held:
        yield held


ENGINES: dict[str, Callable[[Path], AbstractContextManager[Held]]] = {
    "duckdb": on_duckdb,
    "spark": on_spark,
    "pinot": on_pinot,
}


def main() -> int:
    """Ask, and print what was wrong and what was looked at."""
    parser = argparse.ArgumentParser("python -m tests.campaigns one_row", description=__doc__)
    parser.add_argument(
        "--engine", action="append", choices=[*ENGINES], help="of several, each; by default all"
    )
    parser.add_argument("--every", type=int, default=1, help="ask every second, third, .. form alone")
    parser.add_argument("--together", action="store_true", help="all odd rows at once, which takes minutes")
    options = parser.parse_args()
    under, failed = policy(), 0
    asked = [*forms(under)][:: options.every]
    for name in options.engine or ENGINES:
        totals, began = Totals(), time.monotonic()
        with tempfile.TemporaryDirectory() as folder, ENGINES[name](Path(folder)) as held:
            found = faults(held, under, asked, totals, one_at_a_time=not options.together)
        failed += len(found)
        for each in found:
            sys.stdout.write(f"{name}: {each}\n")
        seconds = time.monotonic() - began
        sys.stdout.write(f"{name}: {totals}, {len(found)} faults, {seconds:.0f} s\n")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
