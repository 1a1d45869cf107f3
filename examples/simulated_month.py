"""Makes up a month of analysts who ask the example data, as a file of charges for `gris plan usage`.

    python examples/simulated_month.py --analysts 1000 --seed 1 charges.csv

**Nobody asked these questions.** How often analysts ask, and when, is invented: a lognormal number of questions, some
of them in one batch on the first day. What each question costs is not: the mechanism of the question runs on the real
counts of the Cofacts articles, cohorts and scores, and a release that ends in bottom costs less.
"""

import argparse
import csv
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np

from dp_service.mechanisms import Cost, Currency, Histogram, KnownGumb, Mechanism, UnkGumb, UnkLap
from dp_service.noise import KeyedNoise, KeyedStream

FEEDBACK = Path(__file__).resolve().parent / "cofacts" / "feedback.parquet"
CURRENCY = Currency(Fraction("0.15"), Fraction("1e-11"))
DAYS = 30
MEDIAN_QUESTIONS = 8.0
SPREAD = 1.1
BATCHED = 0.15


@dataclass(frozen=True)
class Kind:
    """A kind of question: how large a share of all questions it is, and what runs on which counts."""

    share: float
    mechanism: Mechanism
    histogram: Histogram


def kinds() -> list[Kind]:
    """Return what analysts ask: mostly short lists of articles, some long ones, cohorts and scores."""
    articles, cohorts, scores = (_counts(column) for column in ("article_id", "cohort", "score"))
    return [
        *(
            Kind(share, UnkGumb(CURRENCY, k, 1000, 1), _largest(articles, 1001))
            for share, k in ((0.4, 10), (0.2, 50), (0.1, 100))
        ),
        Kind(0.15, UnkLap(CURRENCY, 1, 1000, 1), cohorts),
        Kind(0.15, KnownGumb(CURRENCY, 2, 1), scores),
    ]


def charges(analysts: int, seed: int) -> Iterator[tuple[str, int, Cost]]:
    """Yield account, day since refresh and cost of every question; the same seed gives the same month."""
    behaviour = np.random.default_rng(seed)
    offered = kinds()
    for analyst in range(analysts):
        number = 1 + int(behaviour.lognormal(np.log(MEDIAN_QUESTIONS), SPREAD))
        is_batch = behaviour.random() < BATCHED
        days = [0] * number if is_batch else sorted([0, *behaviour.integers(0, DAYS, number - 1).tolist()])
        chosen = behaviour.choice(len(offered), number, p=[each.share for each in offered])
        for question, (day, kind) in enumerate(zip(days, chosen, strict=True)):
            noise = _noise(seed, analyst, question)
            selection = offered[kind].mechanism.run(offered[kind].histogram, noise)
            cost = offered[kind].mechanism.cost(selection.indices.size, selection.ended_in_bottom)
            yield f"analyst {analyst + 1}", day, cost


def _counts(column: str) -> Histogram:
    """Return the distinct members for each value of a column, in the order of the values."""
    with duckdb.connect() as connection:
        rows = connection.read_parquet(str(FEEDBACK)).aggregate(
            f"{column}, count(DISTINCT member_id) AS members", column
        )
        return Histogram.from_element_order([members for _, members in rows.order(column).fetchall()])


def _largest(histogram: Histogram, rows: int) -> Histogram:
    kept = np.sort(histogram.canonical_order[:rows])
    return Histogram.from_element_order(histogram.counts_by_element[kept])


def _noise(*numbers: int) -> KeyedNoise:
    return KeyedNoise(KeyedStream(hashlib.sha256(repr(numbers).encode()).digest()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", type=Path)
    parser.add_argument("--analysts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with options.target.open("w", newline="", encoding="utf-8") as stream:
        lines = csv.writer(stream)
        lines.writerow(["account", "day", "information", "calls"])
        for account, day, cost in charges(options.analysts, options.seed):
            lines.writerow([account, day, cost.information, cost.calls])


if __name__ == "__main__":
    main()
