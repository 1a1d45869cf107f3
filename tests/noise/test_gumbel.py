"""The exact Gumbel order."""

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from dp_service.noise import KeyedNoise, KeyedStream, LogWeights
from dp_service.noise.gumbel import gumbel_order
from dp_service.noise.source import KeyedUniforms

from .scripts import ScriptedUniforms
from .statistics import chi_squared_p_value

MIDDLE = 2**63
ALL_ONES = 2**64 - 1


def equal_weights(size: int) -> LogWeights:
    """Return weights that leave everything to the noise."""
    return LogWeights(Fraction(1), np.zeros(size, dtype=np.int64))


def uniforms(size: int, label: str = "selection") -> KeyedUniforms:
    """Return uniform numbers of a fixed seed."""
    return KeyedUniforms(KeyedStream(bytes(32)), label, size)


def peeling_law(weights: list[float], count: int) -> dict[tuple[int, ...], float]:
    """Return the law of `count` exponential mechanisms in a row, each over what is left."""
    law = {}
    for order in permutations(range(len(weights)), count):
        left, probability = math.fsum(weights), 1.0
        for entry in order:
            probability *= weights[entry] / left
            left -= weights[entry]
        law[order] = probability
    return law


def observed_orders(weights: LogWeights, count: int, runs: int) -> Counter[tuple[int, ...]]:
    """Count the orders over many seeds."""
    return Counter(
        tuple(KeyedNoise(KeyedStream(seed.to_bytes(32, "big"))).gumbel_order(weights, count, "x").tolist())
        for seed in range(runs)
    )


def p_value_against(weights: list[float], observed: Counter[tuple[int, ...]]) -> float:
    """Compare orders of two entries with the law of peeling."""
    law = peeling_law(weights, 2)
    return chi_squared_p_value([observed[order] for order in law], list(law.values()))


def test_the_order_has_the_law_of_peeling_the_exponential_mechanism() -> None:
    """20 000 seeds pass chi-squared at level 1e-6 for weights with counts and odds, and fail with a scale 30 % off."""
    numerators = np.array([1, 2, 1, 1], dtype=object)
    denominators = np.array([1, 1, 3, 1], dtype=object)
    weights = LogWeights(Fraction(1, 2), np.array([3, 1, 4, 0], dtype=np.int64), numerators, denominators)
    observed = observed_orders(weights, 2, 20_000)
    right = [math.exp(1.5), 2 * math.exp(0.5), math.exp(2) / 3, 1.0]
    wrong = [math.exp(1.5 * 1.3), 2 * math.exp(0.5 * 1.3), math.exp(2 * 1.3) / 3, 1.0]
    assert p_value_against(right, observed) > 1e-6
    assert p_value_against(wrong, observed) < 1e-6


def test_a_shorter_order_is_the_beginning_of_a_longer_one() -> None:
    """Looking only for contenders changes nothing about who wins."""
    weights = LogWeights(Fraction(3, 20), np.arange(500, dtype=np.int64) % 7)
    whole = gumbel_order(uniforms(500), weights, 500).tolist()
    for count in (0, 1, 10, 499):
        assert whole[:count] == gumbel_order(uniforms(500), weights, count).tolist()


def test_the_order_matches_its_test_vector() -> None:
    """The same seed gives the same order in every version with this sampler version."""
    weights = LogWeights(Fraction(3, 20), np.arange(12, dtype=np.int64))
    assert gumbel_order(uniforms(12), weights, 6).tolist() == [5, 8, 9, 0, 11, 3]


def test_equal_leading_words_are_settled_by_further_bits() -> None:
    """Three entries tie in 64 bits; the order among them is that of the bits that follow."""
    scripted = ScriptedUniforms([MIDDLE] * 3, {0: [5], 1: [9], 2: [7]})
    assert gumbel_order(scripted, equal_weights(3), 3).tolist() == [1, 2, 0]


def test_a_tie_far_down_is_settled_by_as_many_bits_as_it_takes() -> None:
    """Two numbers that agree in 640 bits are still ordered, with eleven words each."""
    same = [123] * 9
    scripted = ScriptedUniforms([MIDDLE] * 2, {0: [*same, 1], 1: [*same, 2]})
    assert gumbel_order(scripted, equal_weights(2), 2).tolist() == [1, 0]


def test_only_entries_that_matter_are_refined() -> None:
    """A tie below the last wanted entry draws no further bits, and one at the boundary draws for both."""
    below = ScriptedUniforms([2**62, 2**62, MIDDLE, MIDDLE + 2**50])
    assert gumbel_order(below, equal_weights(4), 1).tolist() == [3]
    assert set() == below.extended
    at_boundary = ScriptedUniforms([2**62, MIDDLE, MIDDLE], {1: [1], 2: [2]})
    assert gumbel_order(at_boundary, equal_weights(3), 1).tolist() == [2]
    assert {1, 2} == at_boundary.extended


@pytest.mark.parametrize("extreme", [0, ALL_ONES])
def test_extreme_words_are_ordered_by_the_bits_that_follow(extreme: int) -> None:
    """Numbers that begin with 64 equal bits may be as near to 0 or 1 as they like, and still have an order."""
    scripted = ScriptedUniforms([extreme, MIDDLE, extreme], {0: [8], 2: [9]})
    expected = [1, 2, 0] if extreme == 0 else [2, 0, 1]
    assert expected == gumbel_order(scripted, equal_weights(3), 3).tolist()


def test_a_number_that_stays_at_one_end_is_drawn_further() -> None:
    """Words of nothing but ones leave the key unbounded until a zero comes; then it is large, but finite."""
    ones = [ALL_ONES] * 6
    scripted = ScriptedUniforms([ALL_ONES, MIDDLE], {0: [*ones, 0]})
    heavy = LogWeights(Fraction(1), np.array([0, 400], dtype=np.int64))
    # After 448 one-bits, -ln U is about 2^-448, so the key is 448 ln 2 = 310.5, below 400.
    assert gumbel_order(scripted, heavy, 2).tolist() == [1, 0]


def test_huge_counts_that_differ_by_one_are_ordered_exactly() -> None:
    """At 2^53 the float of count times unit has no room for a difference of 1; the order still honours it."""
    scripted = ScriptedUniforms([MIDDLE] * 3)
    multiples = np.array([2**53 - 2, 2**53, 2**53 - 1], dtype=np.int64)
    weights = LogWeights(Fraction(1, 1000), multiples)
    assert gumbel_order(scripted, weights, 3).tolist() == [1, 2, 0]
    assert set() == scripted.extended


def test_odds_that_cancel_counts_are_compared_exactly() -> None:
    """exp(7) against odds of 1096.6331584284585992... to 16 digits: no float can tell, the intervals can."""
    below = LogWeights(
        Fraction(1),
        np.array([7, 0], dtype=np.int64),
        numerators=np.array([1, 10966331584284585992], dtype=object),
        denominators=np.array([1, 10**16], dtype=object),
    )
    assert gumbel_order(ScriptedUniforms([MIDDLE] * 2, {0: [7] * 4, 1: [7] * 4}), below, 2).tolist() == [0, 1]


@pytest.mark.parametrize("count", [-1, 4])
def test_a_count_out_of_range_is_refused(count: int) -> None:
    """The error names the argument."""
    with pytest.raises(ValueError, match="count must be from 0"):
        gumbel_order(uniforms(3), equal_weights(3), count)


def test_no_weights_have_an_empty_order() -> None:
    """An empty histogram selects nothing."""
    assert gumbel_order(uniforms(0), equal_weights(0), 0).tolist() == []
