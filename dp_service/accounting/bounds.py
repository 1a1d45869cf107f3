"""Bounds on the epsilon of many bounded-range (BR) mechanisms together, at a given delta.

An e-BR mechanism's privacy loss lies, for any two neighbours, in an interval of length e that holds 0. So it is e-DP,
and by Hoeffding's lemma (e^2 / 8)-zCDP. All bounds hold for mechanisms chosen by the results so far; each is returned
as an interval, whose upper end is the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.checks import MAX_EPSILON_PER, require_epsilon, require_units
from dp_service.accounting.rounding import INTERVALS, interval
from dp_service.noise.gaussian_price import rho_of_units
from dp_service.noise.interval_arithmetic import Interval

# Below this the drift's three terms cancel in too many digits, and e^2 / 8 is too large by less than one part in 10^19.
_SMALL_EPSILON = Fraction(1, 10**9)


@dataclass(frozen=True)
class Portion:
    """`information` mechanisms, each `epsilon_per`-bounded-range."""

    epsilon_per: Fraction
    information: int

    def __post_init__(self) -> None:
        require_epsilon("epsilon_per", self.epsilon_per, at_most=MAX_EPSILON_PER)
        require_units("information", self.information)


def basic(portion: Portion) -> Interval:
    """Return k e: privacy losses add up. It needs no delta, and holds for what is bounded-range only."""
    return interval(portion.information * portion.epsilon_per)


def dong_durfee_rogers(portion: Portion, slack: Fraction) -> Interval:
    """Return k (x - 1 - ln x) + e sqrt(k / 2 ln(1 / slack)) with x = e / (1 - exp(-e)).

    The first term bounds the expected privacy loss, the second its deviation with probability 1 - slack.

    Source: Dong, Durfee and Rogers 2020; lemma 2.1 of Rogers et al. 2020. Theorem 2 of the latter prints exp(+e); then
    x is negative and has no logarithm.
    """
    squares = interval(portion.information * portion.epsilon_per**2)
    return portion.information * _drift(portion.epsilon_per) + deviation(squares, slack)


def rho_of(portion: Portion) -> Fraction:
    """Return the rho of the zCDP that the mechanisms have together: k e^2 / 8, exactly.

    Laplace noise, the exponential mechanism, and Gaussian noise of `variance_for` all keep it.
    """
    return rho_of_units(portion.epsilon_per, portion.information)


def _drift(epsilon_per: Fraction) -> Interval:
    """Return x - 1 - ln x, the largest expected privacy loss of an e-BR mechanism; at most e^2 / 8."""
    if epsilon_per < _SMALL_EPSILON:
        return interval(epsilon_per**2 / 8)
    e = interval(epsilon_per)
    ratio = e / (1 - INTERVALS.exp(-e))
    return ratio - 1 - INTERVALS.log(ratio)


def deviation(sum_of_squares: Interval, slack: Fraction) -> Interval:
    """Return sqrt(sum e_i^2 / 2 ln(1 / slack)): Azuma and Hoeffding's bound for steps of lengths e_i."""
    return INTERVALS.sqrt(-sum_of_squares / 2 * INTERVALS.log(interval(slack)))
