"""The exact law of what a publication releases, by walking through every way that its noise can fall.

The weights, cuts, truncation and rounds are the real ones; only the comparison of a noisy weight with the cuts is taken
over. Instead of drawing, it takes each possible level in turn and multiplies its exact probability.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.distribution import gaussian_tail
from dp_service.partitions import Parameters, Round, discover
from dp_service.partitions.schedule import Grids
from tests.support.zcdp import delta_of_zcdp

from .data import Member, contributions

Integers = NDArray[np.int64]
Transcript = tuple[tuple[int, ...], ...]
"""The released elements, round by round."""

Outcome = TypeVar("Outcome")
Law = Mapping[Transcript, float]


@cache
def tail(variance: Fraction, needed: int) -> float:
    """Return Pr[Z >= needed]."""
    return float(gaussian_tail(variance, needed).mid)


def level_probabilities(turn: Round, weight: int) -> list[float]:
    """Return how likely a noisy weight exceeds none of the cuts, one, and so on."""
    exceeded = [1.0, *(tail(turn.variance, cut + 1 - weight) for cut in turn.cuts), 0.0]
    return [more - less for more, less in pairwise(exceeded)]


class ScriptedNoise:
    """Takes the levels of a script, then always level 0, and keeps the probability of all of it."""

    def __init__(self, script: Sequence[int]) -> None:
        self.script = list(script)
        self.options: list[int] = []
        self.probability = 1.0

    def levels(self, turn: Round, elements: Integers, weights: Integers) -> Integers:
        """Return the next levels."""
        assert elements.shape == weights.shape
        return np.array([self._next(turn, int(weight)) for weight in weights], dtype=np.int64)

    def _next(self, turn: Round, weight: int) -> int:
        place = len(self.options)
        if place == len(self.script):
            self.script.append(0)
        self.options.append(len(turn.cuts) + 1)
        self.probability *= level_probabilities(turn, weight)[self.script[place]]
        return self.script[place]


def output_law(members: Sequence[Member], element_count: int, parameters: Parameters, grids: Grids) -> Law:
    """Return the probability of every transcript."""
    law: dict[Transcript, float] = defaultdict(float)
    script: list[int] | None = []
    while script is not None:
        noise = ScriptedNoise(script)
        found = discover(contributions(members, element_count), parameters, noise, grids)
        law[tuple(tuple(names.tolist()) for names in found.released)] += noise.probability
        script = _next_script(noise)
    assert math.isclose(math.fsum(law.values()), 1.0, abs_tol=1e-9)
    return law


def _next_script(noise: ScriptedNoise) -> list[int] | None:
    """Return the next script in the order of an odometer, or None after the last."""
    script = list(noise.script)
    while script and script[-1] + 1 == noise.options[len(script) - 1]:
        script.pop()
    if not script:
        return None
    script[-1] += 1
    return script


def hockey_stick(first: Mapping[Outcome, float], second: Mapping[Outcome, float], epsilon: float) -> float:
    """Return the delta that goes with epsilon, in one direction."""
    return math.fsum(
        max(0.0, probability - math.exp(epsilon) * second.get(outcome, 0.0))
        for outcome, probability in first.items()
    )


EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)


@cache
def promised(parameters: Parameters, epsilon: float) -> float:
    """Return delta + (1 - delta) delta' of corollary 9, rounded up."""
    converted = Fraction(delta_of_zcdp(parameters.rho, Fraction(epsilon)).value)
    return float(parameters.delta + (1 - parameters.delta) * converted)


def worst_excess(first: Law, second: Law, parameters: Parameters) -> float:
    """Return by how much the promise is broken at the worst epsilon and direction; at most 0 if it holds."""
    return max(
        hockey_stick(*pair, epsilon) - promised(parameters, epsilon)
        for epsilon in EPSILONS
        for pair in ((first, second), (second, first))
    )
