"""The delta of a zCDP guarantee at an epsilon: the other direction of what the services state."""

from __future__ import annotations

import math
from fractions import Fraction

from dp_service.accounting.checks import require_epsilon
from dp_service.accounting.rounding import INTERVALS, interval, rounded_up
from dp_service.accounting.zcdp import Conversion, where_it_turns
from dp_service.noise.interval_arithmetic import Interval

_MAX_PARAMETER = 10**30


def delta_of_zcdp(rho: Fraction, epsilon: Fraction) -> Conversion:
    """Return a delta such that every rho-zCDP mechanism is (epsilon, delta)-DP, rounded up.

    Raises:
        ValueError: Not 0 < rho <= 10^30, or not 0 <= epsilon <= 10^30; the message names the argument.
    """
    require_epsilon("rho", rho, at_most=_MAX_PARAMETER)
    if epsilon != 0:
        require_epsilon("epsilon", epsilon, at_most=_MAX_PARAMETER)
    order = _best_order_for_delta(float(rho), float(epsilon))
    log_delta = _log_delta(interval(rho), interval(epsilon), order)
    return Conversion(min(1.0, rounded_up(INTERVALS.exp(log_delta))), order + 1)


def _log_delta(rho: Interval, epsilon: Interval, order: float) -> Interval:
    """Return ln(delta) of alpha = 1 + order."""
    over = INTERVALS.mpf(order)
    alpha = over + 1
    return over * (alpha * rho - epsilon) - INTERVALS.log(over) + alpha * INTERVALS.log(over / alpha)


def _best_order_for_delta(rho: float, epsilon: float) -> float:
    """Return alpha - 1 where delta is smallest; `slope` is the derivative of the convex ln(delta) by alpha."""
    return where_it_turns(lambda order: (2 * order + 1) * rho - epsilon - math.log1p(1 / order))
