"""What docs/noise.md says, written a second time: nothing here imports Gris.

Decimal numbers with as many digits as the context has (the tests give it 150) and three words (192 bits) of every
uniform number.
"""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from math import isqrt
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

Weight = tuple[Fraction, Fraction, bool]
"""The exponent, the odds, and whether the entry is eligible."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of a release; those that a mechanism does not have keep any value."""

    e: Fraction
    delta: Fraction
    tau: int
    k: int = 1
    d_bar: int = 1
    delta_l0: int = 1
    count_noise: str | None = None
    units: int = 1
    typical: int = 1
    periods: int = 1
    of_events: bool = False
    min_count: int | None = None
    grid: int = 1

    @property
    def distance(self) -> int:
        """How far neighbours are apart, in squared steps of the grid."""
        of_rows = self.periods * self.tau**2 if self.of_events else 1
        return self.periods * self.typical * of_rows * self.grid**2


class Release(NamedTuple):
    """What comes out: elements by number, in their order, with noisy counts or None."""

    elements: list[int]
    noisy_counts: list[int] | None
    ended_in_bottom: bool
    bottom: int | None


def encoded(parts: list[bytes]) -> bytes:
    """Encoding of a sequence of byte strings."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def word(seed: bytes, name: list[str], i: int) -> int:
    """Word i of a sub-stream."""
    message = encoded([b"gris/stream/v1", *(label.encode() for label in name)])
    key = hmac.new(seed, message, hashlib.sha256).digest()
    cipher = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()  # noqa: S305
    block = cipher.update((i // 2).to_bytes(16, "big"))
    return int.from_bytes(block[8 * (i % 2) : 8 * (i % 2) + 8], "little")


def uniform(seed: bytes, name: list[str], i: int) -> Decimal:
    """The middle of all numbers that begin with the first three words of U_i."""
    words = [word(seed, name, i), *(word(seed, [*name, "word", str(j)], i) for j in (1, 2))]
    return (Decimal(words[0] << 128 | words[1] << 64 | words[2]) + Decimal("0.5")) / 2**192


def real(value: Fraction) -> Decimal:
    """A rational as a decimal number."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def inverted(distribution: Callable[[int], Decimal], u: Decimal) -> int:
    """The y with F(y - 1) <= u < F(y), searched from 0."""
    y = 0
    while u >= distribution(y):
        y += 1
    while y <= 0 and u < distribution(y - 1):
        y -= 1
    return y


