"""Does the time of a release depend on the counts beyond their number? A table over differently shaped histograms.

    python -m research.bench.timing

Every histogram has the same number of rows, in a shuffled order of elements but for those that say otherwise. The
shapes take turns within every round, in an order that is drawn anew, so that a slow moment of the machine and the
traces that one release leaves for the next meet all of them alike. All shapes of a round have the same seed, so that
what is read of the noise is the same. A figure is the median over rounds of the processor's time for the whole work,
from checking the counts to the release; the last column is the median of its ratio to that of the flat histogram in
the same round, with quartiles.

What to expect: 1.00 throughout, give or take the noise of the machine, which the second line of each work shows: it is
the flat histogram once more. docs/noise.md says why.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms import CountNoise, Currency, Histogram, KnownGumb, KnownLap, UnkGumb, UnkLap
from dp_service.noise import KeyedNoise, KeyedStream, NoiseSource

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-11"))
SHARP = Currency(Fraction(10), Fraction("1e-11"))
KNOWN_ROWS = 10_000
D_BAR = 1000
ROWS = D_BAR + 1
FLAT = "flat"

Counts = NDArray[np.int64]
Work = Callable[[Histogram, NoiseSource], object]

WORKS: list[tuple[str, Work, int]] = [
    ("KnownLap", KnownLap(CURRENCY, 1, 1).run, KNOWN_ROWS),
    ("KnownGumb 100", KnownGumb(CURRENCY, 100, 1).run, KNOWN_ROWS),
    # Sharp noise hardly disturbs the counts: what sorting sees is all of them.
    ("KnownGumb 10 sharp", KnownGumb(SHARP, 10, 1).run, KNOWN_ROWS),
    ("KnownGumb all sharp", KnownGumb(SHARP, KNOWN_ROWS, 1).run, KNOWN_ROWS),
    ("UnkLap", UnkLap(CURRENCY, 1, D_BAR, 1).run, ROWS),
    ("UnkGumb 100", UnkGumb(CURRENCY, 100, D_BAR, 1).run, ROWS),
    ("UnkGumb 10", UnkGumb(CURRENCY, 10, D_BAR, 1).run, ROWS),
    (
        "UnkGumb Gaussian",
        UnkGumb(CURRENCY, 10, D_BAR, 1, count_noise=CountNoise.GAUSSIAN).run,
        ROWS,
    ),
]


def shapes(rows: int) -> dict[str, Counts]:
    """Return counts of each shape by element."""
    ranks = np.arange(1, rows + 1)
    counts = {
        FLAT: np.full(rows, 5000),
        "flat again": np.full(rows, 5000),
        "all zero": np.zeros(rows),
        "one large": np.where(ranks == 1, 10**6, 1),
        "half zero": np.where(ranks % 2, 10**6, 0),
        "tied in tens": 100_000 - ranks // 10 * 10,
        "Zipf": 10**7 // ranks + 1,
        "all different": 100_000 - ranks,
        "near 2^53": 2**53 - ranks,
    }
    order = np.random.default_rng(0).permutation(rows)
    shuffled = {shape: values.astype(np.int64)[order] for shape, values in counts.items()}
    in_order = {"descending": 2**40 - 2**20 * ranks, "ascending": 2**20 * ranks}
    return shuffled | in_order


@dataclass(frozen=True)
class Figure:
    """Median milliseconds of one work on one shape, and its ratio to the flat one, round by round."""

    work: str
    shape: str
    milliseconds: float
    ratio: float
    ratio_low: float
    ratio_high: float


def measure(name: str, work: Work, rows: int, rounds: int) -> list[Figure]:
    """Measure one work on all shapes."""
    histograms = shapes(rows)
    turns = random.Random(0)  # noqa: S311 - decides who is measured first
    times: dict[str, list[float]] = {shape: [] for shape in histograms}
    for number in range(rounds + 1):
        for shape in turns.sample(list(histograms), len(histograms)):
            taken = _milliseconds(work, histograms[shape], number)
            # The first round fills caches.
            if number:
                times[shape].append(taken)
    return [_figure(name, shape, times[shape], times[FLAT]) for shape in histograms]


def _milliseconds(work: Work, counts: Counts, seed: int) -> float:
    noise = KeyedNoise(KeyedStream(seed.to_bytes(32, "big")))
    start = time.thread_time()
    work(Histogram.from_element_order(counts), noise)
    return 1000 * (time.thread_time() - start)


def _figure(name: str, shape: str, times: list[float], flat: list[float]) -> Figure:
    low, middle, high = statistics.quantiles([t / f for t, f in zip(times, flat, strict=True)], n=4)
    return Figure(name, shape, statistics.median(times), middle, low, high)


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = [each for name, work, rows in WORKS for each in measure(name, work, rows, options.rounds)]
    if options.json:
        print(json.dumps([asdict(figure) for figure in figures]))
        return
    print(f"{'work':18}{'shape':16}{'ms':>8}  to flat (quartiles)")
    for figure in figures:
        spread = f"{figure.ratio:.2f} ({figure.ratio_low:.2f} to {figure.ratio_high:.2f})"
        print(f"{figure.work:18}{figure.shape:16}{figure.milliseconds:8.3f}  {spread}")


if __name__ == "__main__":
    main()
