"""Promises of mechanisms with Gaussian counts, which are kept in zCDP: what is promised and the worst that is found."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.zcdp import epsilon_of_zcdp
from dp_service.mechanisms import CountNoise, Currency, KnownGumb, UnkGumb

from .enumeration import Law, hockey_stick
from .neighbours import (
    Counts,
    Release,
    all_histograms,
    laws_over,
    laws_over_unknown_domain,
    neighbouring_pairs,
    over_known_domain,
)

DELTA = Fraction(1, 20)

ORDERS = (1.01, 1.5, 2, 4, 16)
LOW_ORDERS = ORDERS[:-1]


def far_above(tau: int) -> list[Counts]:
    """Return counts that are far above any threshold, where only the noise of the counts hides a member."""
    return [(a, b, c) for a in (20, 20 + tau) for b in (9, 9 + tau) for c in (0, 1)]


SMALL = all_histograms(3, 2)


@dataclass(frozen=True)
class GaussianPromise:
    """A mechanism over some histograms; the noise of counts is enumerated within the radius.

    What counts for a divergence of order a is found about (a - 1) tau from the true counts, so the radius has to be
    several sigma more.
    """

    mechanism: KnownGumb | UnkGumb
    histograms: tuple[Counts, ...]
    radius: int
    orders: tuple[float, ...] = ORDERS

    def __str__(self) -> str:
        mechanism = self.mechanism
        where = "small" if self.histograms == tuple(SMALL) else "far above"
        limit = f" d_bar={mechanism.d_bar}" if isinstance(mechanism, UnkGumb) else ""
        parameters = f"e={mechanism.currency.epsilon_per} k={mechanism.k}{limit} tau={mechanism.tau}"
        return f"{mechanism.name.value} {parameters} {where}"

    @property
    def rho(self) -> float:
        """The zCDP that the worst case is charged for: e^2 / 8 for each unit of information."""
        e = float(self.mechanism.currency.epsilon_per)
        return self.mechanism.worst_case_cost().information * e**2 / 8

    def worst_rho(self) -> float:
        """Return the largest Renyi divergence of any order divided by that order, over all neighbours."""
        return max(
            renyi_divergence(first, second, order) / order
            for first, second in self.neighbouring_laws()
            for order in self.orders
        )

    def worst_excess(self, slacks: Sequence[float]) -> float:
        """Return the largest hockey-stick divergence at the epsilon of rho and a slack, above that slack.

        The epsilon is the one that the accounting promises, by its tight conversion.
        """
        epsilons = {slack: epsilon_of_zcdp(Fraction(self.rho), Fraction(slack)).value for slack in slacks}
        return max(
            hockey_stick(first, second, epsilon) - slack
            for first, second in self.neighbouring_laws()
            for slack, epsilon in epsilons.items()
        )

    def neighbouring_laws(self) -> Iterator[tuple[Law[Release], Law[Release]]]:
        """Yield the exact laws of each pair of neighbours, in both orders."""
        histograms, mechanism = list(self.histograms), self.mechanism
        if isinstance(mechanism, UnkGumb):
            laws = laws_over_unknown_domain(mechanism, histograms, d_bar=mechanism.d_bar, radius=self.radius)
        else:
            laws = laws_over(
                histograms, lambda counts: over_known_domain(mechanism, counts), radius=self.radius
            )
        for first, second in neighbouring_pairs(histograms, tau=self.mechanism.tau, delta_l0=3):
            yield laws[first], laws[second]


def renyi_divergence(first: Law[Release], second: Law[Release], order: float) -> float:
    """Return the divergence of one order, over the outcomes within the radius."""
    terms = [
        order * math.log(mass) + (1 - order) * math.log(second.mass[outcome])
        for outcome, mass in first.mass.items()
        # What is rarer than the smallest float has no part in any sum.
        if mass > 0 and second.mass.get(outcome, 0.0) > 0
    ]
    largest = max(terms)
    return (largest + math.log(math.fsum(math.exp(term - largest) for term in terms))) / (order - 1)


def known_gumb(epsilon_per: int, k: int, tau: int, law: CountNoise = CountNoise.GAUSSIAN) -> KnownGumb:
    """Return a top k with counts."""
    return KnownGumb(Currency(Fraction(epsilon_per), DELTA), k, tau, count_noise=law)


def unk_gumb(epsilon_per: int, k: int, d_bar: int, tau: int = 1) -> UnkGumb:
    """Return a top k with Gaussian counts."""
    return UnkGumb(Currency(Fraction(epsilon_per), DELTA), k, d_bar, tau, count_noise=CountNoise.GAUSSIAN)


KNOWN = [
    GaussianPromise(mechanism, tuple(histograms), radius, orders)
    for mechanism, radius, orders in (
        (known_gumb(1, 1, 1), 60, ORDERS),
        (known_gumb(3, 1, 1), 30, ORDERS),
        (known_gumb(2, 1, 2), 60, ORDERS),
        (known_gumb(4, 2, 1), 8, LOW_ORDERS),
    )
    for histograms in (SMALL, far_above(mechanism.tau))
]
UNKNOWN = [
    GaussianPromise(mechanism, tuple(histograms), radius)
    for mechanism, radius in (
        (unk_gumb(2, 1, 2), 20),
        (unk_gumb(2, 1, 3), 20),
        (unk_gumb(4, 1, 2, tau=2), 20),
        (unk_gumb(4, 2, 2), 5),
        (unk_gumb(4, 2, 3), 5),
    )
    for histograms in (SMALL, far_above(mechanism.tau))
]
SLACKS = (0.05, 1e-3)
