"""Exact noise beside numpy's inexact float noise, OpenDP and Google's PyDP, in one run.

    python -m bench noise
    python -m bench noise --json

The contestants of a row run in turn, so that a slow moment of the machine meets all of them; figures are medians of
these rounds, and the ratios are ratios of medians. A library that is slow is given fewer numbers and its time is
scaled up, which the row says. What is not installed is left out with a line that says so.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms import Currency, Histogram, UnkGumb
from dp_service.noise import KeyedNoise, KeyedStream, LogWeights
from dp_service.noise.gumbel import spare_pairs

MILLION, TEN_MILLION = 10**6, 10**7
EPSILON_PER = Fraction(3, 20)
LAPLACE_SCALE = 2 / EPSILON_PER
SIGMA = 2 / EPSILON_PER

_SEEDS = itertools.count()
_FLOATS = np.random.default_rng(1)

MILLISECONDS = "ms"

Work = Callable[[], object]


@dataclass(frozen=True)
class Contestant:
    """Something to measure: it does 1 / `scaled` of the row's work."""

    work: Work
    scaled: int = 1


@dataclass(frozen=True)
class Target:
    """What was promised: a figure is at most so many times another one, or milliseconds."""

    figure: str
    most: float
    unit: str

    def verdict(self, milliseconds: Mapping[str, float]) -> str:
        """Say what was promised, and whether it holds; a library that is not installed was not measured."""
        units = {MILLISECONDS: 1.0, **milliseconds}
        said = f"{self.figure} <= {self.most:.3g} x {self.unit}"
        if self.unit not in units:
            return f"{said}: not measured"
        return f"{said}: {'met' if units[self.figure] <= self.most * units[self.unit] else 'MISSED'}"


