"""Closed forms of the discrete Laplace law, of the difference of two draws, and of the discrete Gaussian law.

q = exp(-inverse_scale) throughout, and v = sigma^2 is the parameter of the Gaussian. Every function returns an
interval that contains the true value, so its lower end (`.a`) errs downwards and its upper end (`.b`) upwards;
the caller takes the end that errs on the private side, as `smallest_with_tail_at_most` does.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from dp_service.noise.exact import Interval, IntervalContext, certainly_below, enclose, interval_context

_PRECISION_BITS = 256
_CONTEXT = interval_context(_PRECISION_BITS)

# Up to this v a Gaussian tail is summed term by term; beyond, it is enclosed by integrals.
_LARGEST_SUMMED_VARIANCE = 1024
# A tail from this many sigma on is below 2^-1150 and only bounded from above.
_FAR_IN_SIGMAS = 40


def laplace_mass(inverse_scale: Fraction, z: int) -> Interval:
    """Enclose Pr[Z = z] = (1 - q) / (1 + q) * q^|z|."""
    q = _ratio(inverse_scale)
    return (1 - q) / (1 + q) * _power(inverse_scale, abs(z))


def laplace_tail(inverse_scale: Fraction, n: int) -> Interval:
    """Enclose Pr[Z >= n] = q^n / (1 + q) for n >= 1, by symmetry for n <= 0."""
    if n < 1:
        return 1 - laplace_tail(inverse_scale, 1 - n)
    return _power(inverse_scale, n) / (1 + _ratio(inverse_scale))


def laplace_difference_mass(inverse_scale: Fraction, n: int) -> Interval:
    """Enclose Pr[Z1 - Z2 = n] = ((1 - q) / (1 + q))^2 q^|n| (|n| + (1 + q^2) / (1 - q^2))."""
    q = _ratio(inverse_scale)
    front = ((1 - q) / (1 + q)) ** 2
    return front * _power(inverse_scale, abs(n)) * (abs(n) + _difference_shift(q))


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


def gaussian_mass(variance: Fraction, z: int) -> Interval:
    """Enclose Pr[Z = z] = exp(-z^2 / 2v) / (sum over all integers n of exp(-n^2 / 2v))."""
    return exponential(-z * z / (2 * variance)) / _gaussian_total(variance)


def gaussian_tail(variance: Fraction, n: int) -> Interval:
    """Enclose Pr[Z >= n], by symmetry for n <= 0.

    Up to v = 1024 to about 70 digits. Beyond, relative to the tail, to a few times n^2 / v^2 / 8 if n is above
    sigma, and to 1 / v if not. The upper end is never below the true tail.
    """
    if n < 1:
        return 1 - gaussian_tail(variance, 1 - n)
    sums = _summed_tail if variance <= _LARGEST_SUMMED_VARIANCE else _integrated_tail
    return sums(variance, n) / _gaussian_total(variance)


def smallest_with_tail_at_most(tail: Callable[[int], Interval], bound: Interval) -> int:
    """Return the smallest n >= 0 for which tail(n) < bound is certain: it never errs downwards.

    `tail` must fall with n and tend to zero; `bound` must be positive.
    """
    high = 1
    while not certainly_below(tail(high), bound):
        high *= 2
    low = 0
    while low < high:
        middle = (low + high) // 2
        if certainly_below(tail(middle), bound):
            high = middle
        else:
            low = middle + 1
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


def _integrated_tail(variance: Fraction, n: int) -> Interval:
    """Enclose the sum of f(m) = exp(-m^2 / 2v) over m >= n, n >= 1, by integrals of f.

    Beyond sigma f is convex, so every f(m) is at most its mean over [m - 1/2, m + 1/2], and the mean over [m, m + 1]
    is at most (f(m) + f(m + 1)) / 2. Before it, f(m) and its mean over [m - 1/2, m + 1/2] differ by at most 1/8 of the
    integral of |f''| over that interval; over all m >= 1 that integral is at most 2 exp(-1/2) / sigma, twice what f'
    falls by up to sigma. An eighth of it is below 1 / (6 sigma).
    """
    half = Fraction(1, 2)
    middle = _integral(variance, n - half)
    if (n - half) ** 2 >= variance:
        first = exponential(-n * n / (2 * variance))
        return _hull(_CONTEXT, _integral(variance, Fraction(n)) + first / 2, middle)
    error = 1 / (6 * _CONTEXT.sqrt(enclose(_CONTEXT, variance)))
    return _hull(_CONTEXT, middle - error, middle + error)


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
