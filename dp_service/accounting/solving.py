"""From a guarantee to parameters: the budget, or the currency, whose guarantee is within a target.

Every result is rounded to the private side: its guarantee, computed by `composition.guarantee`, is within the target.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.accuracy import GumbelThreshold
from dp_service.accounting.checks import (
    MAX_EPSILON_PER,
    MAX_UNITS,
    require_epsilon,
    require_probability,
    require_units,
)
from dp_service.accounting.composition import PublishedDomain, guarantee

_SIGNIFICANT_DIGITS = 6
_SMALLEST_EPSILON_PER = Fraction(1, 10**12)
_GOLDEN = (math.sqrt(5) - 1) / 2
_SEARCH_STEPS = 14


class UnreachableError(ValueError):
    """No choice of the parameter reaches the target."""


@dataclass(frozen=True)
class Target:
    """The guarantee to be reached, and what is fixed beforehand.

    `gaussian` and `domains` are those of `composition.guarantee`.

    Raises:
        ValueError: Epsilon is not positive, or delta not strictly between 0 and 1; the message names the argument.
        UnreachableError: The published domains take all of delta.
    """

    epsilon: Fraction
    delta: Fraction
    gaussian: bool = False
    domains: tuple[PublishedDomain, ...] = ()

    def __post_init__(self) -> None:
        require_epsilon("epsilon", self.epsilon)
        require_probability("delta", self.delta)
        if sum(each.delta for each in self.domains) >= self.delta:
            raise UnreachableError("delta must be above what the published domains take of it")

    @property
    def delta_left(self) -> Fraction:
        """The part of delta that the published domains leave."""
        return self.delta - sum(each.delta for each in self.domains)


@dataclass(frozen=True)
class Split:
    """How delta is divided: `delta` for each call, `slack` for the better composition."""

    delta: Fraction
    slack: Fraction


@dataclass(frozen=True)
class Solution:
    """The largest epsilon_per for a split of delta."""

    epsilon_per: Fraction
    split: Split

    def height(self, d_bar: int) -> float:
        """Return how far UnkGumb's bottom lies above the count at rank d_bar + 1, for tau = 1."""
        return GumbelThreshold(self.epsilon_per, self.split.delta, 1, d_bar).height


def papers_split(target: Target, calls: int) -> Split:
    """Return delta* / (4 calls) for each call and delta* / 2 as slack: together 2 calls delta + slack = delta*.

    Source: Rogers et al. 2020, section 6, where it is called somewhat arbitrary.
    """
    return split_of(target, calls, share=Fraction(1, 2))


def split_of(target: Target, calls: int, *, share: Fraction) -> Split:
    """Return the split in which all calls together get `share` of delta, strictly between 0 and 1.

    Both parts are rounded down to decimals of six digits, which can be written into a policy.
    """
    require_units("calls", calls, at_least=1)
    require_probability("share", share)
    per_call = share * target.delta_left / (2 * calls)
    return Split(delta=_rounded_down(per_call), slack=_rounded_down((1 - share) * target.delta_left))


def epsilon_per_for(target: Target, split: Split, *, information: int) -> Fraction:
    """Return the largest epsilon_per of six decimal digits with which the budget's guarantee is within the target.

    Args:
        target: The guarantee to be reached.
        split: How delta is divided.
        information: The information units of the budget.

    Raises:
        UnreachableError: No epsilon_per from 10^-12 on is small enough.
    """
    require_units("information", information, at_least=1)

    def fits(epsilon_per: Fraction) -> bool:
        return _epsilon(target, epsilon_per, split, information) <= target.epsilon

    _require_more_than_domains(target, _SMALLEST_EPSILON_PER, split)
    if not fits(_SMALLEST_EPSILON_PER):
        raise UnreachableError("epsilon must be larger for any epsilon_per to reach it")
    if fits(Fraction(MAX_EPSILON_PER)):
        return Fraction(MAX_EPSILON_PER)
    # Largest decade first, then the digits of the number in it.
    exponent = _last_that(lambda decade: fits(Fraction(10) ** (decade - 12)), 13) - 12
    unit = Fraction(10) ** (exponent - _SIGNIFICANT_DIGITS + 1)
    return unit * _last_that(lambda digits: fits(digits * unit), 10**_SIGNIFICANT_DIGITS)


