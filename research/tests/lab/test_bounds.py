"""Proposed bounds: their sums are those of the definition, and their runs those of the mechanisms."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dp_service.bounding.contributions import Contributions
from dp_service.mechanisms import Currency, Histogram
from dp_service.mechanisms.bounded import TwoLooks
from dp_service.noise import KeyedNoise, KeyedStream
from gris_cli.data.bound.source import Columns
from gris_cli.data.domain.canonical_pairs import Source
from gris_cli.data.domain.member_data import read_pairs
from gris_cli.data.errors import InputError
from research.lab.bound.contributions import BoundedCounts, DataFile, counts_of_file
from research.lab.bound.looks import BothLooks, OneLook, Question, Sketch, Trials, Worth
from research.lab.bound.proposal import TradeOff, Tried, proposal
from research.lab.bound.search import USEFUL, Quality, best
from research.lab.simulation import Draws

ROOT = Path(__file__).resolve().parents[3]
FEEDBACK = ROOT / "examples" / "cofacts" / "feedback.parquet"
ARTICLES = Columns("member_id", ("article_id",))
CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))
QUESTION = Question(CURRENCY, 50, 1, 1000)


@pytest.fixture(scope="module")
def cofacts() -> BoundedCounts:
    """What bounds leave of the articles."""
    return counts_of_file(DataFile(FEEDBACK, ARTICLES, False, "1GB"), 50, 75)


def test_a_bound_leaves_the_sum_of_the_chances(tmp_path: Path) -> None:
    """Of each member that holds an element: Delta out of all its elements, or out of those among the M largest."""
    chosen, held = random.Random(1), defaultdict(set)
    for _ in range(3000):
        held[f"m{int(chosen.paretovariate(0.8)) % 70}"].add(f"é{int(chosen.paretovariate(0.5)) % 50}")
    path = tmp_path / "rows.csv"
    rows = [
        f"{member},{element},{place % 2}"
        for member, own in held.items()
        for element in own
        for place in range(2)
    ]
    path.write_text("\n".join(["who,what,more", *rows]), encoding="utf-8")
    found = counts_of_file(DataFile(path, Columns("who", ("what",)), False, "1GB"), 3, 4)
    counts: dict[str, int] = defaultdict(int)
    for element in itertools.chain.from_iterable(held.values()):
        counts[element] += 1
    assert found.counts.tolist() == sorted(counts.values(), reverse=True)
    names = {element for element, _ in sorted(counts.items(), key=lambda each: -each[1])[:4]}
    assert sorted(counts.values())[-5] < sorted(counts.values())[-4]
    assert found.heaviness.pairs == sum(counts.values())
    assert found.bounds[-1] >= max(map(len, held.values())) > found.bounds[-2]
    for bound in found.bounds:
        left: dict[str, float] = defaultdict(float)
        within: dict[str, float] = defaultdict(float)
        for own in held.values():
            for element in own:
                left[element] += min(1.0, bound / len(own))
                within[element] += min(1.0, bound / len((own & names) | {element}))
        assert sorted(found.under(bound)) == pytest.approx(sorted(left.values()))
        few = sorted(within[element] for element in names)
        assert sorted(found.within_names(bound)[:4]) == pytest.approx(few)
        assert found.within_names(bound)[:16].sum() <= found.counts[:16].sum()


def contributions_of_cofacts() -> Contributions:
    """Return the pairs in the order of a salted hash."""
    with read_pairs(Source(FEEDBACK, "member_id", "article_id"), typical=1, salt=b"another") as pairs:
        return pairs.contributions


def counted(contributions: Contributions) -> Any:
    """Return the counts of all elements."""
    return np.bincount(contributions.elements, minlength=contributions.element_count)


def test_the_hash_leaves_what_is_expected(cofacts: BoundedCounts) -> None:
    """Within five standard deviations for each of the largest elements; a count of half the chances would not be."""
    contributions = contributions_of_cofacts()
    order = np.argsort(-counted(contributions), kind="stable")[:200]
    for bound in (1, 4, 16):
        expected = cofacts.under(bound)[:200]
        real = np.sort(counted(contributions.bounded(bound))[order])
        deviation = np.sqrt(np.maximum(expected, 1))
        # Equal counts are in another order here and there.
        assert np.all(np.abs(real - np.sort(expected)) <= 5 * np.sort(deviation))


def worth_by_hash(looks: BothLooks, runs: int) -> tuple[float, float]:
    """Return what two looks find, and their error, where the hash bounds members anew within the names."""
    contributions = contributions_of_cofacts()
    counts = counted(contributions)
    top = np.argsort(-counts, kind="stable")[: QUESTION.k]
    mechanism: TwoLooks = looks.mechanism(QUESTION)
    first = Histogram.from_element_order(counted(contributions.bounded(looks.names_bound)))
    found, errors = 0, []
    for run in range(runs):
        noise = [KeyedNoise(KeyedStream(bytes([look, run] + 30 * [0]))) for look in (1, 2)]
        names = np.sort(mechanism.draw_names(first, noise[0]))
        others = np.ones(contributions.element_count, dtype=np.bool_)
        others[names] = False
        within = counted(contributions.bounded(looks.counts_bound, others))[names]
        drawn = mechanism.draw_counts(Histogram.from_element_order(within), noise[1])
        shown = names[drawn.indices[: QUESTION.k]]
        assert drawn.noisy_counts is not None
        errors.append(np.abs(drawn.noisy_counts[: QUESTION.k] - counts[shown]).mean())
        found += np.isin(shown, top).sum()
    return found / runs, float(np.mean(errors))


@pytest.mark.parametrize(
    "looks", [BothLooks(10, 8), BothLooks(20, 2)], ids=str
)
def test_two_looks_are_worth_what_they_are_with_the_hash(cofacts: BoundedCounts, looks: BothLooks) -> None:
    """Fixed seeds: one element and a twentieth of the error apart at most, also where Delta_2 cuts much."""
    worth = Trials(cofacts, QUESTION, Draws(1), 200).two_looks(looks)
    found, error = worth_by_hash(looks, 200)
    assert worth.found == pytest.approx(found, abs=1)
    assert worth.error == pytest.approx(error, rel=0.05)


def test_a_sketch_is_worth_what_the_mechanisms_are(cofacts: BoundedCounts) -> None:
    """Normal noise and a threshold by it: one element and a tenth of the error apart at most, fixed seeds."""
    sketch, trials = Sketch(cofacts, QUESTION, 1), Trials(cofacts, QUESTION, Draws(1), 30)
    ones = dict(sketch.one_looks(10))
    twos = dict(sketch.both_looks(10))
    for look in (OneLook(10, 1), OneLook(10, 32), OneLook(10, 256)):
        worth = trials.one_look(look)
        assert ones[look].found == pytest.approx(worth.found, abs=1)
        assert ones[look].shown == pytest.approx(worth.shown, abs=1)
        assert ones[look].error == pytest.approx(worth.error, rel=0.1)
    for looks in (BothLooks(10, 2), BothLooks(10, 64)):
        worth = trials.two_looks(looks)
        assert twos[looks].found == pytest.approx(worth.found, abs=1)
        assert twos[looks].error == pytest.approx(worth.error, rel=0.1)


def worth(found: float, error: float | None, units: float = 10, *, counts: float = 200) -> Worth:
    """Return what a setting is worth, if counts are so large."""
    return Worth(units, found, found, error, 0.0 if error is None else error / counts)


@pytest.mark.parametrize(
    ("tried", "bound"),
    [
        ([worth(40, 10), worth(45, 90)], 2),
        ([worth(44.5, 10), worth(45, 90)], 1),
        ([worth(44.5, 10), worth(45, 10.9)], 2),
        ([worth(44.5, 10), worth(45, 11.1)], 1),
        ([worth(0, None), worth(0.5, 50)], 2),
        ([worth(0, None), worth(0, None)], 1),
        ([worth(45, 10), worth(45, 10)], 1),
        ([worth(46.5, 10), worth(47, 19)], 2),
        ([worth(46.5, 10), worth(47, 21)], 1),
    ],
)
def test_the_best_finds_nearly_as_many_and_is_exact(tried: list[Worth], bound: int) -> None:
    """One element of 50 is nearly as many, and a tenth more error nearly as exact; useful ones come before others."""
    looks = [(OneLook(10, place + 1), each) for place, each in enumerate(tried)]
    assert best(looks, 50, USEFUL) == OneLook(10, bound)


TWO = BothLooks(20, 8)


@pytest.mark.parametrize(
    ("quality", "units", "reason"),
    [
        (
            USEFUL,
            20,
            "the fewest of these units that find 47 of 50 with counts that are off by 10 % on average",
        ),
        (Quality(Fraction("0.9"), Fraction("0.13")), 10, "the fewest of these units that find 45 of 50"),
        (Quality(Fraction("0.9"), Fraction("0.05")), 40, "the fewest of these units"),
        # Nobody finds all 50: at most 47.2, of which 46.2 are nearly as many.
        (Quality(Fraction(1), Fraction("0.1")), 20, "none of these units find 50 of 50"),
        # Nobody is off by less than 4.5 %, of which 5 % is nearly as exact.
        (Quality(Fraction("0.9"), Fraction("0.01")), 40, "none of these units"),
    ],
)
def test_the_fewest_units_whose_answers_are_useful_are_proposed(
    cofacts: BoundedCounts, quality: Quality, units: int, reason: str
) -> None:
    """Or, if none are, the fewest that come nearly as close as any; and it says so."""
    tried = (
        Tried(OneLook(10, 8), worth(45, 24)),
        Tried(OneLook(20, 8), worth(45, 23)),
        Tried(TWO, worth(47, 12)),
        Tried(OneLook(40, 8), worth(47.2, 9)),
    )
    made = proposal(TradeOff(tried, worth(34, 13)), cofacts, QUESTION, quality)
    assert made.proposed.look.units == units
    assert reason in made.reasons[0]
    if units == 20:
        assert made.proposed.look == TWO
        assert "For as many units one look with Delta = 8 and 20 units finds 45.0" in " ".join(made.reasons)


def test_where_nothing_is_shown_the_fewest_units_are_proposed(cofacts: BoundedCounts) -> None:
    """Whatever the price: no setting is better than another."""
    tried = (Tried(OneLook(10, 8), worth(0, None)), Tried(TWO, worth(0, None)))
    made = proposal(TradeOff(tried, worth(0, None)), cofacts, QUESTION)
    assert made.proposed == tried[0]
    assert "none of these units" in made.reasons[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: expected the names"),
        ("who,what\n", "there is nobody to plan for"),
        ("who,what\na,x\nb,\n", "line 3, column what: expected a value"),
        ("who,what\na,x\nb\n", "line 3, column what: the row has too few columns"),
        ("who,what\na,x\nb,y\n", "there are 2 different elements: fewer than the 3"),
        ("who,that\na,x\n", "there is no column what"),
    ],
)
def test_data_that_cannot_be_planned_for_are_refused(tmp_path: Path, content: str, message: str) -> None:
    """By line and column, and no value is repeated."""
    path = tmp_path / "rows.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        counts_of_file(DataFile(path, Columns("who", ("what",)), False, "1GB"), 3, 5)


def test_rows_without_values_are_left_out_if_asked(tmp_path: Path) -> None:
    """As `gris bound` leaves them out."""
    path = tmp_path / "rows.csv"
    path.write_text("who,what\na,x\n,x\nb,\na,y\n")
    found = counts_of_file(DataFile(path, Columns("who", ("what",)), True, "1GB"), 2, 3)
    assert found.counts.tolist() == [1, 1]
