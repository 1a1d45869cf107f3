"""Exact weights of a selection, kept in the log domain."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.exact import Interval, IntervalContext, enclose

MIN_UNIT = Fraction(1, 10**12)
MAX_UNIT = Fraction(10**12)
MAX_MULTIPLE = 2**54
MAX_ODDS = 2**1000


@dataclass(frozen=True, eq=False)
class LogWeights:
    """Positive weights w_i with ln w_i = unit * multiples_i + ln(numerators_i / denominators_i), all exact.

    `unit` is a rational from 10^-12 to 10^12; `multiples` are int64, shape (n,), within +-2^54; the odds, by default
    all 1, are Python integers in object arrays of shape (n,), from 1 to 2^1000. Raises ValueError naming
    what is out of range.
    """

    unit: Fraction
    multiples: NDArray[np.int64]
    numerators: NDArray[np.object_] | None = None
    denominators: NDArray[np.object_] | None = None

    def __post_init__(self) -> None:
        if not MIN_UNIT <= self.unit <= MAX_UNIT:
            raise ValueError(f"unit must be from {MIN_UNIT} to {MAX_UNIT}, got {self.unit}")
        if self.multiples.dtype != np.int64 or self.multiples.ndim != 1:
            raise ValueError("multiples must be a one-dimensional int64 array")
        if np.any(np.abs(self.multiples) > MAX_MULTIPLE):
            raise ValueError("multiples must lie within +-2^54")
        _check_odds("numerators", self.numerators, self.multiples.size)
        _check_odds("denominators", self.denominators, self.multiples.size)

    def __len__(self) -> int:
        return self.multiples.size

    def odds(self, index: int) -> Fraction:
        """Return the rational factor of weight `index`."""
        numerator = 1 if self.numerators is None else self.numerators[index]
        denominator = 1 if self.denominators is None else self.denominators[index]
        return Fraction(numerator, denominator)

    def log_weight(self, index: int, context: IntervalContext) -> Interval:
        """Return an interval around ln w_index, in the arithmetic of `context`."""
        linear = enclose(context, self.unit * int(self.multiples[index]))
        odds = self.odds(index)
        return linear if odds == 1 else linear + context.log(enclose(context, odds))


def _check_odds(name: str, odds: NDArray[np.object_] | None, size: int) -> None:
    if odds is None:
        return
    if odds.dtype != np.object_ or odds.shape != (size,):
        raise ValueError(f"{name} must be an object array with one entry per multiple")
    if size and not 1 <= odds.min() <= odds.max() <= MAX_ODDS:
        raise ValueError(f"{name} must be integers from 1 to 2^1000")
