"""The error bounds of float keys."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.noise import KeyedStream, LogWeights
from dp_service.noise.keys import float_keys, standard_gumbel

WORDS = KeyedStream(bytes(32)).substream("words").words(300)
# Close to both ends of the range and to the middle, where branches change.
CORNERS = np.array(
    [2**11, 2**12 + 1, 2**40, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2**40, 2**64 - 2**11], dtype=np.uint64
)


def exact_gumbel(numerator: mpmath.mpf) -> mpmath.mpf:
    """Return -ln(-ln(numerator / 2^64)) at the current precision."""
    return -mpmath.log(-mpmath.log(numerator / mpmath.mpf(2) ** 64))


@pytest.mark.parametrize("words", [WORDS, CORNERS], ids=["random", "corners"])
def test_the_bound_encloses_gumbel_noise_at_both_ends_of_a_word(words: NDArray[np.uint64]) -> None:
    """Whatever bits follow a word, the true noise lies within the bound of the float."""
    values, errors = standard_gumbel(words)
    with mpmath.workprec(300):
        for word, value, error in zip(words.tolist(), values.tolist(), errors.tolist(), strict=True):
            for numerator in (word, word + 1):
                assert abs(exact_gumbel(mpmath.mpf(numerator)) - value) <= error


def test_bounds_are_narrow_for_ordinary_words() -> None:
    """Keys that differ by a hundred billionth are told apart without further bits."""
    assert standard_gumbel(WORDS)[1].max() < 1e-12


def test_the_bound_covers_the_rounding_of_large_odds() -> None:
    """The logarithm of odds near 10^300 is rounded by more than the noise is, and the bound knows."""
    numerators = np.array([10**300 - 7**i for i in range(300)], dtype=object)
    weights = LogWeights(Fraction(1), np.zeros(300, dtype=np.int64), numerators)
    keys = float_keys(weights, WORDS)
    with mpmath.workprec(2000):
        for i in range(300):
            exact = mpmath.log(mpmath.mpf(numerators[i])) + exact_gumbel(mpmath.mpf(int(WORDS[i])) + 0.5)
            assert abs(exact - mpmath.mpf(keys.high[i]) - mpmath.mpf(keys.low[i])) <= keys.error[i]


@pytest.mark.parametrize("word", [0, 1, 2**11 - 1, 2**64 - 2**11 + 1, 2**64 - 1])
def test_extreme_words_promise_nothing(word: int) -> None:
    """Where first-order error analysis ends, the bound is infinite and further bits decide."""
    assert np.isinf(standard_gumbel(np.array([word], dtype=np.uint64))[1][0])


@pytest.mark.parametrize("unit", [Fraction(3, 20), Fraction(1, 10**6), Fraction(997, 3)])
def test_keys_of_huge_counts_keep_their_differences(unit: Fraction) -> None:
    """Next to counts of 2^53 and odds of 10^40, differences of keys are right to the stated error."""
    multiples = np.array([2**53, 2**53 - 1, 2**53 - 2, 7, 0, -(2**53)], dtype=np.int64)
    numerators = np.array([1, 1, 1, 10**40, 3, 1], dtype=object)
    denominators = np.array([1, 7, 1, 3, 10**40, 1], dtype=object)
    weights = LogWeights(unit, multiples, numerators, denominators)
    keys = float_keys(weights, WORDS[:6])
    with mpmath.workprec(400):
        exact = [
            mpmath.mpf(unit.numerator) * int(multiples[i]) / unit.denominator
            + mpmath.log(mpmath.mpf(numerators[i]) / denominators[i])
            + exact_gumbel(mpmath.mpf(int(WORDS[i])) + 0.5)
            for i in range(6)
        ]
        for i in range(1, 6):
            difference = (
                mpmath.mpf(keys.high[0])
                - mpmath.mpf(keys.high[i])
                + mpmath.mpf(keys.low[0])
                - mpmath.mpf(keys.low[i])
            )
            assert abs(exact[0] - exact[i] - difference) <= keys.error[0] + keys.error[i]
    assert keys.error.max() < 1e-11
