"""Exact trials."""

from fractions import Fraction
from math import e

import mpmath
import numpy as np
import pytest

from dp_service.noise.bernoulli import BernoulliLaw, bernoulli, expansion_word

from .scripts import ScriptedWords

EXPONENTIAL = BernoulliLaw.EXPONENTIAL
ONE = Fraction(1)
FIRST = expansion_word(EXPONENTIAL, ONE, 0)
SECOND = expansion_word(EXPONENTIAL, ONE, 1)


@pytest.mark.parametrize("law", BernoulliLaw)
@pytest.mark.parametrize("exponent", [Fraction(1, 10**9), Fraction(3, 40), Fraction(7), Fraction(300)])
def test_the_expansion_spells_the_probability(law: BernoulliLaw, exponent: Fraction) -> None:
    """The first four words agree with an evaluation at 2000 bits, down to the last bit."""
    with mpmath.workprec(2000):
        growth = mpmath.exp(mpmath.mpf(exponent.numerator) / exponent.denominator)
        probability = 1 / growth if law is EXPONENTIAL else 1 / (1 + growth)
        expected = int(mpmath.floor(probability * 2**256))
    words = [expansion_word(law, exponent, index) for index in range(4)]
    assert expected == sum(word << 64 * (3 - index) for index, word in enumerate(words))


def test_a_word_below_the_expansion_succeeds_and_one_above_fails() -> None:
    """The leading words decide every trial that is not tied."""
    assert bernoulli(ScriptedWords(FIRST - 1, FIRST + 1), EXPONENTIAL, ONE, 2).tolist() == [True, False]


def test_ties_are_settled_by_further_words_in_the_order_of_the_trials() -> None:
    """Trials 0 and 2 tie; their second words come after all first words, and trial 2 ties once more."""
    third = expansion_word(EXPONENTIAL, ONE, 2)
    words = ScriptedWords(FIRST, 0, FIRST, SECOND - 1, SECOND, third + 1)
    assert bernoulli(words, EXPONENTIAL, ONE, 3).tolist() == [True, True, False]
    assert words.left == 0


def test_the_probability_is_right_over_a_grid_of_words() -> None:
    """Of evenly spaced words, the share that succeeds is the probability up to the spacing."""
    size = 2**16
    grid = np.arange(size, dtype=np.uint64) << np.uint64(48)
    successes = bernoulli(ScriptedWords(*grid.tolist()), EXPONENTIAL, ONE, size).sum()
    assert int(size / e) + 1 == successes
