"""Draws of fixed seeds, made by the package and a second time from docs/noise.md alone (`reference`).

The vectors themselves are data for other languages.
"""

import json
from collections.abc import Iterator
from decimal import localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dp_service.noise import SAMPLER_VERSION, KeyedNoise, KeyedStream, LogWeights

from . import reference

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


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
    assert expected == [f"{reference.word(seed, name, i):016x}" for i in range(len(expected))]
    drawn = KeyedStream(seed).substream(*name).words(len(expected)).tolist()
    assert expected == [f"{value:016x}" for value in drawn]


@named("discrete_laplace")
def test_discrete_laplace_matches_its_vectors(vector: dict[str, Any]) -> None:
    """One word, or one and digits, from scale 10^-3 to 10^9."""
    seed, x, expected = bytes.fromhex(vector["seed"]), Fraction(vector["inverse_scale"]), vector["draws"]
    assert expected == [reference.laplace(seed, [vector["label"]], x, i) for i in range(len(expected))]
    assert expected == package(vector).discrete_laplace(x, len(expected), vector["label"]).tolist()


@named("discrete_gaussian")
def test_discrete_gaussian_matches_its_vectors(vector: dict[str, Any]) -> None:
    """Candidates and acceptance over several rounds."""
    seed, v, expected = bytes.fromhex(vector["seed"]), Fraction(vector["variance"]), vector["draws"]
    assert expected == reference.gaussian(seed, [vector["label"]], v, len(expected))
    assert expected == package(vector).discrete_gaussian(v, len(expected), vector["label"]).tolist()


@named("gumbel_order")
def test_gumbel_orders_match_their_vectors(vector: dict[str, Any]) -> None:
    """Counts, odds, entries out of the running, and counts of 2^53 that no float can tell apart."""
    seed, unit, expected = bytes.fromhex(vector["seed"]), Fraction(vector["unit"]), vector["order"]
    multiples, divisors, eligible = zip(*vector["weights"], strict=True)
    odds = [Fraction(1, divisor) for divisor in divisors]
    odds[-1] *= Fraction(vector["last_odds"])
    entries = list(zip([unit * multiple for multiple in multiples], odds, eligible, strict=True))
    assert expected == reference.gumbel(seed, [vector["label"]], entries)[: len(expected)]
    weights = LogWeights(
        unit, np.array(multiples), np.array(divisors), Fraction(vector["last_odds"]), np.array(eligible)
    )
    assert expected == package(vector).gumbel_order(weights, len(expected), vector["label"]).tolist()


@named("random_order")
def test_random_orders_match_their_vectors(vector: dict[str, Any]) -> None:
    """From one entry to more than a byte can number."""
    seed, expected = bytes.fromhex(vector["seed"]), vector["order"]
    assert expected == reference.random_order(seed, [vector["label"]], len(expected))
    assert expected == package(vector).random_order(len(expected), vector["label"]).tolist()
