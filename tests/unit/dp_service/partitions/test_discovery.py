"""Discovery as a whole: deterministic given the seed, bounded, and sane on odd data."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_service.bounding.contributions import Contributions
from dp_service.noise.gaussian_price import variance_for
from dp_service.partitions import KeyedElementNoise, Method, Parameters, discover, rounds
from dp_service.partitions.grid import WeightGrid
from dp_service.partitions.schedule import Grids, geometric_shares
from dp_service.partitions.weighting import TooManyError
from tests.support.bounding import kept
from tests.support.element_keys import element_keys
from tests.support.some import some

from .data import contributions
from .enumeration import output_law

COUNT = 300


def parameters(method: Method, rho: Fraction = Fraction(1, 2)) -> Parameters:
    """Return parameters that release a good part of the sample."""
    return Parameters(method, rho, Fraction(1, 1000), 10)


def sample(seed: int = 3) -> list[tuple[int, ...]]:
    """Return 600 members with up to 30 of the elements, low codes being popular."""
    random = np.random.default_rng(seed)
    return [
        tuple(dict.fromkeys((random.zipf(1.3, random.integers(0, 31)) % COUNT).tolist())) for _ in range(600)
    ]


def noise(asked: Parameters, seed: bytes, count: int = COUNT) -> KeyedElementNoise:
    """Return keyed noise for elements named by their codes."""
    return KeyedElementNoise(seed, asked, element_keys(map(str, range(count))))


@pytest.mark.slow
@pytest.mark.parametrize("method", list(Method), ids=str)
def test_a_seed_gives_one_domain_and_another_seed_another(method: Method) -> None:
    """The run is a function of pairs, parameters and seed."""
    asked = parameters(method)
    pairs = contributions(sample(), COUNT)
    first, again, other = (
        discover(pairs, asked, noise(asked, seed)).elements.tolist()
        for seed in (bytes(32), bytes(32), b"x" * 32)
    )
    assert 3 < len(first) < COUNT
    assert first == again != other


@pytest.mark.slow
@pytest.mark.parametrize("method", [Method.WEIGHTED_GAUSSIAN, Method.SIPS, Method.MAD, Method.MAD2R], ids=str)
def test_the_order_of_members_does_not_matter_to_parallel_methods(method: Method) -> None:
    """Whatever lies where: the same domain."""
    asked = parameters(method)
    members = sample()
    shuffled = [members[i] for i in np.random.default_rng(1).permutation(len(members))]
    found = [
        discover(contributions(each, COUNT), asked, noise(asked, bytes(32))).elements.tolist()
        for each in (members, shuffled)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("method", [Method.SIPS, Method.MAD2R], ids=str)
def test_no_element_is_released_twice(method: Method) -> None:
    """What one round releases is left out of those that follow."""
    asked = parameters(method)
    found = discover(contributions(sample(), COUNT), asked, noise(asked, bytes(32)))
    assert found.elements.size == np.unique(found.elements).size == sum(map(len, found.released))
    assert all(len(names) for names in found.released)


@pytest.mark.slow
def test_released_sets_have_the_exact_law() -> None:
    """Keyed noise over 1,000 seeds against the enumerated law of SIPS, within six standard deviations."""
    grids = Grids(WeightGrid(8), WeightGrid(128, adaptive_pairs=24))
    asked = Parameters(Method.SIPS, Fraction(2), Fraction(1, 20), 2, 2)
    members = [(0, 1), (0,), (1, 0)]
    law = output_law(members, 2, asked, grids)
    runs = 1000
    counts = Counter(
        tuple(
            tuple(names.tolist())
            for names in discover(
                contributions(members, 2), asked, noise(asked, run.to_bytes(32, "big"), 2), grids
            ).released
        )
        for run in range(runs)
    )
    for outcome, probability in some(law.items()):
        spread = 6 * (runs * probability * (1 - probability)) ** 0.5
        assert abs(counts[outcome] - runs * probability) <= spread + 1


@pytest.mark.parametrize("method", list(Method), ids=str)
@pytest.mark.parametrize("members", [[], [()], [(), ()], [(), (0,)]], ids=str)
def test_members_without_elements_and_no_members_release_nothing(
    method: Method, members: list[tuple[int, ...]]
) -> None:
    """Alone, one element is hidden: with this seed, and with all but a thousandth of the others."""
    asked = parameters(method)
    assert [] == discover(contributions(members, 1), asked, noise(asked, bytes(32), 1)).elements.tolist()


def test_a_member_with_a_million_elements_counts_as_one_with_typical() -> None:
    """It changes the weights of ten elements, and the rest are not even candidates."""
    count = 10**6
    pairs = Contributions(np.array([0, count]), np.arange(count, dtype=np.int32), count)
    asked = parameters(Method.SIPS)
    bounded = pairs.bounded(asked.typical)
    assert list(range(10)) == bounded.elements.tolist()
    keys = np.zeros((count, 32), dtype=np.uint8)
    assert discover(pairs, asked, KeyedElementNoise(bytes(32), asked, keys)).elements.size == 0


@given(
    members=st.lists(st.lists(st.integers(0, 9), unique=True).map(tuple), max_size=6),
    removed=st.sets(st.integers(0, 9)),
    typical=st.integers(1, 12),
)
def test_bounding_keeps_the_first_of_what_is_left(
    members: list[tuple[int, ...]], removed: set[int], typical: int
) -> None:
    """As a list comprehension says it."""
    flags = np.isin(np.arange(10), list(removed))
    found = contributions(members, 10).bounded(typical, flags)
    expected = [[each for each in member if each not in removed][:typical] for member in members]
    bounds = found.offsets.tolist()
    assert expected == [found.elements[start:stop].tolist() for start, stop in pairwise(bounds)]


def test_members_keep_different_elements_in_a_fair_order() -> None:
    """Of 1,000 members with elements 0 to 9 each keeps one; each element is kept by 100, within six deviations."""
    counts = Counter(kept(b"s", str(member), map(str, range(10)), 1)[0] for member in range(1000))
    assert all(abs(count - 100) < 6 * 9.5 for count in some(counts.values()))
    assert 10 == len(counts)


@pytest.mark.slow
def test_the_rounds_share_the_budget_exactly() -> None:
    """Rational numbers that add up to rho and delta; source: algorithm 3 of Swanberg et al. 2023."""
    assert (Fraction(1, 13), Fraction(3, 13), Fraction(9, 13)) == geometric_shares(3)
    for method in Method:
        turns = rounds(parameters(method))
        assert Fraction(1, 2) == sum(turn.rho for turn in turns)
        assert Fraction(1, 1000) == sum(turn.delta for turn in turns)
        assert all(turn.variance == variance_for(turn.grid.sensitivity**2, turn.rho) for turn in turns)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rho": Fraction(0)}, "rho must be"),
        ({"rho": Fraction(-1)}, "rho must be"),
        ({"rho": Fraction(101)}, "rho must be"),
        ({"delta": Fraction(0)}, "delta must be"),
        ({"delta": Fraction(3, 4)}, "delta must be"),
        ({"typical": 0}, "typical must be"),
        ({"typical": 10_001}, "typical must be"),
        ({"iterations": 0}, "iterations must be"),
        ({"iterations": 11}, "iterations must be"),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(change: dict[str, Fraction | int], said: str) -> None:
    """Nothing is clamped."""
    usual: dict[str, Fraction | int] = {"rho": Fraction(1), "delta": Fraction(1, 10)}
    with pytest.raises(ValueError, match=said):
        Parameters(Method.SIPS, **{**usual, **change})  # type: ignore[arg-type]  # wrong on purpose


def test_more_pairs_than_the_grid_has_room_for_are_refused() -> None:
    """The sensitivity holds for so many and no more."""
    asked = parameters(Method.MAD)
    with pytest.raises(TooManyError, match="at most 4 pairs"):
        discover(
            contributions([(0, 1, 2)] * 2, 3),
            asked,
            noise(asked, bytes(32)),
            Grids(adaptive=WeightGrid(64, 4)),
        )


def test_more_members_than_sums_have_room_for_are_refused() -> None:
    """Their weights could overflow 64 bits."""
    asked = parameters(Method.SIPS)
    grids = Grids(own=WeightGrid(2**61))
    with pytest.raises(TooManyError, match="at most 2 members"):
        discover(contributions([(0,)] * 3, 1), asked, noise(asked, bytes(32)), grids)


def test_an_element_meets_other_noise_in_every_round_and_method() -> None:
    """Of 300 equal weights at the cut, about half pass; which ones do differs between any two of four draws."""
    passed = []
    for method in (Method.SIPS, Method.MAD2R):
        asked = parameters(method)
        first, second = rounds(asked)[:2]
        for turn in (first, replace(first, number=second.number)):
            codes = np.arange(COUNT)
            levels = noise(asked, bytes(32)).levels(turn, codes, np.full(COUNT, turn.threshold))
            passed.append(tuple((levels == len(turn.cuts)).tolist()))
    assert 4 == len(set(passed))
    assert all(75 < sum(each) < 225 for each in passed)
