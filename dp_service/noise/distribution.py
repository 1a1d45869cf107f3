"""Closed forms of the discrete Laplace law, of the difference of two draws, and of the discrete Gaussian law.

q = exp(-inverse_scale) throughout, and v = sigma^2 is the parameter of the Gaussian. Every function returns an
interval that contains the true value, so its lower end (`.a`) errs downwards and its upper end (`.b`) upwards;
the caller takes the end that errs on the private side, as `smallest_with_tail_at_most` does.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, lru_cache
from itertools import count

from mpmath import bernfrac

from dp_service.noise.interval_arithmetic import (
    Interval,
    IntervalContext,
    certainly_below,
    enclose,
    interval_context,
)

_PRECISION_BITS = 256
_CONTEXT = interval_context(_PRECISION_BITS)

# Up to this v a Gaussian tail is summed term by term; beyond, by the Euler-Maclaurin formula.
_LARGEST_SUMMED_VARIANCE = 1024
# The error of that formula is below 2^-160 of a tail.
_ERROR_BITS = 160
# A tail from this many sigma on is below 2^-1150 and only bounded from above.
_FAR_IN_SIGMAS = 40


def laplace_tail(inverse_scale: Fraction, n: int) -> Interval:
    """Enclose Pr[Z >= n] = q^n / (1 + q) for n >= 1, by symmetry for n <= 0."""
    if n < 1:
        return 1 - laplace_tail(inverse_scale, 1 - n)
    return _power(inverse_scale, n) / (1 + _ratio(inverse_scale))


def laplace_difference_tail(inverse_scale: Fraction, n: int) -> Interval:
    """Enclose Pr[Z1 - Z2 >= n], the sum of the masses from n on.

    For n >= 1, with c = (1 + q^2) / (1 - q^2): ((1 - q) / (1 + q))^2 q^n ((n + c) / (1 - q) + q / (1 - q)^2).
    """
    if n < 1:
        return 1 - laplace_difference_tail(inverse_scale, 1 - n)
    q = _ratio(inverse_scale)
    front = ((1 - q) / (1 + q)) ** 2
    sums = (n + _difference_shift(q)) / (1 - q) + q / (1 - q) ** 2
    return front * _power(inverse_scale, n) * sums


def gaussian_tail(variance: Fraction, n: int) -> Interval:
    """Enclose Pr[Z >= n], by symmetry for n <= 0.

    To about 45 digits of the tail up to 40 sigma, and only from above beyond. The upper end is never below the true
    tail.
    """
    if n < 1:
        return 1 - gaussian_tail(variance, 1 - n)
    sums = _summed_tail if variance <= _LARGEST_SUMMED_VARIANCE else _euler_maclaurin_tail
    return sums(variance, n) / _gaussian_total(variance)


def smallest_with_tail_at_most(tail: Callable[[int], Interval], bound: Interval, *, guess: int = 0) -> int:
    """Return the smallest n >= 0 for which tail(n) < bound is certain: it never errs downwards.

    `tail` must fall with n and tend to zero; `bound` must be positive. The search begins at `guess` >= 0: the nearer it
    is, the fewer tails are computed, two where it is right.
    """

    def fits(n: int) -> bool:
        return certainly_below(tail(n), bound)

    step = 1
    if fits(guess):
        while step <= guess and fits(guess - step):
            step *= 2
        low, high = max(guess - step + 1, 0), guess - step // 2
    else:
        while not fits(guess + step):
            step *= 2
        low, high = guess + step // 2 + 1, guess + step
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low


def exact_bound(value: Fraction) -> Interval:
    """Enclose a rational number in the arithmetic that this module's functions use."""
    return enclose(_CONTEXT, value)


def exponential(exponent: Fraction) -> Interval:
    """Enclose exp(exponent)."""
    return _CONTEXT.exp(enclose(_CONTEXT, exponent))


def _ratio(inverse_scale: Fraction) -> Interval:
    return exponential(-inverse_scale)


def _power(inverse_scale: Fraction, n: int) -> Interval:
    return exponential(-inverse_scale * n)


def _difference_shift(q: Interval) -> Interval:
    return (1 + q**2) / (1 - q**2)


@lru_cache(maxsize=256)
def _gaussian_total(variance: Fraction) -> Interval:
    """Enclose the sum over all integers n of exp(-a n^2), a = 1 / 2v.

    By Poisson's summation formula it is sqrt(pi / a) times the same sum with pi^2 / a in place of a. The one
    with the larger exponent needs few terms.
    """
    exponent = enclose(_CONTEXT, 1 / (2 * variance))
    if 6 * variance < 1:
        return _theta(exponent)
    return _CONTEXT.sqrt(_CONTEXT.pi / exponent) * _theta(_CONTEXT.pi**2 / exponent)


def _theta(exponent: Interval) -> Interval:
    """Enclose the sum over all integers n of exp(-a n^2) for a >= 3, up to n = +-12 and a geometric rest."""
    terms = [_CONTEXT.exp(-exponent * n * n) for n in range(1, 13)]
    rest = _CONTEXT.exp(-exponent * 13 * 13) / (1 - _CONTEXT.exp(-exponent))
    return 1 + 2 * sum(terms) + 2 * _hull(_CONTEXT, _CONTEXT.mpf(0), rest)


