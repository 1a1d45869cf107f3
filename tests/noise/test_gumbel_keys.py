"""The error bounds of float keys."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dp_service.noise import KeyedStream, LogWeights
from dp_service.noise.gumbel_keys import float_keys, standard_gumbel
from dp_service.noise.uniforms import KeyedUniforms

from .scripts import ScriptedUniforms

UNIFORMS = KeyedUniforms(KeyedStream(bytes(32)), ("words",), 2000)
WORDS = next(UNIFORMS.leading_blocks())[1]
# Close to both ends of the range and to where one way of evaluation gives way to another.
ENDS = [1, 2**40, 2**50 - 1, 2**64 - 2**58, 2**64 - 2**40, 2**64 - 2]
INNER = [2**50, 2**50 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2**58 - 1]


def exact_gumbel(uniform: mpmath.mpf) -> mpmath.mpf:
    """Return -ln(-ln(1 - U)) at the current precision."""
    return -mpmath.log(-mpmath.log(1 - uniform))


def assert_encloses(uniforms: ScriptedUniforms | KeyedUniforms, read_words: int) -> None:
    """Check the bound for the smallest and the largest number that begins with the words that were read."""
    words = next(uniforms.leading_blocks())[1]
    values, error = standard_gumbel(uniforms, 0, words)
    everyone = np.arange(words.size)
    spelled = [uniforms.words_at(level, everyone).tolist() for level in range(read_words)]
    with mpmath.workprec(400):
        for i, value in enumerate(values.tolist()):
            prefix = sum(spelled[level][i] << 64 * (read_words - 1 - level) for level in range(read_words))
            for numerator in (prefix, prefix + 1):
                assert abs(exact_gumbel(mpmath.mpf(numerator) / 2 ** (64 * read_words)) - value) <= error


def test_the_bound_encloses_gumbel_noise_between_the_ends() -> None:
    """Whatever bits follow the first 64, the true noise lies within the bound of the float."""
    assert_encloses(ScriptedUniforms(INNER), 1)
    inner = [word for word in WORDS.tolist() if 2**50 <= word < 2**64 - 2**58]
    assert_encloses(ScriptedUniforms(inner), 1)


@pytest.mark.parametrize("second", [0, 12345, 2**64 - 1])
def test_the_bound_encloses_gumbel_noise_near_the_ends(second: int) -> None:
    """There 128 bits are read, and whatever follows those, the true noise lies within the bound."""
    assert_encloses(ScriptedUniforms(ENDS, {i: [second] for i in range(len(ENDS))}), 2)


def test_bounds_are_narrow_for_ordinary_words() -> None:
    """Keys that differ by a hundred billionth are distinguished without further bits, near the ends as well."""
    assert standard_gumbel(UNIFORMS, 0, WORDS)[1] < 1e-13
    assert standard_gumbel(ScriptedUniforms(ENDS), 0, np.array(ENDS, dtype=np.uint64))[1] < 2e-13


@pytest.mark.parametrize("end", [0, 2**64 - 1])
def test_numbers_with_128_equal_bits_promise_nothing(end: int) -> None:
    """Where first-order error analysis ends, the bound is infinite and further bits decide."""
    uniforms = ScriptedUniforms([end], {0: [end]})
    assert np.isinf(standard_gumbel(uniforms, 0, np.array([end], dtype=np.uint64))[1])


@pytest.mark.slow
@pytest.mark.parametrize("unit", [Fraction(3, 20), Fraction(1, 10**12), Fraction(997, 3), Fraction(10**12)])
@pytest.mark.parametrize("last_odds", [Fraction(1), Fraction(10**300 - 7, 3), Fraction(5, 10**300 + 1)])
@pytest.mark.parametrize("with_divisors", [True, False])
def test_keys_of_huge_counts_and_odds_keep_their_last_digits(
    unit: Fraction, with_divisors: bool, last_odds: Fraction
) -> None:
    """Next to counts of 2^53, and odds of 10^300 or none, keys are right to the stated error, which is small."""
    size = 300
    steps = [2**53 - (i % 3) * 2 ** (i % 53) for i in range(size)]
    divisors = [2 ** (i % 62) + i % 2 if with_divisors else 1 for i in range(size)]
    weights = LogWeights(
        unit,
        np.array([step if i % 2 else -step for i, step in enumerate(steps)], dtype=np.int64),
        np.array(divisors, dtype=np.int64) if with_divisors else None,
        last_odds,
    )
    keys = float_keys(weights, UNIFORMS, 0, WORDS[:size])
    second = UNIFORMS.words_at(1, np.arange(size)).tolist()
    with mpmath.workprec(2000):
        for i in range(size):
            uniform = mpmath.mpf((int(WORDS[i]) << 64) + second[i]) / 2**128
            exact_odds = (last_odds if i == size - 1 else 1) / Fraction(divisors[i])
            odds = mpmath.mpf(exact_odds.numerator) / exact_odds.denominator
            added = (mpmath.log(odds) + exact_gumbel(uniform)) * unit.denominator / unit.numerator
            exact = int(weights.multiples[i]) + added
            assert abs(exact - int(keys.whole[i]) - mpmath.mpf(keys.fraction[i])) <= keys.error
    assert keys.error * float(unit) < 5e-12
    assert np.abs(keys.fraction).max() <= 0.5
