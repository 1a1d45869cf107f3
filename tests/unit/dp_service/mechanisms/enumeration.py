"""The exact output law of a mechanism, found by running its real code under every outcome of its draws.

A run asks a `NoiseSource` for draws; `EnumeratingNoise` answers with one outcome of each and remembers that
there were others. Running again for every alternative walks the whole tree of choices. Selections have
finitely many outcomes; noise is cut off at a radius, and the mass beyond it is accounted for as `lost`.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_service.noise import LogWeights, NoiseSource

Outcome = TypeVar("Outcome", bound=Hashable)
RowOrder = Callable[[int], NDArray[np.int64]]


@dataclass(frozen=True)
class Law(Generic[Outcome]):
    """Probabilities of outcomes; `lost` is the mass of the runs whose noise would have exceeded the radius."""

    mass: dict[Outcome, float]
    lost: float


@dataclass(frozen=True, eq=False)
class Options:
    """All outcomes of one draw of some values: int64, shape (outcomes, values), and the probability of each."""

    values: NDArray[np.int64]
    probabilities: tuple[float, ...]


class EnumeratingNoise:
    """Follows a list of choices, then takes the first option of every further draw."""

    def __init__(self, choices: Sequence[int], radius: int, row_order: RowOrder) -> None:
        self._radius = radius
        self._row_order = row_order
        self.choices = list(choices)
        self.option_counts: list[int] = []
        self.probability = 1.0

    def discrete_laplace(self, inverse_scale: Fraction, size: int, label: str) -> NDArray[np.int64]:
        """Return one outcome of `size` draws within the radius."""
        return self._drawn(laplace_options(inverse_scale, self._radius, size))

    def discrete_gaussian(self, variance: Fraction, size: int, label: str) -> NDArray[np.int64]:
        """Return one outcome of `size` draws within the radius."""
        return self._drawn(gaussian_options(variance, self._radius, size))

    def gumbel_order(self, weights: LogWeights, count: int, label: str) -> NDArray[np.int64]:
        """Return one of the possible orders."""
        eligible = tuple(weights.is_eligible(index) for index in range(len(weights)))
        return self._drawn(order_options(tuple(log_weights(weights)), eligible, count))

    def random_order(self, size: int, label: str) -> NDArray[np.int64]:
        """Return one order: no law may depend on which it is, as a test shows by others."""
        return self._row_order(size)

    def _drawn(self, options: Options) -> NDArray[np.int64]:
        position = len(self.option_counts)
        self.option_counts.append(len(options.probabilities))
        if position == len(self.choices):
            self.choices.append(0)
        chosen = self.choices[position]
        self.probability *= options.probabilities[chosen]
        # A copy, for the mechanism may write into what it drew.
        drawn: NDArray[np.int64] = options.values[chosen].copy()
        return drawn


def output_law(
    run: Callable[[NoiseSource], Outcome], *, radius: int, row_order: RowOrder = np.arange
) -> Law[Outcome]:
    """Return the exact law of what `run` returns, given the order in which it puts its rows."""
    mass: dict[Outcome, float] = defaultdict(float)
    pending: list[list[int]] = [[]]
    while pending:
        given = pending.pop()
        noise = EnumeratingNoise(given, radius, row_order)
        mass[run(noise)] += noise.probability
        for position in range(len(given), len(noise.choices)):
            pending += [
                [*noise.choices[:position], other] for other in range(1, noise.option_counts[position])
            ]
    return Law(dict(mass), max(0.0, 1 - math.fsum(mass.values())))


@cache
def laplace_options(inverse_scale: Fraction, radius: int, size: int) -> Options:
    """Return all outcomes of `size` discrete Laplace draws within the radius with their probabilities."""
    q = math.exp(-inverse_scale)
    return _independent([(1 - q) / (1 + q) * q ** abs(z) for z in range(-radius, radius + 1)], radius, size)


@cache
def gaussian_options(variance: Fraction, radius: int, size: int) -> Options:
    """Return all outcomes of `size` discrete Gaussian draws within the radius with their probabilities."""
    far = math.ceil(40 * math.sqrt(variance)) + radius
    total = math.fsum(math.exp(-(z**2) / (2 * variance)) for z in range(-far, far + 1))
    masses = [math.exp(-(z**2) / (2 * variance)) / total for z in range(-radius, radius + 1)]
    return _independent(masses, radius, size)


def _independent(masses: list[float], radius: int, size: int) -> Options:
    """Return all outcomes of `size` draws from -radius to radius, each with these masses."""
    values = np.array(list(product(range(-radius, radius + 1), repeat=size)), dtype=np.int64)
    return Options(values, tuple(map(math.prod, product(masses, repeat=size))))


def log_weights(weights: LogWeights) -> list[float]:
    """Return the logarithms of exact weights as floats."""
    return [
        float(weights.unit * int(multiple)) + math.log(weights.odds(index))
        for index, multiple in enumerate(weights.multiples)
    ]


@cache
def order_options(logs: tuple[float, ...], eligible: tuple[bool, ...], count: int) -> Options:
    """Return all orders of `count` entries with their probabilities: those eligible first, each part Plackett-Luce."""
    first = [index for index, is_eligible in enumerate(eligible) if is_eligible]
    rest = [index for index, is_eligible in enumerate(eligible) if not is_eligible]
    drawn = min(count, len(first))
    found = [
        ((*head, *tail), head_probability * tail_probability)
        for head, head_probability in _orders_of(logs, first, drawn)
        for tail, tail_probability in _orders_of(logs, rest, count - drawn)
    ]
    orders, probabilities = zip(*found, strict=True)
    return Options(np.array(orders, dtype=np.int64), probabilities)


def _orders_of(
    logs: Sequence[float], entries: Sequence[int], count: int
) -> list[tuple[tuple[int, ...], float]]:
    of_entries = [logs[entry] for entry in entries]
    return [
        (tuple(entries[place] for place in places), plackett_luce(of_entries, places))
        for places in permutations(range(len(entries)), count)
    ]


def plackett_luce(logs: Sequence[float], order: Sequence[int]) -> float:
    """Return the probability of drawing entries in this order without replacement."""
    left = set(range(len(logs)))
    log_probability = 0.0
    for entry in order:
        # Summed anew each time: what is left may be far smaller than what was taken away.
        largest = max(logs[each] for each in left)
        log_probability += logs[entry] - largest
        log_probability -= math.log(math.fsum(math.exp(logs[each] - largest) for each in left))
        left.remove(entry)
    return math.exp(log_probability)


def hockey_stick(first: Law[Outcome], second: Law[Outcome], epsilon: float) -> float:
    """Return an upper bound of the hockey-stick divergence of two laws: the delta that goes with epsilon."""
    return _excess(first, second, epsilon) + first.lost


def certain_hockey_stick(first: Law[Outcome], second: Law[Outcome], epsilon: float) -> float:
    """Return a lower bound of the hockey-stick divergence of two laws."""
    return _excess(first, second, epsilon) - math.exp(epsilon) * second.lost


def _excess(first: Law[Outcome], second: Law[Outcome], epsilon: float) -> float:
    ratio = math.exp(epsilon)
    return math.fsum(
        max(0.0, probability - ratio * second.mass.get(outcome, 0.0))
        for outcome, probability in first.mass.items()
    )
