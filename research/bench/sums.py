"""COUNT, SUM and AVG of one release beside OpenDP, and beside a budget that is split, for the same rho.

    python -m research.bench.sums [--runs 2000] [--groups 50]

The data are pieces per customer of Online Retail: each customer has one total, within 0 and 3000. All ways pay the same
rho, that of 5 units at epsilon_per 0.15, and one customer is what neighbours differ by. `split` releases a count and a
sum that is not centred, for half of rho each, and divides them. OpenDP is left out, by name, where it is not installed.

Errors are root mean squares over all runs, also as ratios to those of one release: COUNT, SUM, AVG. The time is that
of all runs, `groups` of them at once. Gris adds noise to sums that an engine has made, and so does OpenDP in its first
line; in its second line it clamps and sums the customers' totals itself.
"""

from __future__ import annotations

import argparse
import importlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms import Currency, Histogram
from dp_service.mechanisms.aggregates import BoundMoments, ColumnSums, SumShare
from dp_service.mechanisms.bounded import ContributionBound
from dp_service.noise import KeyedNoise, KeyedStream
from dp_service.noise.gaussian_price import variance_for
from dp_service.values.bounds import Clamp

PURCHASES = Path(__file__).parent.parent / "examples" / "online_retail" / "purchases.parquet"
CLAMP = Clamp(0, 3000)
CURRENCY, UNITS = Currency(Fraction("0.15"), Fraction("1e-11")), 5
HALF = Fraction(1, 2)
_SEEDS = count(1)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Draw = Callable[[int], tuple[Integers, Floats]]
"""Releases the count and the sum of so many equal groups."""


@dataclass(frozen=True)
class Errors:
    """Root mean square errors, and the seconds that all runs took."""

    count: float
    total: float
    average: float
    seconds: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=50)
    options = parser.parse_args(arguments)
    totals = members_totals()
    asked = BoundMoments(
        CURRENCY, Fraction(UNITS), ContributionBound(1), None, HALF, (SumShare(CLAMP, HALF),)
    )
    members, total = totals.size, int(totals.sum())
    print(f"{members} customers, {total / members:.1f} pieces on average, rho = {float(asked.rho):.5f}")
    print(f"{'':24} {'COUNT':>8} {'SUM':>9} {'AVG':>7} {'ratios':>20} {'time':>7}")
    first: Errors | None = None
    for name, draw in ways(asked, totals):
        found = errors_of(draw, options.runs, options.groups, (members, total))
        first = first or found
        print(line_of(name, found, first), flush=True)


def members_totals() -> Integers:
    """Return the clamped total of every customer."""
    sql = (
        "SELECT CAST(greatest(0, least(3000, SUM(greatest(-10000, least(10000, quantity))))) AS BIGINT) "  # noqa: S608
        f"FROM read_parquet('{PURCHASES}') WHERE member_id IS NOT NULL GROUP BY member_id"
    )
    with duckdb.connect() as connection:
        return np.array([total for (total,) in connection.execute(sql).fetchall()], dtype=np.int64)


def ways(asked: BoundMoments, totals: Integers) -> Iterator[tuple[str, Draw]]:
    """Yield every way of releasing a count and a sum."""
    yield "one release", partial(one_release, asked, totals)
    yield "split, Gris", partial(split, asked, totals)
    try:
        prelude: Any = importlib.import_module("opendp.prelude")
    except ImportError as missing:
        print(f"OpenDP is left out, for {missing.name} is not installed: the dependency group `bench` has it")
        return
    yield "split, OpenDP", opendp_of_sums(prelude, asked.rho, totals)
    yield "split, OpenDP's sums", opendp_of_totals(prelude, asked.rho, totals)


def one_release(asked: BoundMoments, totals: Integers, groups: int) -> tuple[Integers, Floats]:
    """Release N and B of every group, and return N and SUM."""
    centred = int((2 * totals - CLAMP.centre).sum())
    histogram = Histogram.from_element_order([totals.size] * groups)
    found = asked.run(histogram, (ColumnSums(np.full(groups, centred, dtype=np.int64)),), noise_of())
    return found.counts, (found.columns[0].centred + CLAMP.centre * found.counts) / 2


