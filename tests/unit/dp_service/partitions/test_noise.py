"""The noise of elements: exact, the same anywhere, and never met twice."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dp_service.noise.distribution import gaussian_tail
from dp_service.noise.stream import KeyedStream
from dp_service.partitions.element_noise import ElementUniforms, round_key
from dp_service.partitions.noisy_comparison import NoisyComparison
from dp_service.partitions.threshold import threshold_of_equals, threshold_of_sorted
from tests.support.element_keys import element_keys
from tests.unit.dp_service.noise.scripts import ScriptedUniforms

SEED = bytes(range(32))
NAMES = [f"element {i}" for i in range(40_000)]
KEYS = element_keys(NAMES)
ALL = np.arange(len(NAMES))


def uniforms(method: str = "sips", number: int = 0, seed: bytes = SEED) -> ElementUniforms:
    """Return the uniform numbers of a round."""
    return ElementUniforms(round_key(seed, method, number), KEYS)


def test_a_word_is_what_the_definition_says() -> None:
    """CBC-MAC of key and counter, written down here once more with another part of the library."""
    sub_key = KeyedStream(SEED).sub_key("partitions", "sips", "1")
    digest = hashlib.sha256("Ä".encode()).digest()
    for level in range(5):
        message = digest + (level // 2).to_bytes(16, "big")
        mac = Cipher(algorithms.AES256(sub_key), modes.CBC(bytes(16))).encryptor().update(message)[-16:]
        word = int.from_bytes(mac[8 * (level % 2) :][:8], "little")
        found = ElementUniforms(sub_key, element_keys(["x", "Ä"])).words_at(level, np.array([1]))
        assert [word] == found.tolist()


def test_neither_order_nor_company_changes_an_elements_number() -> None:
    """Any part of the elements, in any order, has the numbers that they have among all."""
    whole = uniforms().words_at(0, ALL)
    chosen = np.random.default_rng(1).permutation(ALL)[:1000]
    part = ElementUniforms(round_key(SEED, "sips", 0), KEYS[chosen])
    assert whole[chosen].tolist() == np.concatenate([words for _, words in part.leading_blocks()]).tolist()


def test_seed_method_and_round_each_give_other_numbers() -> None:
    """No word is met twice among all elements of four rounds: a repeat has probability below 10^-9."""
    rounds = [uniforms(), uniforms(number=1), uniforms("mad2r"), uniforms(seed=bytes(32))]
    words = np.concatenate([each.words_at(level, ALL) for each in rounds for level in (0, 1)])
    assert words.size == np.unique(words).size


@pytest.mark.parametrize("sigma", [2**26, 2**36])
def test_a_level_has_the_law_of_the_discrete_gaussian(sigma: int) -> None:
    """40,000 elements of equal weight pass three cuts as often as the tail says, within six standard deviations."""
    variance = Fraction(sigma**2)
    cuts = [-sigma, 0, 2 * sigma]
    levels = NoisyComparison(variance).levels(np.full(ALL.size, 1), cuts, uniforms())
    for passed, cut in enumerate(cuts):
        expected = float(gaussian_tail(variance, cut).mid)
        found = np.count_nonzero(levels > passed) / ALL.size
        assert abs(found - expected) < 6 * math.sqrt(expected * (1 - expected) / ALL.size)
        wider = float(gaussian_tail(variance * Fraction(169, 100), cut).mid)
        assert cut == 0 or abs(found - wider) > 6 * math.sqrt(expected * (1 - expected) / ALL.size)


@pytest.mark.parametrize("sigma", [2, 5, 2**36])
@pytest.mark.parametrize("sigmas", [-12.0, -1.5, 0.0, 0.3, 4.0, 9.9, 12.0])
def test_a_number_just_below_the_tail_passes_and_one_just_above_does_not(sigma: int, sigmas: float) -> None:
    """Numbers 2^-118 away from p on either side, which no table of 64-bit words can tell apart."""
    needed = int(sigma * sigmas)
    tail = gaussian_tail(Fraction(sigma**2), needed)
    edge = int(tail.mid * 2**128)
    distance = max(1, int(2 ** (128 - 60) * float(tail.mid)) if sigma > 2**10 else 2**10)
    for prefix, passes in ((edge - distance, True), (edge + distance, False)):
        if 0 <= prefix < 2**128:
            number = ScriptedUniforms([prefix >> 64], {0: [prefix & (2**64 - 1)]})
            levels = NoisyComparison(Fraction(sigma**2)).levels(np.array([1 - needed]), [0], number)
            assert passes == bool(levels[0])


def test_keys_of_another_shape_are_refused() -> None:
    """A key has 32 bytes."""
    with pytest.raises(ValueError, match="keys must be"):
        ElementUniforms(bytes(32), np.zeros((3, 16), dtype=np.uint8))
    with pytest.raises(ValueError, match="seed must be 32 bytes"):
        round_key(bytes(16), "sips", 0)


def test_noise_too_coarse_for_a_grid_is_refused() -> None:
    """Below two units of noise the table's bounds do not hold; between 32 and 2^20 units the tail is not known."""
    with pytest.raises(ValueError, match="variance must be"):
        NoisyComparison(Fraction(2**20))
    with pytest.raises(ValueError, match="variance must be"):
        NoisyComparison(Fraction(3))


@pytest.mark.parametrize("variance", [Fraction(16), Fraction(900)])
def test_a_threshold_is_the_smallest_that_hides_every_novel_set(variance: Fraction) -> None:
    """Checked by exact tails for each number of novel elements, and one less is too small for one of them."""
    delta, weights = Fraction(1, 1000), [60, 42, 34, 30, 26]
    threshold = threshold_of_equals(variance, delta, weights)

    def hides(cut: int) -> bool:
        return all(
            float(((1 - gaussian_tail(variance, cut + 1 - weight)) ** count).mid) >= 1 - delta
            for count, weight in enumerate(weights, start=1)
        )

    assert hides(threshold)
    assert not hides(threshold - 1)


def test_a_threshold_for_unequal_weights_hides_all_of_them() -> None:
    """One heavy novel element and many without weight."""
    variance, delta, weights = Fraction(100), Fraction(1, 100), [30, *[0] * 9]
    threshold = threshold_of_sorted(variance, delta, weights)
    shown = [
        1 - math.prod(1 - float(gaussian_tail(variance, cut + 1 - w).mid) for w in weights)
        for cut in (threshold, threshold - 1)
    ]
    assert shown[0] <= delta < shown[1]