def best_epsilon_per(target: Target, *, information: int, calls: int, d_bar: int) -> Solution:
    """Return the split of delta whose threshold is lowest, with its epsilon_per.

    A larger share for the calls lowers ln(d_bar / delta), a smaller one allows a larger epsilon_per. What an element
    needs above the count at the threshold is tau (1 + ln(d_bar / delta) / epsilon_per), the height that is
    minimized here (by golden section, to two digits of the split).

    Args:
        target: The guarantee to be reached.
        information: The information units of the budget.
        calls: The calls of the budget.
        d_bar: How many elements of an unknown domain are fetched.

    Raises:
        UnreachableError: As `epsilon_per_for`.
    """
    require_units("d_bar", d_bar, at_least=1)

    def solution(log_odds: float) -> Solution:
        share = Fraction(1 / (1 + math.exp(-log_odds))).limit_denominator(1000)
        split = split_of(target, calls, share=share)
        return Solution(epsilon_per_for(target, split, information=information), split)

    def height(log_odds: float) -> float:
        try:
            return solution(log_odds).height(d_bar)
        except UnreachableError:
            # Too little slack for what the domains take of epsilon; a smaller share for the calls leaves more.
            return math.inf

    return solution(_lowest(height, -4.0, 4.0))


def information_for(target: Target, split: Split, *, epsilon_per: Fraction) -> int:
    """Return the largest number of information units whose guarantee is within the target.

    Args:
        target: The guarantee to be reached.
        split: How delta is divided.
        epsilon_per: What one unit buys.

    Raises:
        UnreachableError: The published domains alone exceed the target.
    """
    require_epsilon("epsilon_per", epsilon_per, at_most=MAX_EPSILON_PER)
    _require_more_than_domains(target, epsilon_per, split)
    return _last_that(lambda k: _epsilon(target, epsilon_per, split, k) <= target.epsilon, MAX_UNITS + 1)


def _require_more_than_domains(target: Target, epsilon_per: Fraction, split: Split) -> None:
    alone = _epsilon(target, epsilon_per, split, 0)
    if alone > target.epsilon:
        raise UnreachableError(
            f"epsilon must be above what the published domains take of it, {alone:.6g} with this delta"
        )


def calls_for(target: Target, split: Split) -> int:
    """Return the largest number of calls with 2 calls delta + slack within the target's delta.

    Raises:
        UnreachableError: The slack alone exceeds it.
    """
    left = target.delta_left - split.slack
    if left < 0:
        raise UnreachableError("slack must be at most the requested delta, less that of published domains")
    return min(MAX_UNITS, math.floor(left / (2 * split.delta)))


def _epsilon(target: Target, epsilon_per: Fraction, split: Split, information: int) -> float:
    return guarantee(
        epsilon_per,
        split.delta,
        information=information,
        # Their number changes no epsilon, only whether there are any.
        calls=1,
        slack=split.slack,
        gaussian=target.gaussian,
        domains=target.domains,
    ).epsilon


def _rounded_down(number: Fraction) -> Fraction:
    """Return the largest decimal of six significant digits that is not above a positive number."""
    unit = Fraction(10) ** (math.floor(math.log10(number)) - _SIGNIFICANT_DIGITS + 1)
    return number // unit * unit


def _last_that(holds: Callable[[int], bool], stop: int) -> int:
    """Return the last number below `stop` for which a claim holds that holds for 0 and, once false, stays false."""
    return bisect.bisect_left(range(1, stop), True, key=lambda number: not holds(number))


def _lowest(height: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one valley, infinite above some point, is lowest, by golden section.

    SciPy's minimizers compute with the values, and an infinite one ends them.
    """
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    left_height, right_height = height(left), height(right)
    for _ in range(_SEARCH_STEPS):
        # Of two points out of reach, the lower one is nearer.
        if left_height <= right_height:
            high, right, right_height = right, left, left_height
            left = high - _GOLDEN * (high - low)
            left_height = height(left)
        else:
            low, left, left_height = left, right, right_height
            right = low + _GOLDEN * (high - low)
            right_height = height(right)
    return (low + high) / 2
