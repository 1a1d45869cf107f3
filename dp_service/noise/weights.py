"""Exact weights of a selection, kept in the log domain."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.interval_arithmetic import log_bounds

MIN_UNIT = Fraction(1, 10**12)
MAX_UNIT = Fraction(10**12)
MAX_MULTIPLE = 2**54
MAX_ODDS_TERM = 2**1000

KeyBounds: TypeAlias = tuple[int | float, int | float]
"""From where to where a key lies, in steps of 2^-bits; infinite where nothing is known of that side."""


@dataclass(frozen=True, eq=False)
class LogWeights:
    """Weights w_i with ln w_i = unit * multiples_i - ln divisors_i, all exact; the last one times `last_odds`.

    `unit` is a rational from 10^-12 to 10^12; `multiples` are int64, shape (n,), within +-2^54; `divisors`,
    by default all 1, are positive int64, shape (n,); `last_odds` is a positive rational with terms up to
    2^1000. Entries that are not `eligible` (bool, shape (n,), by default all are) weigh nothing: whatever is
    drawn, they come after all others.

    Raises:
        ValueError: If a field is out of range; the message names it.
    """

    unit: Fraction
    multiples: NDArray[np.int64]
    divisors: NDArray[np.int64] | None = None
    last_odds: Fraction = Fraction(1)
    eligible: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if not MIN_UNIT <= self.unit <= MAX_UNIT:
            raise ValueError(f"unit must be from {MIN_UNIT} to {MAX_UNIT}, got {self.unit}")
        if self.multiples.dtype != np.int64 or self.multiples.ndim != 1:
            raise ValueError("multiples must be a one-dimensional int64 array")
        if len(self) and not -MAX_MULTIPLE <= self.multiples.min() <= self.multiples.max() <= MAX_MULTIPLE:
            raise ValueError("multiples must lie within +-2^54")
        self._check_like_multiples("divisors", self.divisors, np.int64)
        self._check_like_multiples("eligible", self.eligible, np.bool_)
        if self.divisors is not None and np.any(self.divisors < 1):
            raise ValueError("divisors must be positive")
        if (
            not 1
            <= min(self.last_odds.as_integer_ratio())
            <= max(self.last_odds.as_integer_ratio())
            <= MAX_ODDS_TERM
        ):
            raise ValueError("last_odds must be positive with terms of at most 2^1000")

    def __len__(self) -> int:
        return self.multiples.size

    def odds(self, index: int) -> Fraction:
        """Return the rational factor of weight `index`."""
        divisor = 1 if self.divisors is None else int(self.divisors[index])
        return (self.last_odds if index == len(self) - 1 else 1) / Fraction(divisor)

    def key_bounds(self, index: int, exponential: tuple[int, int | None], bits: int) -> KeyBounds:
        """Return bounds of ln w_index - ln E in steps of 2^-bits, given bounds of E in the same steps.

        With odds r it is the linear part less ln(E / r): one logarithm for every entry, so that timing does not
        reveal which of them have odds.

        Args:
            index: The entry.
            exponential: Bounds of E; the lower one may be 0, and the upper one None: there is none.
            bits: How many bits behind the point are kept.
        """
        low, high = exponential
        linear = self.unit * int(self.multiples[index])
        numerator, denominator = linear.numerator << bits, linear.denominator
        odds = self.odds(index) if self._has_odds else Fraction(1)
        factor, divisor = odds.denominator, odds.numerator << bits
        least, most = log_bounds((low or high or 1) * factor, divisor, bits)
        if low and high is not None:
            # ln(high / low) is at most (high - low) / low.
            most -= -((high - low) << bits) // low
        return (
            -math.inf if high is None else numerator // denominator - most,
            math.inf if low == 0 else -(-numerator // denominator) - least,
        )

    @property
    def _has_odds(self) -> bool:
        return self.divisors is not None or self.last_odds != 1

    def is_eligible(self, index: int) -> bool:
        """Return whether an entry is eligible."""
        return self.eligible is None or bool(self.eligible[index])

    def _check_like_multiples(
        self, name: str, array: NDArray[np.generic] | None, dtype: type[np.generic]
    ) -> None:
        if array is not None and (array.dtype != dtype or array.shape != self.multiples.shape):
            raise ValueError(f"{name} must be an array of {dtype.__name__} with one entry per multiple")