@dataclass(frozen=True)
class Row:
    """A line of the table: medians in milliseconds, and what was promised."""

    name: str
    milliseconds: dict[str, float]
    targets: tuple[Target, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Memory:
    """What a job of 10^7 numbers needed, its result included and its input not."""

    name: str
    input_megabytes: float
    peak_megabytes: float
    seconds: float


def main() -> None:
    """Measure and print a table for people, or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--memory-of", choices=list(LARGE_JOBS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print(json.dumps(asdict(measured_memory(options.memory_of))))
        return
    rows = [
        make(options.rounds) for make in (laplace, laplace_widths, gaussian, top_k, whole_release, timing)
    ]
    memory = [in_a_process_of_its_own(name) for name in LARGE_JOBS]
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "memory": [asdict(m) for m in memory]}))
        return
    for row in rows:
        print_row(row)
    print("\n10^7 numbers, each in a process of its own")
    for job in memory:
        print(
            f"  {job.name:34} {job.seconds:7.2f} s   peak {job.peak_megabytes:7.1f} MB, result included, "
            f"beside {job.input_megabytes:.0f} MB of input"
        )


def noise() -> KeyedNoise:
    """Return a source of noise with a new seed."""
    return KeyedNoise(KeyedStream(next(_SEEDS).to_bytes(32, "big")))


def laplace(rounds: int) -> Row:
    """10^6 discrete Laplace numbers of scale 2 / 0.15."""
    contestants = {
        "numpy float": Contestant(lambda: _FLOATS.laplace(scale=float(LAPLACE_SCALE), size=MILLION)),
        "ours": Contestant(lambda: noise().discrete_laplace(1 / LAPLACE_SCALE, MILLION, "counts")),
    }
    notes: list[str] = []
    add(contestants, notes, "OpenDP", opendp_laplace)
    add(contestants, notes, "PyDP", pydp_laplace)
    targets = (Target("ours", 5, "numpy float"), Target("ours", 1 / 20, "OpenDP"))
    return Row("10^6 discrete Laplace, scale 13.3", medians(contestants, rounds), targets, tuple(notes))


def laplace_widths(rounds: int) -> Row:
    """10^6 discrete Laplace numbers from scale 10^-3 to 10^6; numpy's time does not depend on the scale."""
    contestants = {"numpy float": Contestant(lambda: _FLOATS.laplace(scale=1.0, size=MILLION))}
    targets = []
    for exponent in (-3, 0, 1, 2, 3, 6):
        inverse = 1 / Fraction(10) ** exponent
        contestants[f"ours 10^{exponent}"] = Contestant(
            lambda inverse=inverse: noise().discrete_laplace(inverse, MILLION, "counts")  # type: ignore[misc]
        )
        targets.append(Target(f"ours 10^{exponent}", 5, "numpy float"))
    return Row("10^6 discrete Laplace, other scales", medians(contestants, rounds), tuple(targets))


def gaussian(rounds: int) -> Row:
    """10^6 discrete Gaussian numbers of sigma 2 / 0.15."""
    contestants = {
        "numpy float": Contestant(lambda: _FLOATS.normal(scale=float(SIGMA), size=MILLION)),
        "ours": Contestant(lambda: noise().discrete_gaussian(SIGMA**2, MILLION, "counts")),
    }
    notes: list[str] = []
    add(contestants, notes, "OpenDP", opendp_gaussian)
    return Row("10^6 discrete Gaussian, sigma 13.3", medians(contestants, rounds), (), tuple(notes))


def top_k(rounds: int) -> Row:
    """The 100 largest of 10^4 with Gumbel noise."""
    counts = zipf(10**4)
    scores, unit = counts * float(EPSILON_PER), LogWeights(EPSILON_PER, counts)

    def floats() -> object:
        keys = scores + _FLOATS.gumbel(size=counts.size)
        best = np.argpartition(keys, -100)[-100:]
        return best[np.argsort(-keys[best])]

    contestants = {
        "numpy float": Contestant(floats),
        "ours": Contestant(lambda: noise().gumbel_order(unit, 100, "selection")),
    }
    fast = medians(contestants, 40 * rounds)
    slow: dict[str, Contestant] = {}
    notes: list[str] = []
    add(slow, notes, "OpenDP", lambda: opendp_top_k(counts))
    targets = (Target("ours", 3, "numpy float"), Target("ours", 1 / 300, "OpenDP"))
    return Row("Top 100 of 10^4", fast | medians(slow, min(3, rounds)), targets, tuple(notes))


def whole_release(rounds: int) -> Row:
    """UnkGumb from counts to noisy counts."""
    currency = Currency(EPSILON_PER, Fraction(1, 10**10))
    mechanism = UnkGumb(currency, k=10, d_bar=1000, tau=1)
    counts = zipf(1000)
    targets = (Target("ours", 1, MILLISECONDS),)
    work = Contestant(lambda: mechanism.run(Histogram.from_element_order(counts), noise()))
    return Row("UnkGumb, k = 10, d_bar = 1000", medians({"ours": work}, 40 * rounds), targets)


def timing(rounds: int) -> Row:
    """The same selection over histograms of the same length: time should not tell them apart."""
    size = 10**4
    histograms = {
        "flat": np.full(size, 1000),
        "all zero": np.zeros(size, dtype=np.int64),
        "tied": np.repeat(np.arange(100), size // 100),
        "zipf": zipf(size),
        "near 2^53": 2**53 - np.arange(size),
    }
    contestants = {}
    for name, counts in histograms.items():
        weights = LogWeights(EPSILON_PER, counts.astype(np.int64))
        contestants[name] = Contestant(
            lambda weights=weights: noise().gumbel_order(weights, 100, "selection")  # type: ignore[misc]
        )
    note = f"{spare_pairs(100)} pair of keys is always evaluated exactly; more with probability at most 2^-40"
    figures = medians(contestants, 40 * rounds)
    notes = ("expected: no difference beyond chance", note)
    return Row("Top 100 of 10^4 over other histograms", figures, (), notes)


def zipf(size: int) -> NDArray[np.int64]:
    """Return counts that fall like 1 / rank."""
    return (10**7 // np.arange(1, size + 1)).astype(np.int64)


def medians(contestants: dict[str, Contestant], rounds: int) -> dict[str, float]:
    """Run everyone once to warm up and then in turn; return medians in milliseconds."""
    for contestant in contestants.values():
        contestant.work()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            seconds[name].append(duration(contestant.work) * contestant.scaled)
    return {name: statistics.median(taken) * 1e3 for name, taken in seconds.items()}


def duration(work: Work) -> float:
    """Return the seconds that some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def add(
    contestants: dict[str, Contestant], notes: list[str], name: str, make: Callable[[], Contestant]
) -> None:
    """Add a contestant, or a note why it cannot take part."""
    try:
        contestants[name] = make()
    except ImportError as error:
        notes.append(f"{name} left out: {error}; pip install --group bench")
        return
    if contestants[name].scaled > 1:
        notes.append(f"{name} did 1 / {contestants[name].scaled} of the work and is scaled up")


def opendp_laplace() -> Contestant:
    """OpenDP's discrete Laplace on a vector of integers."""
    import opendp.prelude as dp  # noqa: PLC0415 - may be missing

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement = dp.m.make_laplace(*space, float(LAPLACE_SCALE))
    counts = [0] * (MILLION // 10)
    return Contestant(lambda: measurement(counts), scaled=10)


def opendp_gaussian() -> Contestant:
    """OpenDP's discrete Gaussian on a vector of integers."""
    import opendp.prelude as dp  # noqa: PLC0415 - may be missing

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    measurement = dp.m.make_gaussian(*space, float(SIGMA))
    counts = [0] * (MILLION // 20)
    return Contestant(lambda: measurement(counts), scaled=20)


def opendp_top_k(counts: NDArray[np.int64]) -> Contestant:
    """OpenDP's noisy top k under pure differential privacy, the same scale of noise."""
    import opendp.prelude as dp  # noqa: PLC0415 - may be missing

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    measurement = dp.m.make_noisy_top_k(*space, dp.max_divergence(), 100, float(1 / EPSILON_PER))
    listed = counts.tolist()
    return Contestant(lambda: measurement(listed))


def pydp_laplace() -> Contestant:
    """Google's Laplace mechanism, which takes one number at a time."""
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism  # noqa: PLC0415 - may be missing

    mechanism = LaplaceMechanism(epsilon=float(1 / LAPLACE_SCALE), sensitivity=1)
    return Contestant(lambda: [mechanism.add_noise(0) for _ in range(MILLION // 20)], scaled=20)


def print_row(row: Row) -> None:
    """Print a row: each figure, and its ratio to the first."""
    first = next(iter(row.milliseconds))
    print(f"\n{row.name}")
    for name, figure in row.milliseconds.items():
        against_first = f"{figure / row.milliseconds[first]:9.2f} x {first}" if name != first else ""
        beside_ours = f"{figure / row.milliseconds['ours']:9.1f} x ours" if "ours" in row.milliseconds else ""
        print(f"  {name:14} {figure:11.3f} ms {against_first} {beside_ours if name != 'ours' else ''}")
    for target in row.targets:
        print(f"  target: {target.verdict(row.milliseconds)}")
    for note in row.notes:
        print(f"  {note}")


def large_order() -> tuple[NDArray[np.int64], Work]:
    """The 100 largest of 10^7."""
    weights = LogWeights(EPSILON_PER, np.arange(TEN_MILLION, dtype=np.int64) % 1000)
    return weights.multiples, lambda: noise().gumbel_order(weights, 100, "selection")


def large_float_order() -> tuple[NDArray[np.int64], Work]:
    """What numpy needs for the same."""
    counts = np.arange(TEN_MILLION, dtype=np.int64) % 1000

    def work() -> object:
        return np.argpartition(counts * float(EPSILON_PER) + _FLOATS.gumbel(size=TEN_MILLION), -100)[-100:]

    return counts, work


def large_whole_order() -> tuple[NDArray[np.int64], Work]:
    """All of 10^7 in order, which has the most close pairs."""
    weights = LogWeights(EPSILON_PER, np.arange(TEN_MILLION, dtype=np.int64) % 1000)
    return weights.multiples, lambda: noise().gumbel_order(weights, TEN_MILLION, "selection")


def large_laplace() -> tuple[NDArray[np.int64], Work]:
    """10^7 discrete Laplace numbers."""
    return NOTHING, lambda: noise().discrete_laplace(1 / LAPLACE_SCALE, TEN_MILLION, "counts")


def large_wide_laplace() -> tuple[NDArray[np.int64], Work]:
    """10^7 discrete Laplace numbers of several digits each."""
    return NOTHING, lambda: noise().discrete_laplace(Fraction(1, MILLION), TEN_MILLION, "counts")


def large_gaussian() -> tuple[NDArray[np.int64], Work]:
    """10^7 discrete Gaussian numbers."""
    return NOTHING, lambda: noise().discrete_gaussian(SIGMA**2, TEN_MILLION, "counts")


NOTHING = np.zeros(0, dtype=np.int64)
LARGE_JOBS: dict[str, Callable[[], tuple[NDArray[np.int64], Work]]] = {
    "top 100 of 10^7": large_order,
    "top 100 of 10^7, numpy float": large_float_order,
    "10^7 of 10^7 in order": large_whole_order,
    "10^7 discrete Laplace": large_laplace,
    "10^7 discrete Laplace, scale 10^6": large_wide_laplace,
    "10^7 discrete Gaussian": large_gaussian,
}


def measured_memory(name: str) -> Memory:
    """Run a job and say how much it had allocated at its peak, its result included and its input not."""
    counts, work = LARGE_JOBS[name]()
    seconds = duration(work)
    tracemalloc.start()
    work()
    return Memory(name, counts.nbytes / 1e6, tracemalloc.get_traced_memory()[1] / 1e6, seconds)


def in_a_process_of_its_own(name: str) -> Memory:
    """Measure a job in a process that ends, so that its memory is free for the next."""
    command = [sys.executable, "-m", "bench.noise", "--memory-of", name]
    return Memory(**json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


if __name__ == "__main__":
    main()
