"""Private domain discovery: pairs per second and memory, by method and number of pairs.

    python -m bench.domains --pairs 1000000 10000000

The data are synthetic (Pareto sizes, zeta elements; section 5.1 of Swanberg et al. 2023), made distinct beforehand, and
every measurement has a process of its own, so that its peak of memory is its own. "read" is the way from a Parquet file
to arrays; it is the same for all methods. A row of a method is the discovery alone, on the arrays.
"""

from __future__ import annotations

import argparse
import json
import resource
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
from gris_cli.domain.reading import Source, read_pairs
from gris_cli.domain.samples import synthetic

DEFAULT_PAIRS = [10**6, 10**7]
PAIRS_PER_MEMBER = 38
DELTA_0 = 100
READ = "read"
SEED = bytes(32)
MIB = 2**20


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table, or with --one measure one row and print it as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, nargs="+", default=DEFAULT_PAIRS)
    parser.add_argument("--methods", nargs="+", default=[READ, *Method], choices=[READ, *Method])
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        method, folder = options.one
        print(
            json.dumps(_read(Path(folder)) if method == READ else _discovered(Method(method), Path(folder)))
        )
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
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB,
        "found": found,
    }


if __name__ == "__main__":
    main()
