"""Closed forms of the discrete Laplace law and of the difference of two draws, as enclosing intervals.

q = exp(-inverse_scale) throughout. Every function returns an interval that contains the true value; the
caller takes the bound that errs on the private side.
"""

from collections.abc import Callable
from fractions import Fraction

from dp_service.noise.exact import Interval, certainly_below, enclose, interval_context

_CONTEXT = interval_context(256)


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
