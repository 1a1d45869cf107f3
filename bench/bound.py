"""`gris bound`: pairs per second and memory, by number of pairs.

    python -m bench.bound --pairs 1000000 10000000

The data are synthetic (Pareto sizes, zeta elements; section 5.1 of Swanberg et al. 2023), made distinct beforehand and
written as Parquet and as CSV. Every measurement is the command itself in a process of its own, from start to end.
"bounded" is the share of pairs that members with more than Delta_0 elements hold: only these are ordered.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb

from gris_lab.synthetic_data import synthetic

DEFAULT_PAIRS = [10**6, 10**7]
PAIRS_PER_MEMBER = 38
DELTA_0 = 32


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, nargs="+", default=DEFAULT_PAIRS)
    parser.add_argument("--memory", default="2GB")
    options = parser.parse_args(arguments)
    print(f"{'pairs':>12} {'bounded':>8} {'input':>8} {'seconds':>8} {'CPU s':>7} {'pairs/s':>10} {'MiB':>6}")
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory() as folder:
            made, bounded = _prepare(Path(folder), pairs)
            for suffix in ("parquet", "csv"):
                seconds, cpu, mib = _measured(Path(folder), suffix, options.memory)
                print(
                    f"{made:>12,} {bounded:>8.0%} {suffix:>8} {seconds:>8.2f} {cpu:>7.2f} "
                    f"{made / seconds:>10,.0f} {mib:>6,.0f}",
                    flush=True,
                )


def _prepare(folder: Path, pairs: int) -> tuple[int, float]:
    """Write distinct pairs; return how many, and the share that members with more than Delta_0 of them hold."""
    rows = synthetic(max(1, pairs // PAIRS_PER_MEMBER), seed=1)
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        connection.execute(
            "CREATE TABLE pairs AS SELECT DISTINCT 'member ' || member AS member, "
            "'element ' || element AS element FROM rows"
        )
        for suffix in ("parquet", "csv"):
            connection.execute(f"COPY pairs TO '{folder / 'pairs'}.{suffix}'")
        found = connection.execute(
            f"SELECT sum(n), sum(n) FILTER (WHERE n > {DELTA_0}) FROM "  # noqa: S608
            "(SELECT count(*) AS n FROM pairs GROUP BY member)"
        ).fetchone()
    assert found is not None  # noqa: S101 - a benchmark
    return int(found[0]), found[1] / found[0]


def _measured(folder: Path, suffix: str, memory: str) -> tuple[float, float, float]:
    """Return seconds, seconds of CPU and peak MiB of one run of the command."""
    command = [sys.executable, "-m", "gris_cli", "bound", "--input", str(folder / f"pairs.{suffix}")]
    command += ["--member", "member", "--elements", "element", "--delta0", str(DELTA_0), "--table", "pairs"]
    command += ["--out", str(folder / "copy.parquet"), "--memory", memory]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    seconds = time.perf_counter() - start
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


if __name__ == "__main__":
    main()
