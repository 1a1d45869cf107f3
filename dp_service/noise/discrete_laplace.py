"""The exact discrete Laplace sampler.

Pr[Z = z] is proportional to q^|z| with q = exp(-inverse_scale). Three facts make a draw:

1. Z is G or ~G = -1 - G, the latter with probability q / (1 + q), where Pr[G = n] = (1 - q) q^n is
   geometric and independent of that choice.
2. The digits of G in base 2^r are independent, because q^n is a product over the digits of n: a digit of
   weight 2^s is d with probability proportional to q^(2^s d), and all digits above it together form a
   geometric number with q^(2^(s + r)) in place of q.
3. So the upper part of G and the choice of sign form one number, the *head*, which falls off quickly enough
   for a table; each lower digit is drawn from a table of its own.

For scales up to 32 the head is all there is: one random word a draw. Every table is inverted exactly
(`inverse_transform`).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.interval_arithmetic import (
    Interval,
    IntervalContext,
    certain_floor,
    enclose,
    geometric_bounds,
    interval_context,
    scaled_bounds,
    with_enough_precision,
)
from dp_service.noise.inverse_transform import InverseTransformSampler
from dp_service.noise.stream import KeyedStream
from dp_service.noise.uniforms import DRAWS_AT_A_TIME, KeyedUniforms

MIN_INVERSE_SCALE = Fraction(1, 10**9)
MAX_INVERSE_SCALE = Fraction(1000)

# Counts are at most 2^53 and 64-bit integers end at 2^63, so a sum of the two never wraps.
MAX_MAGNITUDE = 2**62

# Part of the definition of a draw, as they say which words are read: changing one needs a new sampler version.
_HEAD_SCALE = 32
_DIGIT_BITS = 10

_GUARD_BITS = 64


def discrete_laplace(
    stream: KeyedStream,
    label: tuple[str, ...],
    inverse_scale: Fraction,
    size: int,
    first: int = 0,
    *,
    at_a_time: int = DRAWS_AT_A_TIME,
) -> NDArray[np.int64]:
    """Draw `size` independent numbers with Pr[Z = z] proportional to exp(-inverse_scale |z|), exactly.

    They are draws `first`, `first` + 1, ... of `label`. The head of draw i is made from uniform number i of
    `label`; its lower digits, from the least significant up, from number i of `label` followed by "digit" and
    0, 1, ... How many draws are made `at_a_time` changes none of them.

    Raises:
        ValueError: If `size` is negative or `inverse_scale` is not in [10^-9, 10^3].
        OverflowError: A draw is beyond 2^62, which has a probability below exp(-10^9).
    """
    if size < 0:
        raise ValueError(f"size must not be negative, got {size}")
    check_inverse_scale(inverse_scale)
    values = np.empty(size, dtype=np.int64)
    for start in range(0, size, at_a_time):
        block = values[start : start + at_a_time]
        block[:] = _draw(stream, label, inverse_scale, block.size, first + start)
    return values


def _draw(
    stream: KeyedStream, label: tuple[str, ...], inverse_scale: Fraction, size: int, first: int
) -> NDArray[np.int64]:
    widths = digit_widths(inverse_scale)
    head = _head_sampler(inverse_scale, sum(widths)).draw(KeyedUniforms(stream, label, size, first))
    if not widths:
        return head
    sign = head >> 63
    values = (head ^ sign) << sum(widths)
    shift = 0
    for position, width in enumerate(widths):
        digits = KeyedUniforms(stream, (*label, "digit", str(position)), size, first)
        values += _digit_sampler(inverse_scale * 2**shift, width).draw(digits) << shift
        shift += width
    return values ^ sign


def check_inverse_scale(inverse_scale: Fraction) -> None:
    """Raise ValueError unless the sampler can draw at this inverse scale."""
    if not MIN_INVERSE_SCALE <= inverse_scale <= MAX_INVERSE_SCALE:
        raise ValueError(
            f"inverse_scale must be from {MIN_INVERSE_SCALE} to {MAX_INVERSE_SCALE}, got {inverse_scale}"
        )


def digit_widths(inverse_scale: Fraction) -> list[int]:
    """Return the widths in bits of the digits below the head, from the least significant up.

    Together they are the fewest bits that leave a head of scale at most 32; they are spread over as few digits
    of at most 10 bits as possible, the wider ones first.
    """
    bits = 0
    while inverse_scale * 2**bits * _HEAD_SCALE < 1:
        bits += 1
    digits = -(-bits // _DIGIT_BITS)
    return [bits // digits + (position < bits % digits) for position in range(digits)]


@dataclass(frozen=True)
class Head:
    """The law of the sign and the upper part of a draw: G or ~G for a geometric G with ratio Q = q^(2^shift).

    Pr[Z < 0] = q / (1 + q), so F(z) = 1 - Q^(z + 1) / (1 + q) for z >= 0 and Q^(-1 - z) q / (1 + q) for z < 0.
    """

    inverse_scale: Fraction
    shift: int

    @property
    def lowest(self) -> int:
        """The lower end of what a draw may be."""
        return -self.highest

    @property
    def highest(self) -> int:
        """The upper end of what a draw may be."""
        return MAX_MAGNITUDE >> self.shift

    @property
    def is_cut_off(self) -> bool:
        """It is: beyond both ends the law has less than exp(-10^9)."""
        return True

    def distribution(self, z: int, context: IntervalContext) -> Interval:
        """Enclose F(z)."""
        negative, positive = self._shares(context)
        exponent = self.inverse_scale * 2**self.shift * (-1 - z if z < 0 else z + 1)
        power = context.exp(-enclose(context, exponent))
        return negative * power if z < 0 else 1 - positive * power

    def boundary_words(self, word_bits: int) -> tuple[int, list[int]]:
        """Return the boundary words from the last that is 0 to the first that is 2^word_bits - 1."""
        return with_enough_precision(lambda bits: self._boundary_words(word_bits, bits))

    def _boundary_words(self, word_bits: int, bits: int) -> tuple[int, list[int]]:
        context = interval_context(bits + _GUARD_BITS)
        negative, positive = self._shares(context)
        power = context.exp(-enclose(context, self.inverse_scale * 2**self.shift))
        ratio = scaled_bounds(power, bits)
        below = []
        for bounds in geometric_bounds(scaled_bounds(negative, bits), ratio, bits):
            below.append(certain_floor(bounds, bits - word_bits))
            if below[-1] == 0:
                break
        above = []
        for low, high in geometric_bounds(scaled_bounds(positive * power, bits), ratio, bits):
            above.append(certain_floor((2**bits - high, 2**bits - low), bits - word_bits))
            if above[-1] == 2**word_bits - 1:
                break
        return -len(below), [*reversed(below), *above]

    def _shares(self, context: IntervalContext) -> tuple[Interval, Interval]:
        """Enclose Pr[Z < 0] and Pr[Z >= 0]."""
        q = context.exp(-enclose(context, self.inverse_scale))
        return q / (1 + q), 1 / (1 + q)


@dataclass(frozen=True)
class Digit:
    """The law of a digit with `width` bits: Pr[d] is proportional to p^d, p = exp(-inverse_scale), d < 2^width.

    F(d) = (1 - p^(d + 1)) / (1 - p^(2^width)).
    """

    inverse_scale: Fraction
    width: int

    @property
    def lowest(self) -> int:
        """The smallest digit."""
        return 0

    @property
    def highest(self) -> int:
        """The largest digit."""
        return (1 << self.width) - 1

    @property
    def is_cut_off(self) -> bool:
        """It is not: there are no other digits."""
        return False

    def distribution(self, z: int, context: IntervalContext) -> Interval:
        """Enclose F(z)."""
        return (1 - self._power(z + 1, context)) / (1 - self._power(2**self.width, context))

    def boundary_words(self, word_bits: int) -> tuple[int, list[int]]:
        """Return the boundary words of all digits but the largest."""
        return with_enough_precision(lambda bits: self._boundary_words(word_bits, bits))

    def _boundary_words(self, word_bits: int, bits: int) -> tuple[int, list[int]]:
        context = interval_context(bits + _GUARD_BITS)
        power = self._power(1, context)
        front = 1 / (1 - self._power(2**self.width, context))
        whole = scaled_bounds(front, bits)
        rests = geometric_bounds(scaled_bounds(front * power, bits), scaled_bounds(power, bits), bits)
        return 0, [
            certain_floor((whole[0] - high, whole[1] - low), bits - word_bits)
            for low, high in islice(rests, self.highest)
        ]

    def _power(self, n: int, context: IntervalContext) -> Interval:
        return context.exp(-enclose(context, self.inverse_scale * n))


@lru_cache(maxsize=32)
def _head_sampler(inverse_scale: Fraction, shift: int) -> InverseTransformSampler:
    return InverseTransformSampler(Head(inverse_scale, shift))


@lru_cache(maxsize=64)
def _digit_sampler(inverse_scale: Fraction, width: int) -> InverseTransformSampler:
    return InverseTransformSampler(Digit(inverse_scale, width))
