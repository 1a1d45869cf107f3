"""Every mechanism, served or published elsewhere, on one histogram: what it promises and what it finds.

    python -m bench.mechanisms

The counts are Zipf's, the question is a top k. `shown` is how many elements come out on average, `right` how many of
them are among the k largest. Mechanisms that show all they may are cut to k. `choices` is the price in bounded-range
units, where it is one; it composes better than epsilon.
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction

import numpy as np

from dp_service.mechanisms import Currency, Histogram
from dp_service.noise import KeyedNoise, KeyedStream
from gris_lab.mechanisms import ComparedMechanism, catalogue

DOMAIN_SIZE = 1000
LARGEST_COUNT = 20_000


def zipf() -> Histogram:
    """Return Zipf counts in a fixed random order of elements."""
    counts = LARGEST_COUNT // np.arange(1, DOMAIN_SIZE + 1)
    return Histogram.from_element_order(np.random.default_rng(0).permutation(counts))


def line_of(mechanism: ComparedMechanism, histogram: Histogram, k: int, runs: int) -> str:
    """Run one mechanism many times and return its line of the table."""
    largest = set(histogram.canonical_order[:k].tolist())
    shown, right = 0, 0
    start = time.perf_counter()
    for seed in range(runs):
        found = (
            mechanism.run(histogram, KeyedNoise(KeyedStream(seed.to_bytes(32, "big")))).indices[:k].tolist()
        )
        shown += len(found)
        right += len(largest.intersection(found))
    milliseconds = 1000 * (time.perf_counter() - start) / runs
    promise = mechanism.guarantee()
    choices = "-" if promise.choices is None else str(promise.choices)
    price = f"{promise.epsilon:9.3g}{promise.delta:10.2g}{choices:>9}"
    return f"{mechanism.label:30}{price}{shown / runs:8.2f}{right / runs:8.2f}{milliseconds:10.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--epsilon-per", default="0.019", help="one-shot Laplace is known for k epsilon_per < 0.2"
    )
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    currency = Currency(Fraction(options.epsilon_per), Fraction("1e-6"))
    histogram = zipf()
    print(f"{'mechanism':30}{'epsilon':>9}{'delta':>10}{'choices':>9}{'shown':>8}{'right':>8}{'ms':>10}")
    for mechanism in catalogue(currency, k=options.k, d_bar=100, delta_l0=1, tau=1):
        print(line_of(mechanism, histogram, options.k, options.runs))


if __name__ == "__main__":
    main()
