"""Draws of fixed seeds, made by the package and a second time from docs/noise.md alone.

Everything between the two rules below is a reimplementation that imports nothing of Gris: decimal numbers with 150
digits, and three words (192 bits) of every uniform number. The vectors themselves are data for other languages.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dp_service.noise import SAMPLER_VERSION, KeyedNoise, KeyedStream, LogWeights

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())

# ---- from docs/noise.md ----------------------------------------------------------------------------------------------


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


def gumbel(seed: bytes, name: list[str], unit: Fraction, weights: list[list[int]]) -> list[int]:
    """The entries in descending order of their keys; a weight is m, a, b."""
    keys = [
        real(unit * m) + (Decimal(a) / b).ln() - (-(1 - uniform(seed, name, i)).ln()).ln()
        for i, (m, a, b) in enumerate(weights)
    ]
    return sorted(range(len(keys)), key=lambda i: -keys[i])


# ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _many_digits() -> Iterator[None]:
    with localcontext() as context:
        context.prec = 150
        yield


def named(kind: str) -> pytest.MarkDecorator:
    """Run a test on every vector of a kind."""
    return pytest.mark.parametrize("vector", VECTORS[kind])


def package(vector: dict[str, Any]) -> KeyedNoise:
    """The package's own source for the seed of a vector."""
    return KeyedNoise(KeyedStream(bytes.fromhex(vector["seed"])))


def test_the_vectors_are_those_of_this_sampler_version() -> None:
    """Draws that change without a new version would be noise shared between two releases."""
    assert VECTORS["sampler_version"] == SAMPLER_VERSION


@named("words")
def test_words_match_their_vectors(vector: dict[str, Any]) -> None:
    """The stream below everything else."""
    seed, name, expected = bytes.fromhex(vector["seed"]), vector["name"], vector["words"]
    assert expected == [f"{word(seed, name, i):016x}" for i in range(len(expected))]
    drawn = KeyedStream(seed).substream(*name).words(len(expected)).tolist()
    assert expected == [f"{value:016x}" for value in drawn]


@named("discrete_laplace")
def test_discrete_laplace_matches_its_vectors(vector: dict[str, Any]) -> None:
    """One word, or one and digits, from scale 10^-3 to 10^9."""
    seed, x, expected = bytes.fromhex(vector["seed"]), Fraction(vector["inverse_scale"]), vector["draws"]
    assert expected == [laplace(seed, [vector["label"]], x, i) for i in range(len(expected))]
    assert expected == package(vector).discrete_laplace(x, len(expected), vector["label"]).tolist()


@named("discrete_gaussian")
def test_discrete_gaussian_matches_its_vectors(vector: dict[str, Any]) -> None:
    """Candidates and acceptance over several rounds."""
    seed, v, expected = bytes.fromhex(vector["seed"]), Fraction(vector["variance"]), vector["draws"]
    assert expected == gaussian(seed, [vector["label"]], v, len(expected))
    assert expected == package(vector).discrete_gaussian(v, len(expected), vector["label"]).tolist()


@named("gumbel_order")
def test_gumbel_orders_match_their_vectors(vector: dict[str, Any]) -> None:
    """Counts, odds, and counts of 2^53 that no float can tell apart."""
    seed, unit, expected = bytes.fromhex(vector["seed"]), Fraction(vector["unit"]), vector["order"]
    assert expected == gumbel(seed, [vector["label"]], unit, vector["weights"])[: len(expected)]
    multiples, numerators, denominators = zip(*vector["weights"], strict=True)
    weights = LogWeights(
        unit,
        np.array(multiples, dtype=np.int64),
        np.array(numerators, dtype=object),
        np.array(denominators, dtype=object),
    )
    assert expected == package(vector).gumbel_order(weights, len(expected), vector["label"]).tolist()
