"""From a value to a whole number of steps of the quantum.

The rule is floor(x / q + 1/2): the nearest step, the upper one of two that are equally near. It needs no more than a
floor of an engine, while rounding functions differ in what they do with halves and with negative numbers.

Integers and decimals are exact. A floating-point number is multiplied by 1 / q, or divided by q where q is whole, and
1/2 is added in IEEE double arithmetic, as an engine does it; so the result is the same on every engine. It can be one
step from that of exact arithmetic where x / q is within rounding of a half. That has no part in the guarantee: any
rule that looks at one row alone is private.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

Value = int | float | Decimal | None

_LARGEST_SCALE = 10**15


@dataclass(frozen=True)
class Quantum:
    """The step that values are rounded to: a whole number, or one divided by a whole number, such as 1/100 for cents.

    >>> cents = Quantum(Fraction("0.01"))
    >>> cents.exact_steps(Fraction(3)), cents.value_of(1235)
    (300, Fraction(247, 20))

    Raises:
        ValueError: It is neither, or a term is above 10^15.
    """

    size: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.size, Fraction) or self.size <= 0 or 1 not in self.size.as_integer_ratio():
            raise ValueError(
                f"quantum must be a whole number or one divided by a whole number, got {self.size}"
            )
        if max(self.size.as_integer_ratio()) > _LARGEST_SCALE:
            raise ValueError(f"quantum must have terms of at most 10^15, got {self.size}")

    def exact_steps(self, value: Fraction) -> int:
        """Return how many steps a public bound is.

        Raises:
            ValueError: It is no whole number of steps.
        """
        steps = value / self.size
        if steps.denominator != 1:
            raise ValueError(f"quantum, {self.size}, must divide every bound, got {value}")
        return int(steps)

    def value_of(self, steps: int | Fraction) -> Fraction:
        """Return the value that a number of steps stands for."""
        return steps * self.size
