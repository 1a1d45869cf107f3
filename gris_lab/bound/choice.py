"""The block `choose` of a policy: what is expected of counts, from the same data or statements as the proposal.

Counts and shares are rounded down to one digit, so that they tell little of the data and expect rather too little.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

from dp_service.terms import Answering
from gris_lab.bound.contributions import BoundedCounts, Floats
from gris_lab.bound.looks import BothLooks, Question
from gris_lab.bound.search import Look

MOST_UNITS = 20
"""A policy lists so many numbers of units at most."""


@dataclass(frozen=True)
class Expectations:
    """What the block is made from: the counts, the units that were tried, and the column that counts are of."""

    counts: BoundedCounts
    units: tuple[int, ...]
    column: str


def choose_block(look: Look, question: Question, expected: Expectations) -> str:
    """Return the block beside which `look` answers questions of which nothing is expected."""
    among = [Answering.UNBOUNDED, Answering.ONE_LOOK]
    counts, k = expected.counts, question.k
    if isinstance(look, BothLooks):
        # Of equal prices the first is taken, and the counts of two looks are the more exact.
        among.insert(1, Answering.TWO_LOOKS)
        bounds = {"kept": look.counts_bound, "kept_names": look.names_bound}
    else:
        bounds = {"kept": look.bound}
    fewer = [str(units) for units in expected.units if units < look.units][-MOST_UNITS:]
    ranks = ", ".join(
        f"{{rank: {rank}, count: {int(one_digit(float(counts.counts[rank - 1])))}}}"
        for rank in _ranks(question, counts.counts)
    )
    parts = [
        f"among: [{', '.join(among)}]",
        *([f"units: [{', '.join(fewer)}]"] if fewer else []),
        *(f"{key}: {one_digit(_kept(counts, bound, k)):f}" for key, bound in bounds.items()),
        f"expected: {{{expected.column}: [{ranks}]}}",
    ]
    return f"choose: {{{', '.join(parts)}}}"


def one_digit(number: float) -> Decimal:
    """Return a number that is not negative, rounded down to its first digit: 1391.2 becomes 1000, and 0.087 0.08."""
    exact = Decimal(number)
    unit = Decimal(1).scaleb(exact.adjusted()) if exact else Decimal(1)
    return Decimal(f"{(exact / unit).quantize(Decimal(1), rounding=ROUND_DOWN) * unit:f}")


def _kept(counts: BoundedCounts, bound: int, k: int) -> float:
    """Return which part of the k largest counts a bound leaves."""
    return float(counts.under(bound)[:k].sum() / counts.counts[:k].sum())


def _ranks(question: Question, counts: Floats) -> list[int]:
    """Return 1, 2, 5, 10 and so on, with k, up to the first element that UnkGumb would not fetch."""
    last = min(question.d_bar + 1, counts.size)
    steps = itertools.takewhile(lambda rank: rank < last, _steps())
    return sorted({*steps, question.k, last})


def _steps() -> Iterator[int]:
    for power in itertools.count():
        yield from (first * 10**power for first in (1, 2, 5))
