"""Releases of fixed seeds, made by the package and a second time from docs/noise.md alone."""

import json
from decimal import localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dp_service.mechanisms import (
    CountNoise,
    Currency,
    Histogram,
    KnownGumb,
    KnownLap,
    Mechanism,
    UnkGumb,
    UnkLap,
)
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound
from dp_service.mechanisms.bounded.contribution_bound import Counted
from dp_service.noise import KeyedNoise, KeyedStream

from ..noise import reference

RELEASES = json.loads((Path(__file__).parent / "release_vectors.json").read_text())["releases"]
AGAIN = {
    "KnownLap": reference.known_lap,
    "KnownGumb": reference.known_gumb,
    "UnkLap": reference.unk_lap,
    "UnkGumb": reference.unk_gumb,
    "BoundGauss": reference.bound_gauss,
}


def parameters_of(vector: dict[str, Any]) -> reference.Parameters:
    """The parameters of a vector."""
    rationals = {name: Fraction(vector["parameters"][name]) for name in ("e", "delta")}
    return reference.Parameters(**vector["parameters"] | rationals)


def mechanism_of(name: str, p: reference.Parameters) -> Mechanism:
    """The package's own mechanism with these parameters."""
    currency, with_counts = Currency(p.e, p.delta), p.count_noise is not None
    law = CountNoise(p.count_noise.removeprefix("discrete_")) if p.count_noise else CountNoise.LAPLACE
    if name == "BoundGauss":
        bound = ContributionBound(
            p.typical, p.tau, p.periods, Counted.EVENTS if p.of_events else Counted.MEMBERS, p.grid
        )
        return BoundGauss(currency, Fraction(p.units), bound, p.min_count)
    known: dict[str, Mechanism] = {
        "KnownLap": KnownLap(currency, p.delta_l0, p.tau),
        "KnownGumb": KnownGumb(currency, p.k, p.tau, with_counts, law),
        "UnkLap": UnkLap(currency, p.delta_l0, p.d_bar, p.tau),
        "UnkGumb": UnkGumb(currency, min(p.k, p.d_bar), p.d_bar, p.tau, with_counts, law),
    }
    return known[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "vector", RELEASES, ids=lambda vector: f"{vector['mechanism']}-{vector['parameters']['count_noise']}"
)
def test_releases_match_their_vectors(vector: dict[str, Any]) -> None:
    """The page, the package and the vector agree on elements, order, counts and bottom, at the mechanism's version."""
    name, counts, p = vector["mechanism"], vector["counts"], parameters_of(vector)
    seed, expected = bytes.fromhex(vector["seed"]), reference.Release(**vector["release"])
    with localcontext() as context:
        context.prec = 150
        assert expected == AGAIN[name](seed, counts, p)
    mechanism = mechanism_of(name, p)
    assert vector["version"] == mechanism.version
    drawn = mechanism.run(Histogram.from_element_order(counts), KeyedNoise(KeyedStream(seed)))
    noisy = None if drawn.noisy_counts is None else drawn.noisy_counts.tolist()
    assert expected == reference.Release(drawn.indices.tolist(), noisy, drawn.ended_in_bottom, drawn.bottom)
