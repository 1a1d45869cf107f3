"""Sequences of calls, and what is lost by all of them together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms import Currency, UnkGumb, UnkLap
from tests.unit.dp_service.mechanisms.neighbours import (
    all_histograms,
    laws_over_unknown_domain,
    neighbouring_pairs,
)

CURRENCY = Currency(Fraction(1), Fraction("0.05"))


@dataclass(frozen=True)
class Calls:
    """Every pair of neighbours of one mechanism: the laws of its answers, shape (pairs, answers), what was cut off of
    them at most, and the information of one question at most.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    lost: float
    information: int


def calls_of(
    mechanism: UnkGumb | UnkLap, *, elements: int, largest: int, delta_l0: int, radius: int
) -> Calls:
    """Return the exact laws of a mechanism for all histograms of so many elements and counts."""
    histograms = all_histograms(elements, largest)
    laws = laws_over_unknown_domain(mechanism, histograms, d_bar=mechanism.d_bar, radius=radius)
    answers = sorted({answer for law in laws.values() for answer in law.mass}, key=repr)
    rows = {
        counts: np.array([law.mass.get(answer, 0.0) for answer in answers]) for counts, law in laws.items()
    }
    pairs = list(neighbouring_pairs(histograms, tau=1, delta_l0=delta_l0))
    return Calls(
        np.array([rows[one] for one, _ in pairs]),
        np.array([rows[other] for _, other in pairs]),
        max(law.lost for law in laws.values()),
        mechanism.worst_case_cost().information,
    )


# Computed when the first test needs it, not while tests are collected.
@cache
def gumbel() -> Calls:
    """Return what two calls of UnkGumb are composed of."""
    mechanism = UnkGumb(CURRENCY, k=2, d_bar=3, tau=1, with_counts=False)
    return calls_of(mechanism, elements=4, largest=1, delta_l0=4, radius=0)


@cache
def laplace() -> Calls:
    """Return what two calls of UnkLap are composed of."""
    mechanism = UnkLap(CURRENCY, delta_l0=1, d_bar=1, tau=1)
    return calls_of(mechanism, elements=2, largest=2, delta_l0=1, radius=24)


COMPOSITIONS = [(gumbel, gumbel), (gumbel, laplace), (laplace, gumbel)]


def worst_excess(one: NDArray[np.float64], other: NDArray[np.float64], calls: Calls, epsilon: float) -> float:
    """Return the largest hockey-stick divergence that a further call leads to, from the masses of where it starts."""
    ahead = one[:, None, None] * calls.first - math.exp(epsilon) * other[:, None, None] * calls.second
    return float(np.maximum(0, ahead).sum(axis=2).max(axis=1).sum())


def composed_delta(first: Calls, second: Calls, epsilon: float) -> float:
    """Return the largest delta of two calls at an epsilon; what the enumeration cuts off counts in full."""
    pairs = zip(first.first, first.second, strict=True)
    # Answers that the first neighbour cannot give lead nowhere.
    return (
        first.lost
        + second.lost
        + max(worst_excess(one[one > 0], other[one > 0], second, epsilon) for one, other in pairs)
    )
