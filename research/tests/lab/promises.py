"""Promises to enumerate: mechanisms with generous parameters, and the tiny worlds in which they are tried."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from dp_service.mechanisms import Currency, KnownGumb, KnownLap, UnkGumb, UnkLap
from dp_service.noise import NoiseSource
from research.lab.mechanisms import (
    ComparedMechanism,
    FixedThreshold,
    LaplaceLimitDom,
    LimitDom,
    Peeling,
    PermuteAndFlip,
    Served,
    StrictLimitDom,
)
from tests.unit.dp_service.mechanisms.enumeration import Law, certain_hockey_stick, hockey_stick
from tests.unit.dp_service.mechanisms.neighbours import (
    Counts,
    Release,
    all_histograms,
    laws_over,
    named_run,
    neighbouring_pairs,
)

DELTA = Fraction(1, 20)


def currency(epsilon_per: int | str, delta: Fraction = DELTA) -> Currency:
    """Return a generous currency."""
    return Currency(Fraction(epsilon_per), delta)


@dataclass(frozen=True)
class Promise:
    """A mechanism over all histograms of so many elements and counts up to the largest, and its neighbours.

    Noise is enumerated within the radius.
    """

    mechanism: ComparedMechanism
    elements: int
    largest: int
    tau: int
    delta_l0: int
    radius: int = 0

    def worst_delta(self) -> float:
        """Return an upper bound of the largest hockey-stick divergence at the promised epsilon, both directions."""
        return max(hockey_stick(first, second, self.epsilon) for first, second in self.neighbouring_laws())

    def proven_delta(self) -> float:
        """Return a lower bound of it, which leaves out what lies beyond the radius."""
        return max(
            certain_hockey_stick(first, second, self.epsilon) for first, second in self.neighbouring_laws()
        )

    @property
    def epsilon(self) -> float:
        """The promised epsilon."""
        return self.mechanism.guarantee().epsilon

    def neighbouring_laws(self) -> Iterator[tuple[Law[Release], Law[Release]]]:
        """Yield the exact laws of each pair of neighbours, in both orders."""
        histograms = all_histograms(self.elements, self.largest)
        laws = laws_of(self.mechanism, histograms, self.radius)
        for first, second in neighbouring_pairs(histograms, tau=self.tau, delta_l0=self.delta_l0):
            yield laws[first], laws[second]


def over_whole_histogram(mechanism: ComparedMechanism, counts: Counts) -> Callable[[NoiseSource], Release]:
    """Run an alternative on all counts; it cuts them itself to what it may see."""
    return named_run(mechanism, list(range(len(counts))), counts)


def laws_of(
    mechanism: ComparedMechanism, histograms: list[Counts], radius: int
) -> dict[Counts, Law[Release]]:
    """Return the exact law of what a mechanism releases of every histogram."""
    return laws_over(histograms, lambda counts: over_whole_histogram(mechanism, counts), radius=radius)


def delta_hat_of(epsilon: int) -> Fraction:
    """Return the delta_hat of algorithm 4 with which its promise is at most 0.05."""
    return DELTA / math.ceil(math.exp(epsilon) + 1)


# The first of each mechanism is tried by every run of all tests, the others by `make test-long`.
PROMISES = [
    Promise(Served(KnownLap(currency(3), 2, 1)), 2, 2, 1, 2, radius=12),
    Promise(Served(KnownGumb(currency(1), 2, 1, with_counts=False)), 3, 3, 1, 3),
    Promise(Served(KnownGumb(currency(3), 1, 1)), 3, 2, 1, 3, radius=12),
    Promise(Served(UnkLap(currency(6), 1, 1, 1)), 2, 3, 1, 1, radius=12),
    Promise(Served(UnkLap(currency(3), 1, 2, 1)), 3, 2, 1, 1, radius=6),
    Promise(Served(UnkLap(currency(6), 1, 1, 2)), 3, 3, 2, 1, radius=12),
    Promise(Served(UnkGumb(currency(1), 2, 3, 1, with_counts=False)), 4, 2, 1, 4),
    Promise(Served(UnkGumb(currency(1), 2, 2, 2, with_counts=False)), 4, 2, 2, 4),
    Promise(Served(UnkGumb(currency(1), 1, 3, 1)), 3, 2, 1, 3, radius=25),
    Promise(LimitDom(currency(1), 1, 1, 1), 3, 3, 1, 3),
    Promise(LimitDom(currency(1), 2, 3, 1), 4, 2, 1, 4),
    Promise(LimitDom(currency(1), 2, 2, 2), 4, 2, 2, 4),
    Promise(LimitDom(currency(1), 2, 3, 1), 3, 3, 1, 3),
    Promise(LimitDom(currency(1), 2, 2, 1, delta_l0=1), 4, 2, 1, 1),
    Promise(LimitDom(currency(1), 2, 3, 2, delta_l0=2), 4, 2, 2, 2),
    Promise(StrictLimitDom(currency(1), 1, 1, 1), 3, 3, 1, 3),
    Promise(StrictLimitDom(currency(1), 1, 3, 1), 4, 2, 1, 4),
    Promise(StrictLimitDom(currency(1), 3, 3, 1), 4, 2, 1, 4),
    Promise(StrictLimitDom(currency(1), 2, 2, 2), 4, 2, 2, 4),
    Promise(LaplaceLimitDom(currency(2, delta_hat_of(2)), 1, 1, 1, 1), 3, 3, 1, 1, radius=12),
    Promise(LaplaceLimitDom(currency(3, delta_hat_of(3)), 2, 2, 1, 1), 3, 2, 1, 1, radius=5),
    Promise(LaplaceLimitDom(currency(6, delta_hat_of(6)), 1, 2, 2, 1), 3, 2, 1, 2, radius=5),
    Promise(LaplaceLimitDom(currency(4, delta_hat_of(4)), 1, 1, 1, 2), 3, 3, 2, 1, radius=12),
    Promise(FixedThreshold(currency(1), 1, 1), 3, 3, 1, 3, radius=25),
    Promise(FixedThreshold(currency(2), 2, 1), 3, 3, 1, 3, radius=8),
    Promise(FixedThreshold(currency(2), 1, 2), 3, 3, 2, 3, radius=20),
    Promise(FixedThreshold(currency(4), 2, 2), 3, 3, 2, 3, radius=8),
    Promise(Peeling(currency(1), 2, 1), 3, 3, 1, 3),
    Promise(Peeling(currency(1), 2, 2), 3, 3, 2, 3),
    Promise(PermuteAndFlip(currency(4), 1, 2), 2, 3, 2, 2, radius=12),
    Promise(PermuteAndFlip(currency(1), 1, 1), 2, 3, 1, 2, radius=20),
    Promise(PermuteAndFlip(currency(6), 1, 1), 3, 2, 1, 3, radius=3),
]