def laplace(seed: bytes, name: list[str], x: Fraction, i: int) -> int:
    """Discrete Laplace draw i."""
    r = next(bits for bits in range(64) if 32 * x * 2**bits >= 1)
    m = -(-r // 10)
    widths = [r // m + 1] * (r % m) + [r // m] * (m - r % m) if r else []
    q, ratio = real(-x).exp(), real(-x * 2**r).exp()

    def head(y: int) -> Decimal:
        return 1 - ratio ** (y + 1) / (1 + q) if y >= 0 else ratio ** (-1 - y) * q / (1 + q)

    y = inverted(head, uniform(seed, name, i))
    low = shift = 0
    for j, width in enumerate(widths):
        p = real(-x * 2**shift).exp()
        u = uniform(seed, [*name, "digit", str(j)], i) * (1 - p ** (1 << width))
        low += sum(u >= 1 - p ** (d + 1) for d in range((1 << width) - 1)) << shift
        shift += width
    return (y << r) + low if y >= 0 else -1 - ((-1 - y << r) + low)


def gaussian(seed: bytes, name: list[str], v: Fraction, size: int) -> list[int]:
    """Discrete Gaussian draws, all of a label together."""
    t = isqrt(v.numerator // v.denominator) + 1
    values: dict[int, int] = {}
    r = 0
    while len(values) < size:
        turn = [*name, "round", str(r)]
        for n, i in enumerate([i for i in range(size) if i not in values]):
            y = laplace(seed, [*turn, "candidate"], Fraction(1, t), n)
            exponent = real(-((abs(y) - v / t) ** 2) / (2 * v))
            if uniform(seed, [*turn, "acceptance"], n) < exponent.exp():
                values[i] = y
        r += 1
    return [values[i] for i in range(size)]


def gumbel(seed: bytes, name: list[str], weights: list[Weight]) -> list[int]:
    """The entries in descending order of their keys, those that are not eligible last."""
    keys = [
        real(exponent) + real(odds).ln() - (-(1 - uniform(seed, name, i)).ln()).ln()
        for i, (exponent, odds, _) in enumerate(weights)
    ]
    return sorted(range(len(keys)), key=lambda i: (not weights[i][2], -keys[i]))


def random_order(seed: bytes, name: list[str], n: int) -> list[int]:
    """The entries in ascending order of their words, whose last bits are replaced by their numbers."""
    b = (n - 1).bit_length()
    return sorted(range(n), key=lambda i: (word(seed, name, i) >> b << b) + i)


def rows(seed: bytes, counts: list[int], n: int) -> tuple[list[int], list[int]]:
    """The elements and the counts of n rows by position."""
    elements = random_order(seed, ["rows"], n)
    return elements, [counts[element] if element < len(counts) else 0 for element in elements]


def count_noise(seed: bytes, law: str, x: Fraction, size: int) -> list[int]:
    """Noise for counts."""
    if law == "discrete_gaussian":
        return gaussian(seed, ["counts"], 1 / x**2 + Fraction(1, 11), size)
    return [laplace(seed, ["counts"], x, i) for i in range(size)]


def by_value(values: dict[int, int]) -> list[int]:
    """Elements by descending value, equal ones by number."""
    return sorted(values, key=lambda element: (-values[element], element))


def known_lap(seed: bytes, counts: list[int], p: Parameters) -> Release:
    """All elements with noisy counts."""
    elements, true = rows(seed, counts, len(counts))
    drawn = count_noise(seed, "discrete_laplace", p.e / (2 * p.tau), len(counts))
    noisy = {element: true[i] + drawn[i] for i, element in enumerate(elements)}
    shown = by_value(noisy)
    return Release(shown, [noisy[element] for element in shown], ended_in_bottom=False, bottom=None)


def known_gumb(seed: bytes, counts: list[int], p: Parameters) -> Release:
    """The k largest keys."""
    elements, true = rows(seed, counts, len(counts))
    order = gumbel(seed, ["selection"], [(p.e / p.tau * count, Fraction(1), True) for count in true])[: p.k]
    noisy = fresh_counts(seed, [true[position] for position in order], p)
    return Release([elements[position] for position in order], noisy, ended_in_bottom=False, bottom=None)


def fresh_counts(seed: bytes, true: list[int], p: Parameters) -> list[int] | None:
    """The first of k draws of noise for these counts, if counts are asked for."""
    if p.count_noise is None:
        return None
    drawn = count_noise(seed, p.count_noise, p.e / (2 * p.tau), p.k)
    return [count + drawn[j] for j, count in enumerate(true)]


def unk_lap(seed: bytes, counts: list[int], p: Parameters) -> Release:
    """The elements above bottom with their noisy counts, and bottom."""
    n, x = p.d_bar + 1, p.e / (2 * p.tau * p.delta_l0)
    elements, true = rows(seed, counts, n)
    drawn = count_noise(seed, "discrete_laplace", x, n)
    cut = min(range(n), key=lambda i: (true[i], -elements[i]))
    bottom = true[cut] + drawn[cut] + shift(p, x)
    noisy = {elements[i]: true[i] + drawn[i] for i in range(n) if true[i] > 0 and true[i] + drawn[i] > bottom}
    shown = by_value(noisy)
    return Release(shown, [noisy[element] for element in shown], ended_in_bottom=True, bottom=bottom)


def shift(p: Parameters, x: Fraction) -> int:
    """C, tried upwards from tau."""
    q = real(-x).exp()
    factor = (real(p.e / 2).exp() + 1) * min(p.delta_l0, p.d_bar) * ((1 - q) / (1 + q)) ** 2

    def tail(n: int) -> Decimal:
        return q**n * ((n + (1 + q * q) / (1 - q * q)) / (1 - q) + q / (1 - q) ** 2)

    c = p.tau
    while factor * tail(c - p.tau + 1) > real(p.delta):
        c += 1
    return c


def unk_gumb(seed: bytes, counts: list[int], p: Parameters) -> Release:
    """The elements whose keys come before that of bottom, at most k."""
    elements, true = rows(seed, counts, p.d_bar + 1)
    descending, unit = sorted(true, reverse=True), p.e / p.tau
    indices = [i for i in elements if i >= p.k]
    scores = [(-unit * descending[i], Fraction(1, i), True) for i in indices]
    k_bar = indices[gumbel(seed, ["threshold index"], scores)[0]]
    cut = descending[k_bar]
    weights = [(unit * count, Fraction(1), count > cut) for count in true]
    order = gumbel(seed, ["selection"], [*weights, (unit * (cut + p.tau), k_bar / p.delta, True)])[: p.k]
    met = len(true) in order
    before = order[: order.index(len(true))] if met else order
    noisy = fresh_counts(seed, [true[position] for position in before], p)
    return Release([elements[position] for position in before], noisy, ended_in_bottom=met, bottom=None)


def bound_gauss(seed: bytes, counts: list[int], p: Parameters) -> Release:
    """The elements above the threshold with their noisy counts, or all of a known domain."""
    v = p.distance / (2 * p.units * p.e**2 / 8) + Fraction(1, 11)
    elements, true = rows(seed, counts, len(counts))
    drawn = gaussian(seed, ["counts"], v, len(counts))
    threshold = hiding_threshold(p, v)
    noisy = {
        element: true[i] + drawn[i]
        for i, element in enumerate(elements)
        if threshold is None or (true[i] >= (p.min_count or 0) * p.grid and true[i] + drawn[i] > threshold)
    }
    shown = by_value(noisy)
    return Release(shown, [noisy[element] for element in shown], ended_in_bottom=False, bottom=threshold)


def hiding_threshold(p: Parameters, v: Fraction) -> int | None:
    """T, tried upwards, with a tail that is added up until it is too small to matter."""
    if p.min_count is None:
        return None
    reach = 40 * (isqrt(int(v)) + 1)
    weights = [real(-Fraction(n * n) / (2 * v)).exp() for n in range(reach)]
    whole = 2 * sum(weights) - weights[0]
    tails = [*list(accumulate(reversed(weights)))[::-1], real(Fraction(0))]
    largest = p.grid * (p.periods * p.tau if p.of_events else 1)
    found = 0
    for y in range(p.tau if p.grid == 1 else p.grid // 8, largest + 1):
        allowed = real(p.delta * y * y / p.distance) * whole
        excess = next(n for n in range(reach) if tails[n + 1] <= allowed)
        found = max(found, p.min_count * p.grid - 1 + y + excess)
    return found
