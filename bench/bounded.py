"""What one look and two looks find of a top 50, beside UnkGumb: elements, how many of the true ones, and their error.

    python -m bench.bounded [--data FILE MEMBER ELEMENT]

Counts are of distinct members, epsilon_per = 0.15, delta = 1e-11, m = 1, on all rows of the examples. Every run is a
run of the mechanisms with noise of its own on the contributions that the salted hash keeps; the error is the mean
absolute distance of the shown counts from the counts before bounding. Such numbers tell of the data: they are for the
owner. The settings were found on Cofacts and Online Retail, so there they flatter two looks; a file of `--data` is
measured with the settings of both.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dp_service.bounding.contributions import Contributions
from dp_service.mechanisms import Currency, Histogram, UnkGumb
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound, TwoLooks
from dp_service.noise import KeyedNoise, KeyedStream
from gris_data.domain.canonical_pairs import Source
from gris_data.domain.member_data import read_pairs

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-11"))
K, D_BAR, MIN_COUNT = 50, 1000, 1
MOST_NAMES = 3 * K // 2
EXAMPLES = Path(__file__).parent.parent / "examples"

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Shown:
    """What one run shows: elements, their noisy counts, and what it cost."""

    elements: Integers
    noisy_counts: Integers
    units: int


@dataclass(frozen=True)
class Setting:
    """A way of answering: its name, and a run of it with a seed."""

    name: str
    run: Callable[[int], Shown]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one table for each data set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--data", nargs=3, metavar=("FILE", "MEMBER", "ELEMENT"))
    options = parser.parse_args(arguments)
    if options.data:
        path, member, element = options.data
        table(path, Source(Path(path), member, element), [*COFACTS, *RETAIL[1:]], options.runs)
        return
    cofacts = Source(EXAMPLES / "cofacts" / "feedback.parquet", "member_id", "article_id")
    table("Cofacts articles", cofacts, COFACTS, options.runs)
    retail = Source(EXAMPLES / "online_retail" / "purchases.parquet", "member_id", "stock_code")
    table("Online Retail products", retail, RETAIL, options.runs)


def table(title: str, source: Source, asked: Sequence[Asked], runs: int) -> None:
    """Print the means over all runs of every setting."""
    with read_pairs(source, delta_0=1, salt=b"bench") as pairs:
        contributions = pairs.contributions
    counts = _counts(contributions)
    # Ties at the cut are broken by the element, as everywhere.
    top = np.argsort(-counts, kind="stable")[:K]
    print(f"\n{title}: {contributions.member_count:,} members, {contributions.elements.size:,} pairs")
    print(f"{'':46} {'units':>6} {'elements':>9} {'of the top':>11} {'error':>7}")
    for setting in (each for one in asked for each in one.settings(contributions)):
        found = [setting.run(seed) for seed in range(runs)]
        units = statistics.fmean(run.units for run in found)
        shown = statistics.fmean(run.elements.size for run in found)
        of_top = statistics.fmean(np.isin(run.elements, top).sum() for run in found)
        errors = np.concatenate([np.abs(run.noisy_counts - counts[run.elements]) for run in found])
        error = float(errors.mean()) if errors.size else float("nan")
        print(f"{setting.name:46} {units:6.1f} {shown:9.1f} {of_top:11.1f} {error:7.1f}", flush=True)


@dataclass(frozen=True)
class Asked:
    """Bounds for some numbers of units; no bound stands for UnkGumb, and one for one look.

    `names_share` is the share of the units that the first of two looks gets.
    """

    bounds: tuple[int, ...]
    units: tuple[int, ...] = ()
    names_share: Fraction = Fraction(35, 100)

    def settings(self, contributions: Contributions) -> Iterator[Setting]:
        """Yield a setting for each number of units."""
        match self.bounds:
            case ():
                yield _unk_gumb(contributions)
            case (delta_0,):
                yield from (_one_look(contributions, delta_0, units) for units in self.units)
            case (delta_1, delta_2):
                for units in self.units:
                    yield _two_looks(contributions, delta_1, delta_2, units, self.names_share)


COFACTS = [
    Asked(()),
    Asked((32,), (71, 20, 10)),
    Asked((8, 16), (71,)),
    Asked((4, 8), (20, 10)),
    Asked((4, 8), (5,), Fraction(1, 2)),
]
RETAIL = [Asked(()), Asked((256,), (71, 20)), Asked((32, 32), (71,)), Asked((48, 32), (20,), Fraction(3, 5))]


def _unk_gumb(contributions: Contributions) -> Setting:
    mechanism = UnkGumb(CURRENCY, K, D_BAR, 1)
    counts = _counts(contributions)
    fetched = np.sort(np.argsort(-counts, kind="stable")[: D_BAR + 1])
    histogram = Histogram.from_element_order(counts[fetched])

    def run(seed: int) -> Shown:
        found = mechanism.run(histogram, _noise(seed, 0))
        cost = mechanism.cost(found.indices.size, found.ended_in_bottom)
        return _shown(fetched[found.indices], found.noisy_counts, cost.information)

    return Setting(f"UnkGumb, d_bar = {D_BAR}", run)


def _one_look(contributions: Contributions, delta_0: int, units: int) -> Setting:
    look = BoundGauss(CURRENCY, Fraction(units), ContributionBound(delta_0), MIN_COUNT)
    histogram = Histogram.from_element_order(_counts(contributions.bounded(delta_0)))

    def run(seed: int) -> Shown:
        found = look.run(histogram, _noise(seed, 0))
        noisy = None if found.noisy_counts is None else found.noisy_counts[:K]
        return _shown(found.indices[:K], noisy, look.worst_case_cost().information)

    return Setting(f"one look, Delta_0 = {delta_0}", run)


def _two_looks(
    contributions: Contributions, delta_1: int, delta_2: int, units: int, share: Fraction
) -> Setting:
    bounds = ContributionBound(delta_1), ContributionBound(delta_2)
    looks = TwoLooks(CURRENCY, units, share * units, *bounds, MIN_COUNT, MOST_NAMES)
    first = Histogram.from_element_order(_counts(contributions.bounded(delta_1)))

    def run(seed: int) -> Shown:
        names = np.sort(looks.draw_names(first, _noise(seed, 1)))
        others = np.ones(contributions.element_count, dtype=np.bool_)
        others[names] = False
        within = _counts(contributions.bounded(delta_2, others))[names]
        found = looks.draw_counts(Histogram.from_element_order(within), _noise(seed, 2))
        noisy = None if found.noisy_counts is None else found.noisy_counts[:K]
        return _shown(names[found.indices[:K]], noisy, looks.worst_case_cost().information)

    return Setting(f"two looks, {delta_1} and {delta_2}, {float(share):.0%} for names, M = {MOST_NAMES}", run)


def _shown(elements: Integers, noisy_counts: Integers | None, units: int) -> Shown:
    return Shown(elements, np.zeros(0, dtype=np.int64) if noisy_counts is None else noisy_counts, units)


def _counts(contributions: Contributions) -> Integers:
    return np.bincount(contributions.elements, minlength=contributions.element_count).astype(np.int64)


def _noise(seed: int, look: int) -> KeyedNoise:
    return KeyedNoise(KeyedStream((seed * 4 + look).to_bytes(32, "big")))


if __name__ == "__main__":
    main()
