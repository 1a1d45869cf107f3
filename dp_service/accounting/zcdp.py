"""Zero-concentrated differential privacy (zCDP) turned into (epsilon, delta)-differential privacy.

A mechanism that is rho-zCDP is (epsilon, delta)-DP whenever, for some alpha > 1,

    delta >= exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha .

Every alpha gives a valid bound, so the search for alpha may be inexact; the bound is then computed at the alpha that
was found, in interval arithmetic. The results are upper bounds, rounded up.

Source: Canonne, Kamath and Steinke 2020, proposition 12; corollary 9 of Swanberg et al. 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.checks import require_epsilon, require_probability
from dp_service.accounting.rounding import INTERVALS, REALS, interval, real, rounded_up
from dp_service.noise.interval_arithmetic import Interval

_BISECTIONS = 64
_LARGEST_EXPONENT = 600.0
_MAX_PARAMETER = 10**30


@dataclass(frozen=True)
class Conversion:
    """`value`, an upper bound of the requested epsilon or delta, and the `alpha` that gives it."""

    value: float
    alpha: float


def epsilon_of_zcdp(rho: Fraction, delta: Fraction) -> Conversion:
    """Return an epsilon such that every rho-zCDP mechanism is (epsilon, delta)-DP, rounded up.

    Raises:
        ValueError: Not 0 < rho <= 10^30, or not 0 < delta < 1; the message names the argument.
    """
    require_epsilon("rho", rho, at_most=_MAX_PARAMETER)
    require_probability("delta", delta)
    order = _best_order_for_epsilon(float(rho), float(REALS.log(real(delta))))
    return Conversion(max(0.0, rounded_up(_epsilon(interval(rho), interval(delta), order))), order + 1)


def _epsilon(rho: Interval, delta: Interval, order: float) -> Interval:
    """Return the epsilon of alpha = 1 + order: the inequality above, solved for epsilon."""
    over = INTERVALS.mpf(order)
    alpha = over + 1
    log_rest = alpha * INTERVALS.log(over / alpha) - INTERVALS.log(over) - INTERVALS.log(delta)
    return alpha * rho + log_rest / over


def _best_order_for_epsilon(rho: float, log_delta: float) -> float:
    """Return alpha - 1 where epsilon is smallest.

    The derivative of epsilon by alpha has the sign of `slope`, which changes once: ln(delta) is convex in alpha.
    """

    def slope(order: float) -> float:
        shrinking = -math.log1p(1 / order)
        log_rest = (order + 1) * shrinking - math.log(order) - log_delta
        return order * rho + shrinking - log_rest / order

    return where_it_turns(slope)


def where_it_turns(slope: Callable[[float], float]) -> float:
    """Return the order, by bisection on its logarithm, where a slope turns from negative to positive.

    It may have one sign from end to end, and then an end is right: SciPy's root finders refuse that.
    """
    low, high = -_LARGEST_EXPONENT, _LARGEST_EXPONENT
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(math.exp(middle)) < 0 else (low, middle)
    return math.exp(low)
