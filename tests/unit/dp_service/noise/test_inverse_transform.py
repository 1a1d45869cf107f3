"""Exact inversion of a distribution function, on all words of a small width and on the boundary words of 64 bits."""

from collections import Counter
from fractions import Fraction
from itertools import product

import mpmath
import pytest

from dp_service.noise.discrete_laplace import Digit, Head
from dp_service.noise.inverse_transform import InverseTransformSampler, InvertibleLaw

from .scripts import ScriptedUniforms

HEAD = Head(Fraction(1, 3), 0)
HEAD_OF_TWO_BITS = Head(Fraction(1, 20), 2)
DIGIT = Digit(Fraction(1, 5), 4)
LAWS = [HEAD, HEAD_OF_TWO_BITS, DIGIT, Head(Fraction(40), 0), Digit(Fraction(1, 10**9), 3)]


def distribution(law: InvertibleLaw, z: int) -> mpmath.mpf:
    """Return F(z) at the current precision from its definition as a sum of masses, independently of the code."""
    if isinstance(law, Digit):
        rate = mpmath.mpf(law.inverse_scale.numerator) / law.inverse_scale.denominator
        masses = [mpmath.exp(-rate * digit) for digit in range(2**law.width)]
        return mpmath.fsum(masses[: z + 1]) / mpmath.fsum(masses)
    assert isinstance(law, Head)
    # The head is a discrete Laplace number divided by 2^shift and rounded down, so sum the closed form.
    rate = mpmath.mpf(law.inverse_scale.numerator) / law.inverse_scale.denominator
    edge, q = (z + 1) * 2**law.shift - 1, mpmath.exp(-rate)
    return 1 - q ** (edge + 1) / (1 + q) if edge >= 0 else q**-edge / (1 + q)


def mass(law: InvertibleLaw, z: int) -> float:
    """Return Pr[Z = z]."""
    with mpmath.workprec(300):
        if not law.lowest <= z <= law.highest:
            return 0.0
        below = distribution(law, z - 1) if z > law.lowest else mpmath.mpf(0)
        return float(distribution(law, z) - below)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("word_bits", [8, 64])
def test_boundary_words_are_the_floors_of_the_closed_form(law: InvertibleLaw, word_bits: int) -> None:
    """Every boundary agrees with an evaluation at 600 bits to the last bit, and the ends are where they should be."""
    first, words = law.boundary_words(word_bits)
    with mpmath.workprec(600):
        expected = [int(mpmath.floor(distribution(law, first + i) * 2**word_bits)) for i in range(len(words))]
    assert expected == words
    if isinstance(law, Digit):
        assert (first, len(words)) == (0, law.highest)
    else:
        assert (words[0], words[-1]) == (0, 2**word_bits - 1)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "together"), [(HEAD, 256), (HEAD_OF_TWO_BITS, 1024), (DIGIT, 1024)])
def test_the_law_is_exact_by_enumeration_of_the_bit_tree(law: InvertibleLaw, together: int) -> None:
    """The middles of all 2^10 stretches that two 5-bit words can spell are drawn by the real code.

    A value must get as many of them as its closed-form mass says, up to one: at each of its two ends less than one
    half of a stretch is rounded. A guide is used when 1024 are drawn together, and none when 256 are.
    """
    sampler = InverseTransformSampler(law, word_bits=5)
    stretches = list(product(range(32), repeat=2))
    counts: Counter[int] = Counter()
    for start in range(0, 1024, together):
        part = stretches[start : start + together]
        numbers = ScriptedUniforms(
            [first for first, _ in part], {i: [part[i][1], 16] for i in range(together)}
        )
        counts.update(sampler.draw(numbers).tolist())
    assert 1024 == sum(counts.values())
    for value in range(min(counts) - 2, max(counts) + 3):
        assert abs(counts[value] - 1024 * mass(law, value)) <= 1


def test_only_boundary_words_need_further_bits() -> None:
    """All other words give their value at once, each the one that a comparison with F finds."""
    sampler, boundary = InverseTransformSampler(HEAD, word_bits=6), set(HEAD.boundary_words(6)[1])
    every_word = ScriptedUniforms(list(range(64)), {word: [32] for word in range(64)})
    values = sampler.draw(every_word).tolist()
    assert boundary == every_word.extended
    with mpmath.workprec(100):
        for word in range(64):
            uniform = (word + mpmath.mpf(32.5) / 64) / 64
            assert distribution(HEAD, values[word] - 1) <= uniform < distribution(HEAD, values[word])


@pytest.mark.parametrize("side", [0, 2**64 - 1])
def test_a_word_at_either_end_is_extended_into_the_tail(side: int) -> None:
    """After k words of equal bits |Z| is about 64 k ln 2 times the scale; nothing ends at the end of the table."""
    sampler = InverseTransformSampler(HEAD)
    reached = [
        int(sampler.draw(ScriptedUniforms([side], {0: [side] * (words - 1) + [2**63]}))[0])
        for words in (1, 2, 7)
    ]
    for words, value in zip((1, 2, 7), reached, strict=True):
        assert 3 * (64 * 0.6931 * words - 2) < abs(value) < 3 * (64 * 0.6932 * words + 2)
        assert (value < 0) == (side == 0)


def test_a_draw_beyond_the_end_of_a_law_that_goes_on_is_an_error() -> None:
    """A run of ones that would leave the 64-bit integers raises; it never wraps to a small number."""
    sampler = InverseTransformSampler(Head(Fraction(1, 2**50), 55))
    with pytest.raises(OverflowError, match="exceeded"):
        sampler.draw(ScriptedUniforms([2**64 - 1], {0: [2**64 - 1] * 200}))


def test_a_head_keeps_only_values_that_fit() -> None:
    """With its digits appended, the largest value that a head may have is within 2^62."""
    assert (HEAD_OF_TWO_BITS.highest << 2) <= 2**62
    assert -HEAD_OF_TWO_BITS.highest == HEAD_OF_TWO_BITS.lowest