def noise_of() -> KeyedNoise:
    """Return noise that was not drawn before."""
    return KeyedNoise(KeyedStream(next(_SEEDS).to_bytes(32, "big")))


def split(asked: BoundMoments, totals: Integers, groups: int) -> tuple[Integers, Floats]:
    """Release a count and a sum apart, for half of rho each: a member moves the sum by at most 3000."""
    noise = noise_of()
    counts = totals.size + noise.discrete_gaussian(variance_for(1, asked.rho / 2), groups, "counts")
    sums = int(totals.sum()) + noise.discrete_gaussian(
        variance_for(CLAMP.high**2, asked.rho / 2), groups, "sums"
    )
    return counts, sums.astype(np.float64)


def opendp_of_sums(prelude: Any, rho: Fraction, totals: Integers) -> Draw:
    """Let OpenDP add noise to counts and sums of members' totals that are made already."""
    prelude.enable_features("contrib")
    space = prelude.vector_domain(prelude.atom_domain(T="i64")), prelude.l2_distance(T=float)
    half = float(rho / 2)
    add = [
        space >> prelude.m.then_gaussian(scale=_scale_for(prelude, space, distance, half))
        for distance in (1.0, float(CLAMP.high))
    ]

    def draw(groups: int) -> tuple[Integers, Floats]:
        counts, sums = (
            measurement([true] * groups)
            for measurement, true in zip(add, (totals.size, int(totals.sum())), strict=True)
        )
        return np.array(counts, dtype=np.int64), np.array(sums, dtype=np.float64)

    return draw


def _scale_for(prelude: Any, space: tuple[Any, Any], distance: float, rho: float) -> float:
    """Return the least scale with which OpenDP accounts for at most rho."""
    found: float = prelude.binary_search_param(
        lambda scale: space >> prelude.m.then_gaussian(scale=scale), d_in=distance, d_out=rho, T=float
    )
    return found


def opendp_of_totals(prelude: Any, rho: Fraction, totals: Integers) -> Draw:
    """Let OpenDP clamp, count and sum the members' totals of each group as well."""
    space = prelude.vector_domain(prelude.atom_domain(T="i64")), prelude.symmetric_distance()
    half, rows = float(rho / 2), totals.tolist()

    def adding(aggregated: Any) -> Any:
        scale: float = prelude.binary_search_param(
            lambda tried: aggregated >> prelude.m.then_gaussian(scale=tried), d_in=1, d_out=half, T=float
        )
        return aggregated >> prelude.m.then_gaussian(scale=scale)

    members = adding(space >> prelude.t.then_count(TO="i64"))
    total = adding(space >> prelude.t.then_clamp((CLAMP.low, CLAMP.high)) >> prelude.t.then_sum())

    def draw(groups: int) -> tuple[Integers, Floats]:
        found = [(members(rows), total(rows)) for _ in range(groups)]
        return np.array([n for n, _ in found], dtype=np.int64), np.array([s for _, s in found], dtype=float)

    return draw


def errors_of(draw: Draw, runs: int, groups: int, true: tuple[int, int]) -> Errors:
    """Release so many groups at once until all runs are done, and compare with what is true."""
    begun = time.perf_counter()
    found = [draw(groups) for _ in range(math.ceil(runs / groups))]
    seconds = time.perf_counter() - begun
    counts, sums = (np.concatenate([each[place] for each in found]) for place in (0, 1))
    averages = sums / np.maximum(counts, 1)
    members, total = true
    return Errors(_error(counts, members), _error(sums, total), _error(averages, total / members), seconds)


def _error(released: NDArray[Any], true: float) -> float:
    return float(np.sqrt(np.mean((released - true) ** 2)))


def line_of(name: str, found: Errors, first: Errors) -> str:
    """Return the errors of a way, and how they and its time compare with those of the first."""
    ratios = ", ".join(
        f"{getattr(found, each) / getattr(first, each):.2f}" for each in ("count", "total", "average")
    )
    return (
        f"{name:24} {found.count:8.2f} {found.total:9.0f} {found.average:7.2f} {ratios:>20} "
        f"{found.seconds / first.seconds:6.1f}x"
    )


if __name__ == "__main__":
    main()
