"""The chances of an attacker, in the three attacks by which the paper chose its parameters.

Source: Rogers et al. 2020, section 8.3. Probabilities are floats, right to at least nine digits; they describe attacks
and bound nothing. tau = 1 throughout: the counts are of distinct members.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dp_service.accounting.checks import MAX_EPSILON_PER, require_epsilon, require_probability, require_units

MAX_ANSWERS = 1000
"""The largest number of answers that are averaged: daily answers over almost three years."""

# The aliasing of the discrete Fourier transform below is less than exp(-60).
_ALIASING_EXPONENT = 60


@dataclass(frozen=True)
class Averaging:
    """Chances that the mean of fresh answers to one question on unchanged data rounds to the true count.

    `normal` is the paper's approximation and `continuous` what it approximates, Laplace noise on the reals. The noise
    that is built is whole: `discrete` is the chance of a mean strictly within 1/2, `discrete_with_ties` that of one at
    most 1/2 away, where rounding may go either way.
    """

    normal: float
    continuous: float
    discrete: float
    discrete_with_ties: float


def averaging(epsilon_per: Fraction, answers: int) -> Averaging:
    """Return the chances after so many answers, each with noise of scale 2 / epsilon_per.

    Raises:
        ValueError: Not 0 < epsilon_per <= 10, or not 1 to 1000 answers; the message names the argument.
    """
    require_epsilon("epsilon_per", epsilon_per, at_most=MAX_EPSILON_PER)
    if not isinstance(answers, int) or not 1 <= answers <= MAX_ANSWERS:
        raise ValueError(f"answers must be an integer from 1 to {MAX_ANSWERS}, got {answers!r}")
    e = float(epsilon_per)
    # |sum| < n/2 for whole sums means |sum| <= ceil(n/2) - 1.
    return Averaging(
        normal=math.erf(e * math.sqrt(answers) / 8),
        continuous=_laplace_sum_within(answers, e * answers / 4),
        discrete=_discrete_sum_within(answers, e / 2, (answers + 1) // 2 - 1),
        discrete_with_ties=_discrete_sum_within(answers, e / 2, answers // 2),
    )


def _laplace_sum_within(terms: int, bound: float) -> float:
    """Return Pr[|X_1 + ... + X_n| < bound] for Laplace noise of scale 1.

    The sum is the difference of two sums of n exponential draws, two races of n rounds each. Whenever a round ends, in
    either race with probability 1/2, the difference forgets it; when one race is over, the other has J rounds left with
    Pr[J = j] = 2 C(2n - 1 - j, n - 1) / 2^(2n - j). So the absolute value is a sum of J exponential draws.
    """
    chances = [
        Fraction(math.comb(2 * terms - 1 - j, terms - 1), 2 ** (2 * terms - j - 1))
        for j in range(1, terms + 1)
    ]
    # A sum of j exponential draws is below the bound if at least j events of a Poisson process come before it.
    counts = range(terms)
    masses = np.exp([j * math.log(bound) - bound - math.lgamma(j + 1) for j in counts])
    return float(np.dot(np.array(chances, dtype=np.float64), 1 - np.cumsum(masses)))


def _discrete_sum_within(terms: int, rate: float, bound: int) -> float:
    """Return Pr[|Z_1 + ... + Z_n| <= bound] for Pr[Z = z] proportional to exp(-rate |z|).

    By the discrete Fourier transform of the sum's characteristic function, ((1-q)^2 / (1 - 2 q cos t + q^2))^n, over a
    circle that is too long for the sum to reach around.
    """
    spread = math.sqrt(2 * terms) / rate
    reach = bound + _ALIASING_EXPONENT * (spread + 1 / rate)
    points = 2 ** math.ceil(math.log2(2 * reach + 2))
    angles = 2 * math.pi * np.arange(points) / points
    # 1 - 2 q cos t + q^2 = (1-q)^2 + 4 q sin^2(t/2), without cancellation.
    q, shortfall = math.exp(-rate), -math.expm1(-rate)
    characteristic = (1 + 4 * q * (np.sin(angles / 2) / shortfall) ** 2) ** -float(terms)
    probabilities = np.fft.rfft(characteristic).real / points
    return float(probabilities[0] + 2 * probabilities[1 : bound + 1].sum())


@dataclass(frozen=True)
class Differencing:
    """How many elements two questions may return before one is expected to be exact in both.

    `exact_count` is the chance that one noisy count rounds to the true one; `elements` the largest k with
    k exact_count^2 < 1; `information` what two top-k questions of an unknown domain cost, 4k + 2.
    """

    exact_count: float
    elements: int
    information: int


def differencing(epsilon_per: Fraction, *, whole_noise: bool) -> Differencing:
    """Return the limit for the paper's continuous noise, or for the integer noise that is implemented.

    Raises:
        ValueError: Not 0 < epsilon_per <= 10.
    """
    require_epsilon("epsilon_per", epsilon_per, at_most=MAX_EPSILON_PER)
    quarter = float(epsilon_per) / 4
    # Pr[|Lap(2/e)| < 1/2] = 1 - exp(-e/4); Pr[Z = 0] = (1-q)/(1+q) = tanh(e/4).
    exact_count = math.tanh(quarter) if whole_noise else -math.expm1(-quarter)
    elements = math.ceil(1 / exact_count**2) - 1
    return Differencing(exact_count, elements, 4 * elements + 2)


@dataclass(frozen=True)
class UniqueMember:
    """Bounds on the chance that an element which only one member has is shown, in all calls together.

    `paper` is the paper's calls delta exp(-e). `unk_gumb` is the bound for the implemented UnkGumb, calls delta;
    `unk_gumb_few` holds if the table has fewer than d_bar + 1 elements, calls delta / (1 + delta). `unk_lap` is a union
    bound for UnkLap, whose threshold protects each element by itself, and d_bar of them d_bar times less.
    """

    paper: float
    unk_gumb: float
    unk_gumb_few: float
    unk_lap: float


def unique_member(
    epsilon_per: Fraction, delta: Fraction, *, calls: int, d_bar: int, delta_l0: int = 1
) -> UniqueMember:
    """Return the bounds; `delta_l0` is Delta, how many elements one member can have, of UnkLap.

    Raises:
        ValueError: An argument is out of range; the message names it.
    """
    require_epsilon("epsilon_per", epsilon_per, at_most=MAX_EPSILON_PER)
    require_probability("delta", delta)
    require_units("calls", calls)
    require_units("d_bar", d_bar, at_least=1)
    require_units("delta_l0", delta_l0, at_least=1)
    e = float(epsilon_per)
    shown_alone = float(delta) / ((math.exp(e / 2) + 1) * min(delta_l0, d_bar))
    return UniqueMember(
        paper=calls * float(delta) * math.exp(-e),
        unk_gumb=calls * float(delta),
        unk_gumb_few=calls * float(delta / (1 + delta)),
        unk_lap=min(1.0, calls * d_bar * shown_alone),
    )