def _summed_tail(variance: Fraction, n: int) -> Interval:
    """Enclose the sum of exp(-m^2 / 2v) over m >= n, n >= 1."""
    term = exponential(-n * n / (2 * variance))
    ratio = exponential(-(2 * n + 1) / (2 * variance))
    step = exponential(-1 / variance)
    negligible = term * _CONTEXT.mpf(2) ** -_PRECISION_BITS
    total = _CONTEXT.mpf(0)
    # What is left falls at least as fast as a geometric series with the present ratio.
    while not certainly_below(term / (1 - ratio), negligible):
        total += term
        term *= ratio
        ratio *= step
    return total + _hull(_CONTEXT, _CONTEXT.mpf(0), term / (1 - ratio))


def _euler_maclaurin_tail(variance: Fraction, n: int) -> Interval:
    """Enclose the sum of f(m) = exp(-m^2 / 2v) over m >= n, n >= 1, v > 1024, by the Euler-Maclaurin formula.

    With the derivatives f^(j)(n) = (-1)^j g_j f(n), the sum is, up to an error R,

        (integral of f from n on) + f(n) / 2 + f(n) sum over k = 1 .. p/2 of B_2k / (2k)! g_(2k-1) ,

    and |R| <= 2 zeta(p) / (2 pi)^p times the integral of |f^(p)| from n on. By Cramer's inequality
    |He_p(y)| <= 1.09 sqrt(p!) exp(y^2 / 4), with y = x / sigma, that is at most
    5 sigma sqrt(p!) / (2 pi sigma)^p exp(-n^2 / 4v) for p >= 4.
    """
    integral = _integral(variance, Fraction(n))
    if n * n > _FAR_IN_SIGMAS**2 * variance:
        # Only bounded from above there, and f falls: what the integral leaves out is at most f(n).
        return integral + _hull(_CONTEXT, _CONTEXT.mpf(0), exponential(-n * n / (2 * variance)))
    order = _euler_maclaurin_order(variance, n)
    odd_derivatives = list(_hermite_ratios(variance, n, order))[1::2]
    series = enclose(_CONTEXT, Fraction(1, 2)) + sum(
        enclose(_CONTEXT, _bernoulli_ratio(2 * k)) * derivative
        for k, derivative in enumerate(odd_derivatives, start=1)
    )
    error = _euler_maclaurin_error(variance, n, order)
    return integral + exponential(-n * n / (2 * variance)) * series + _hull(_CONTEXT, -error, error)


def _euler_maclaurin_order(variance: Fraction, n: int) -> int:
    """Return the p with which the error is about 2^-160 of the tail; any p is right, so floats may choose it."""
    wanted = _ERROR_BITS * math.log(2) + n * n / (4 * float(variance))
    log_step = math.log(2 * math.pi) + math.log(variance) / 2
    return next(p for p in count(4, 2) if p * log_step - math.lgamma(p + 1) / 2 >= wanted)


def _euler_maclaurin_error(variance: Fraction, n: int, order: int) -> Interval:
    sigma = _CONTEXT.sqrt(enclose(_CONTEXT, variance))
    growth = _CONTEXT.sqrt(_CONTEXT.mpf(math.factorial(order))) / (2 * _CONTEXT.pi * sigma) ** order
    return 5 * sigma * growth * exponential(-n * n / (4 * variance))


def _hermite_ratios(variance: Fraction, n: int, size: int) -> Iterator[Interval]:
    """Yield g_j = He_j(n / sigma) / sigma^j for j = 0 .. size - 1: g_(j+1) = (n g_j - j g_(j-1)) / v."""
    v = enclose(_CONTEXT, variance)
    before, now = _CONTEXT.mpf(0), _CONTEXT.mpf(1)
    for j in range(size):
        yield now
        before, now = now, (n * now - j * before) / v


@cache
def _bernoulli_ratio(index: int) -> Fraction:
    """Return B_index / index!."""
    return Fraction(*map(int, bernfrac(index))) / math.factorial(index)


def _integral(variance: Fraction, start: Fraction) -> Interval:
    """Enclose the integral of exp(-x^2 / 2v) from start >= 0 on.

    It is sqrt(pi v / 2) minus the integral up to start, which with y = start is exp(-y^2 / 2v) times
    y + y^3 / (3 v) + y^5 / (3 * 5 v^2) + ...; the difference cancels about y^2 / v bits, which are kept in
    addition.
    """
    squared = start**2 / variance
    if squared > _FAR_IN_SIGMAS**2:
        return _hull(
            _CONTEXT, _CONTEXT.mpf(0), exponential(-squared / 2) * enclose(_CONTEXT, variance / start)
        )
    context = interval_context(_PRECISION_BITS + 64 + 32 * (int(squared) // 16))
    step = enclose(context, squared)
    term, odd, total = enclose(context, start), 1, context.mpf(0)
    while odd < 2 * squared + 2 or not certainly_below(term, total * context.mpf(2) ** -context.prec):
        total += term
        odd += 2
        term = term * step / odd
    # From here on every term is at most half of the one before.
    total += _hull(context, context.mpf(0), 2 * term)
    whole = context.sqrt(context.pi * enclose(context, variance / 2))
    return _hull(_CONTEXT, *([whole - context.exp(-step / 2) * total] * 2))


def _hull(context: IntervalContext, low: Interval, high: Interval) -> Interval:
    """Return the interval of `context` from the lower end of one to the upper end of another."""
    return context.mpf([low.a, high.b])
