"""Composition that cannot be improved: of epsilon-DP in general, and of bounded range in fixed batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dp_service.accounting.bounds import Portion, rho_of
from dp_service.accounting.checks import MAX_EPSILON_PER, require_epsilon, require_probability, require_units
from dp_service.accounting.rounding import INTERVALS, interval, rounded_up
from dp_service.accounting.zcdp import epsilon_of_zcdp

Floats = NDArray[np.float64]

MAX_BATCH = 3000
"""The largest batch: the bound looks at all pairs of two numbers up to this."""

# A dozen float operations on exponents below 10^5 lose less than this part of their result.
_RELATIVE_ERROR = 1e-9
_BISECTIONS = 36


@dataclass(frozen=True)
class OptimalPoint:
    """The mechanisms together are (epsilon, delta)-DP; epsilon is exact, delta rounded up."""

    epsilon: Fraction
    delta: float


def optimal_composition(epsilon: Fraction, count: int, delta: Fraction) -> OptimalPoint:
    """Return the smallest (k - 2i) epsilon, k = `count`, i a whole number, whose optimal delta is at most `delta`.

    It holds for `count` adaptively chosen epsilon-DP mechanisms, and some have no better guarantee at that delta:

        delta_i = sum over l < i of C(k, l) (exp((k - l) epsilon) - exp((k - 2i + l) epsilon)) / (1 + exp(epsilon))^k

    Source: Kairouz, Oh and Viswanath 2017; lemma A.1 of Durfee and Rogers 2019. delta_i is rounded up, so in doubt a
    larger epsilon is returned.

    Raises:
        ValueError: An argument is out of range; the message names it.
    """
    require_epsilon("epsilon", epsilon, at_most=MAX_EPSILON_PER)
    require_units("count", count, at_least=1)
    require_probability("delta", delta)
    best, best_delta = 0, 0.0
    for steps, found in enumerate(_optimal_deltas(epsilon, count), start=1):
        if found > delta:
            break
        best, best_delta = steps, found
    return OptimalPoint(epsilon * (count - 2 * best), best_delta)


def _optimal_deltas(epsilon: Fraction, count: int) -> Iterator[float]:
    """Yield delta_i, rounded up, for i = 1 ... floor(count / 2), from two running sums over l."""
    e = interval(epsilon)
    up, down = INTERVALS.exp(e), INTERVALS.exp(-e)
    scale = up**count / (1 + up) ** count
    # C(k, l) e^(-l epsilon) and C(k, l) e^(l epsilon), and e^(-2 i epsilon).
    falling_term, rising_term, shift = interval(1), interval(1), interval(1)
    falling, rising = interval(0), interval(0)
    for chosen in range(count // 2):
        falling += falling_term
        rising += rising_term
        shift *= down * down
        yield rounded_up(scale * (falling - shift * rising))
        factor = interval(Fraction(count - chosen, chosen + 1))
        falling_term *= factor * down
        rising_term *= factor * up


def fixed_batch_epsilon(portion: Portion, delta: Fraction) -> float:
    """Return the optimal epsilon of bounded-range mechanisms that are **all chosen beforehand**, rounded up.

    Analysts who choose a question by earlier answers are not covered. The worst mechanisms of a batch are generalized
    randomized responses: two outcomes, of privacy loss t and t - e, and the same t for all of them. With k of them,

        delta(epsilon) = max over t of sum_i C(k, i) q^(k-i) (1-q)^i max(0, 1 - exp(epsilon - (k t - i e))),

    q = (1 - exp(t - e)) / (1 - exp(-e)). The maximum lies at one of t = (epsilon + (j + 1) e) / (k + 1), j = 0 ... k,
    where the derivative vanishes. Computed in floats; delta is enlarged by more than their error and epsilon taken
    above, so the result errs upwards.

    Source: Dong, Durfee and Rogers 2020, theorem 2.

    Raises:
        ValueError: Not 1 to 3000 mechanisms, or `delta` does not lie strictly between 0 and 1.
    """
    require_probability("delta", delta)
    if not 1 <= portion.information <= MAX_BATCH:
        raise ValueError(f"information must be from 1 to {MAX_BATCH} in a batch, got {portion.information}")
    # Concentrated DP covers batches too, so the optimum is not above it.
    low, high = (
        0.0,
        min(
            rounded_up(interval(portion.information * portion.epsilon_per)),
            epsilon_of_zcdp(rho_of(portion), delta).value,
        ),
    )
    allowed = float(delta) * (1 - _RELATIVE_ERROR)
    # Only an epsilon on the upper side will do, so no root finder whose result may lie on either.
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if fixed_batch_delta(portion, middle) <= allowed else (middle, high)
    return high


def fixed_batch_delta(portion: Portion, epsilon: float) -> float:
    """Return the delta that belongs to an epsilon in a fixed batch, to nine digits; see `fixed_batch_epsilon`."""
    count, e = portion.information, float(portion.epsilon_per)
    shifts = (epsilon + (np.arange(count + 1) + 1) * e) / (count + 1)
    shifts = shifts[shifts < e]
    # A block at a time keeps the pairs of a large batch out of memory.
    blocks = np.array_split(shifts, max(1, shifts.size * count // 10**6))
    return max((_largest_delta(block, count, e, epsilon) for block in blocks if block.size), default=0.0)


def _largest_delta(shifts: Floats, count: int, e: float, epsilon: float) -> float:
    """Return the largest delta over the losses t in `shifts`, shape (n,), 0 < t < e."""
    others = np.arange(count + 1)
    first = np.log(np.expm1(shifts - e) / math.expm1(-e))[:, None]
    # 1 - q = e^-e (e^t - 1) / (1 - e^-e), without the cancellation of 1 - q.
    second = np.log(np.expm1(shifts) / math.expm1(e))[:, None]
    gain = -np.expm1(np.minimum(0, epsilon - (count * shifts[:, None] - others * e)))
    masses = np.exp(_log_binomials(count) + (count - others) * first + others * second)
    return float((masses * gain).sum(axis=1).max())


def _log_binomials(count: int) -> Floats:
    """Return ln C(count, i) for i = 0 ... count."""
    log_factorials = gammaln(np.arange(count + 1) + 1.0)
    log_binomials: Floats = log_factorials[count] - log_factorials - log_factorials[::-1]
    return log_binomials
