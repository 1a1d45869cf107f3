"""The exact discrete Gaussian sampler.

Source: Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy", algorithm 3.

Pr[Z = z] is proportional to exp(-z^2 / (2 sigma^2)). With t = floor(sigma) + 1, a candidate y is drawn with
probability proportional to exp(-|y| / t) and accepted with probability exp(-x), where
x = (|y| - sigma^2 / t)^2 / (2 sigma^2). The product of the two is exp(-y^2 / (2 sigma^2)) times a constant, so
an accepted candidate has the law asked for. A candidate is accepted if a uniform number U is below exp(-x).
Floats with error bounds settle that for all but about one candidate in 10^13; the others are settled in
interval arithmetic. How many rounds it takes depends on the random bits and the variance alone.
"""

from collections import Counter
from fractions import Fraction
from itertools import count
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.discrete_laplace import discrete_laplace
from dp_service.noise.interval_arithmetic import certainly_below, enclose, interval_context
from dp_service.noise.stream import WORD_BITS, KeyedStream
from dp_service.noise.uniforms import DRAWS_AT_A_TIME, KeyedUniforms, UniformBits, enclose_uniform

MIN_VARIANCE = Fraction(1, 10**6)
MAX_VARIANCE = Fraction(10**16)

# As for logarithms in `gumbel_keys`: the platform's exponential is within 16 units in the last place.
_EXP_ULPS = 16
_ULP = 2.0**-52
_FIRST_EXACT_WORDS = 2
_GUARD_BITS = 64


def discrete_gaussian(
    stream: KeyedStream,
    label: tuple[str, ...],
    variance: Fraction,
    size: int,
    *,
    at_a_time: int = DRAWS_AT_A_TIME,
) -> NDArray[np.int64]:
    """Draw `size` independent numbers with Pr[Z = z] proportional to exp(-z^2 / (2 variance)), exactly.

    `variance` is the parameter sigma^2 of the law; the variance of Z is at most that. In round r = 0, 1, ...
    every draw that has none yet gets, in order, one candidate from `label` followed by "round", r and
    "candidate", and one uniform number from `label` followed by "round", r and "acceptance". How many draws are made
    `at_a_time` changes none of them.

    Raises:
        ValueError: If `size` is negative or `variance` is not in [10^-6, 10^16].
    """
    if size < 0:
        raise ValueError(f"size must not be negative, got {size}")
    check_variance(variance)
    values = np.empty(size, dtype=np.int64)
    used: Counter[int] = Counter()
    for start in range(0, size, at_a_time):
        _fill(values[start : start + at_a_time], stream, label, variance, used)
    return values


def _fill(
    values: NDArray[np.int64],
    stream: KeyedStream,
    label: tuple[str, ...],
    variance: Fraction,
    used: Counter[int],
) -> None:
    """Make the next draws, through all their rounds.

    `used` holds how many numbers of each round the draws before them have taken, and is updated: the n-th draw
    to enter a round gets its n-th candidate, however the draws are cut into blocks.
    """
    missing = np.arange(values.size)
    for turn in count():
        if not missing.size:
            return
        name, first = (*label, "round", str(turn)), used[turn]
        used[turn] += missing.size
        scale = Fraction(1, laplace_scale(variance))
        candidates = discrete_laplace(stream, (*name, "candidate"), scale, missing.size, first)
        uniforms = KeyedUniforms(stream, (*name, "acceptance"), missing.size, first)
        accepted = acceptance(variance, candidates, uniforms)
        values[missing[accepted]] = candidates[accepted]
        missing = missing[~accepted]


def check_variance(variance: Fraction) -> None:
    """Raise ValueError unless the sampler can draw with this variance."""
    if not MIN_VARIANCE <= variance <= MAX_VARIANCE:
        raise ValueError(f"variance must be from {MIN_VARIANCE} to {MAX_VARIANCE}, got {variance}")


def laplace_scale(variance: Fraction) -> int:
    """Return t = floor(sigma) + 1, the scale of the candidates."""
    return isqrt(variance.numerator // variance.denominator) + 1


def rejection_exponent(variance: Fraction, candidate: int) -> Fraction:
    """Return x = (|y| - sigma^2 / t)^2 / (2 sigma^2), where exp(-x) is the probability of accepting y."""
    return (abs(candidate) - variance / laplace_scale(variance)) ** 2 / (2 * variance)


def acceptance(variance: Fraction, candidates: NDArray[np.int64], uniforms: UniformBits) -> NDArray[np.bool_]:
    """Return for each candidate whether its uniform number is below exp(-x), exactly; shape as `candidates`."""
    accepted = np.empty(candidates.size, dtype=np.bool_)
    for start, words in uniforms.leading_blocks():
        block = slice(start, start + words.size)
        probability, error = _probability(variance, candidates[block])
        # The bits that follow add less than 2^-64, and conversion to a float rounds by less than 2^-53 of it.
        distance = words.astype(np.float64) * 2.0**-64 - probability
        accepted[block] = distance < 0
        for index in np.flatnonzero(np.abs(distance) <= error + 2.0**-62).tolist():
            accepted[start + index] = _is_accepted(
                rejection_exponent(variance, int(candidates[start + index])), uniforms, start + index
            )
    return accepted


def _probability(
    variance: Fraction, candidates: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return exp(-x) and a bound on its error, which leaves room for that of comparing with it.

    Candidates and sigma^2 / t < sigma are rounded to floats, so |y| - sigma^2 / t is off by at most
    2 ulp (|y| + sigma), and x, to first order, by at most ulp (10 x + 8 sqrt(x)) <= ulp (16 + 16 x).
    """
    scale = laplace_scale(variance)
    distance = np.abs(candidates).astype(np.float64) - float(variance / scale)
    exponent = distance * distance / float(2 * variance)
    probability = np.exp(-exponent)
    return probability, probability * _ULP * (2 * _EXP_ULPS + 32 * (1 + exponent))


def _is_accepted(exponent: Fraction, uniforms: UniformBits, index: int) -> bool:
    words = _FIRST_EXACT_WORDS
    while True:
        context = interval_context(WORD_BITS * words + _GUARD_BITS)
        uniform = enclose_uniform(uniforms, index, words, context)
        probability = context.exp(-enclose(context, exponent))
        if certainly_below(uniform, probability):
            return True
        if certainly_below(probability, uniform):
            return False
        words *= 2
