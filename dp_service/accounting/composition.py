"""From a budget to a guarantee, for analysts who choose each question by the answers so far.

A budget of k information units and l calls pays for at most k epsilon_per-bounded-range mechanisms and l times delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mpmath import mp

# Fifty digits leave no error that the last rounding, upwards to the next float, does not cover.
_DECIMAL_DIGITS = 50


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy for every member; both are upper bounds."""

    epsilon: float
    delta: float


def guarantee(
    epsilon_per: Fraction, delta: Fraction, *, information: int, calls: int, slack: Fraction
) -> Guarantee:
    """Return the guarantee of everything that one budget pays for, rounded up.

    `slack` is the part of delta that buys the better composition (delta' in the papers), strictly between 0 and 1.
    epsilon is the smaller of basic and bounded-range composition, delta is 2 calls delta + slack.

    Source: Rogers et al. 2020, theorem 2. Raises ValueError, naming the argument, for values out of range.
    """
    _require(epsilon_per > 0, "epsilon_per must be positive")
    _require(0 < delta < 1, "delta must lie strictly between 0 and 1")
    _require(information >= 0, "information must not be negative")
    _require(calls >= 0, "calls must not be negative")
    _require(0 < slack < 1, "slack must lie strictly between 0 and 1")
    with mp.workdps(_DECIMAL_DIGITS):
        basic = information * _real(epsilon_per)
        epsilon = min(basic, bounded_range_epsilon(_real(epsilon_per), information, _real(slack)))
        return Guarantee(_rounded_up(epsilon), _rounded_up(_real(2 * calls * delta + slack)))


def bounded_range_epsilon(epsilon_per: mp.mpf, count: int, slack: mp.mpf) -> mp.mpf:
    """Return count (x - 1 - ln x) + e sqrt(count / 2 ln(1 / slack)) with x = e / (1 - exp(-e)).

    That is the epsilon of `count` adaptively chosen e-bounded-range mechanisms (Dong, Durfee and Rogers 2020; lemma 2.1
    of Rogers et al. 2020). Theorem 2 of the latter prints exp(+e); then x is negative and has no logarithm.
    """
    ratio = epsilon_per / (1 - mp.exp(-epsilon_per))
    drift = count * (ratio - 1 - mp.log(ratio))
    return drift + epsilon_per * mp.sqrt(mp.mpf(count) / 2 * mp.log(1 / slack))


def _real(number: Fraction) -> mp.mpf:
    return mp.mpf(number.numerator) / number.denominator


def _rounded_up(number: mp.mpf) -> float:
    return math.nextafter(float(number), math.inf) if number else 0.0


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
