"""Private domain discovery: pairs per second and memory, by method and number of pairs.

    python -m bench.domains --pairs 1000000 10000000

The data are synthetic (Pareto sizes, zeta elements; section 5.1 of Swanberg et al. 2023), made distinct beforehand, and
every measurement has a process of its own, so that its peak of memory is its own. "read" is the way from a Parquet file
to arrays; it is the same for all methods. A row of a method is the discovery alone, on the arrays. "spark-1" and
"spark-2" are DP-SIPS on a local Spark with one and two cores, from the Parquet file to the domain, without the start of
Spark; their memory and CPU time are those of the Java process, at its default size. They need Java 17 and
pip install 'gris-dp[spark]'.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np

from dp_service.bounding.contributions import Contributions
from dp_service.partitions import KeyedElementNoise, Method, Parameters, discover
from gris_data.domain.canonical_pairs import Source
from gris_data.domain.member_data import read_pairs
from gris_lab.synthetic_data import synthetic

DEFAULT_PAIRS = [10**6, 10**7]
PAIRS_PER_MEMBER = 38
DELTA_0 = 100
READ = "read"
SPARK = {"spark-1": 1, "spark-2": 2}
SEED = bytes(32)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table, or with --one measure one row and print it as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, nargs="+", default=DEFAULT_PAIRS)
    parser.add_argument(
        "--methods", nargs="+", default=[READ, *Method, *SPARK], choices=[READ, *Method, *SPARK]
    )
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        method, folder = options.one
        print(json.dumps(_one(method, Path(folder))))
        return
    print(
        f"{'pairs':>12} {'elements':>10} {'work':>10} {'seconds':>8} {'CPU s':>7} {'pairs/s':>12} {'MiB':>7} "
        f"{'found':>7}"
    )
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory() as folder:
            _prepare(Path(folder), pairs)
            for method in options.methods:
                print(_row(method, folder), flush=True)


def _prepare(folder: Path, pairs: int) -> None:
    """Write distinct pairs as a Parquet file and as arrays."""
    rows = synthetic(max(1, pairs // PAIRS_PER_MEMBER), seed=1)
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        connection.execute(
            f"COPY (SELECT DISTINCT 'member ' || member AS member, 'element ' || element AS element FROM rows) "  # noqa: S608
            f"TO '{folder / 'pairs.parquet'}'"
        )
    del rows
    with read_pairs(
        Source(folder / "pairs.parquet", "member", "element"), delta_0=DELTA_0, salt=b"bench"
    ) as found:
        contributions = found.contributions
        np.savez(
            folder / "arrays.npz",
            offsets=contributions.offsets,
            elements=contributions.elements,
            keys=found.keys,
        )


def _row(method: str, folder: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bench.domains", "--one", method, folder],
        capture_output=True,
        text=True,
        check=True,
    )
    row = json.loads(done.stdout)
    speed = row["pairs"] / row["seconds"]
    return (
        f"{row['pairs']:>12,} {row['elements']:>10,} {method:>10} {row['seconds']:>8.2f} {row['cpu']:>7.2f} "
        f"{speed:>12,.0f} {row['mib']:>7,.0f} {row['found']:>7,}"
    )


def _one(work: str, folder: Path) -> dict[str, float]:
    if work == READ:
        return _read(folder)
    return _on_spark(SPARK[work], folder) if work in SPARK else _discovered(Method(work), folder)


def _on_spark(cores: int, folder: Path) -> dict[str, float]:
    from dp_service.partitions.spark import discover_on_spark  # noqa: PLC0415 - pyspark is an extra
    from pinot_connector.engines.spark.sessions import own_session, started  # noqa: PLC0415

    parameters = Parameters(Method.SIPS, Fraction(1, 10), Fraction(1, 10**5), DELTA_0)
    with np.load(folder / "arrays.npz") as arrays:
        pairs, elements = arrays["offsets"][-1], len(arrays["keys"])
    spark = started(f"local[{cores}]")
    with own_session(spark) as session:
        session.conf.set("spark.sql.shuffle.partitions", str(4 * cores))
        texts = session.read.parquet(str(folder / "pairs.parquet"))
        # Java compiles itself warm and Python's workers start, as in any longer run.
        discover_on_spark(texts.limit(1000), parameters, seed=SEED, salt=b"bench")
        start, cpu = time.perf_counter(), _java("cpu")
        found = discover_on_spark(texts, parameters, seed=SEED, salt=b"bench")
        row = {"pairs": int(pairs), "elements": elements, "seconds": time.perf_counter() - start}
        row |= {"cpu": _java("cpu") - cpu, "mib": _java("mib"), "found": sum(map(len, found))}
    spark.stop()
    return row


def _java(measure: str) -> float:
    """Return CPU seconds or peak MiB of the Java process that this one has started."""
    (process,) = (
        each.parent
        for each in Path("/proc").glob("[0-9]*/stat")
        if each.read_text().rpartition(")")[2].split()[1] == str(os.getpid())
        and "java" in (each.parent / "comm").read_text()
    )
    if measure == "cpu":
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


def _read(folder: Path) -> dict[str, float]:
    start, cpu = time.perf_counter(), time.process_time()
    with read_pairs(
        Source(folder / "pairs.parquet", "member", "element"), delta_0=DELTA_0, salt=b"bench"
    ) as found:
        return _measured(found.contributions, start, cpu, found=0)


def _discovered(method: Method, folder: Path) -> dict[str, float]:
    with np.load(folder / "arrays.npz") as arrays:
        keys = arrays["keys"]
        pairs = Contributions(arrays["offsets"], arrays["elements"], len(keys))
    parameters = Parameters(method, Fraction(1, 10), Fraction(1, 10**5), DELTA_0)
    start, cpu = time.perf_counter(), time.process_time()
    found = discover(pairs, parameters, KeyedElementNoise(SEED, parameters, keys))
    return _measured(pairs, start, cpu, found=found.elements.size)


def _measured(pairs: Contributions, start: float, cpu: float, *, found: int) -> dict[str, float]:
    return {
        "pairs": pairs.elements.size,
        "elements": pairs.element_count,
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "mib": _peak_mib(),
        "found": found,
    }


def _peak_mib() -> float:
    """Return the most memory that this process had; what getrusage tells begins with its parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    main()
