"""Does the time of a release depend on the counts beyond their number? A table over differently shaped histograms.

    python -m bench.timing

Every histogram has the same number of rows, all above zero, in a shuffled order of elements. The shapes take turns
within every round, so that a slow moment of the machine meets all of them; figures are medians over rounds, each round
with a seed of its own. `ordering` is the time to put the counts in canonical order, `selection` that of what follows;
the last column is the median of its ratio to that of the flat histogram in the same round, with quartiles.

What to expect: the order of Gumbel keys takes the same time for all shapes, because its only dependence on the counts
is how many keys have to be looked at twice (`noise.md`: with probability at most 2^-40). Three other things do depend
on them. Sorting takes numpy less time where runs of counts are in order already. UnkLap sorts what is above its
threshold, UnkGumb draws a key for what is above h_(k_bar+1): their work grows with the number of such elements, which
for a flat histogram is none.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms import Currency, Histogram, KnownGumb, KnownLap, UnkGumb, UnkLap
from dp_service.noise import KeyedNoise, KeyedStream, LogWeights, NoiseSource

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))
KNOWN_ROWS = 10_000
D_BAR = 1000
ROWS = D_BAR + 1
FLAT = "flat"

Work = Callable[[Histogram, NoiseSource], object]


def gumbel_order_alone(histogram: Histogram, noise: NoiseSource) -> NDArray[np.int64]:
    """Draw the 100 largest keys of all rows, as KnownGumb does."""
    return noise.gumbel_order(LogWeights(CURRENCY.epsilon_per, histogram.descending_counts), 100, "selection")


WORKS: list[tuple[str, Work, int]] = [
    ("Gumbel order", gumbel_order_alone, KNOWN_ROWS),
    ("KnownLap", KnownLap(CURRENCY, 1, 1).run, KNOWN_ROWS),
    ("KnownGumb 100", KnownGumb(CURRENCY, 100, 1).run, KNOWN_ROWS),
    ("UnkLap", UnkLap(CURRENCY, 1, D_BAR, 1).run, ROWS),
    ("UnkGumb 100", UnkGumb(CURRENCY, 100, D_BAR, 1).run, ROWS),
    ("UnkGumb 10", UnkGumb(CURRENCY, 10, D_BAR, 1).run, ROWS),
]


def shapes(rows: int) -> dict[str, NDArray[np.int64]]:
    """Return counts of each shape, in a fixed random order of elements."""
    ranks = np.arange(1, rows + 1)
    counts = {
        FLAT: np.full(rows, 5000),
        "Zipf": 10**7 // ranks + 1,
        "tied in tens": 100_000 - ranks // 10 * 10,
        "all different": 100_000 - ranks,
        "one large": np.where(ranks == 1, 10**6, 1),
        "near 2^53": 2**53 - ranks,
    }
    order = np.random.default_rng(0).permutation(rows)
    return {shape: values.astype(np.int64)[order] for shape, values in counts.items()}


@dataclass(frozen=True)
class Figure:
    """Median milliseconds of one work on one shape, and its ratio to the flat one, round by round."""

    work: str
    shape: str
    ordering_ms: float
    selection_ms: float
    ratio: float
    ratio_low: float
    ratio_high: float


def measure(name: str, work: Work, rows: int, rounds: int) -> list[Figure]:
    """Measure one work on all shapes."""
    histograms = shapes(rows)
    times: dict[str, list[tuple[float, float]]] = {shape: [] for shape in histograms}
    for number in range(rounds + 1):
        for shape, counts in histograms.items():
            measured = _times_of(work, Histogram.from_element_order(counts), number)
            # The first round fills caches.
            if number:
                times[shape].append(measured)
    return [_figure(name, shape, times[shape], times[FLAT]) for shape in histograms]


def _times_of(work: Work, histogram: Histogram, seed: int) -> tuple[float, float]:
    noise = KeyedNoise(KeyedStream(seed.to_bytes(32, "big")))
    ordering = _milliseconds(lambda: histogram.descending_counts)
    return ordering, _milliseconds(lambda: work(histogram, noise))


def _figure(
    name: str, shape: str, times: list[tuple[float, float]], flat: list[tuple[float, float]]
) -> Figure:
    ratios = [here / there for (_, here), (_, there) in zip(times, flat, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    ordering, selection = (statistics.median(column) for column in zip(*times, strict=True))
    return Figure(name, shape, ordering, selection, middle, low, high)


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = [each for name, work, rows in WORKS for each in measure(name, work, rows, options.rounds)]
    if options.json:
        print(json.dumps([asdict(figure) for figure in figures]))
        return
    print(f"{'work':16}{'shape':16}{'ordering ms':>12}{'selection ms':>14}  to flat (quartiles)")
    for figure in figures:
        spread = f"{figure.ratio:.2f} ({figure.ratio_low:.2f} to {figure.ratio_high:.2f})"
        times = f"{figure.ordering_ms:12.3f}{figure.selection_ms:14.3f}"
        print(f"{figure.work:16}{figure.shape:16}{times}  {spread}")


if __name__ == "__main__":
    main()
