"""Uniform numbers as endless bits."""

import numpy as np
import pytest

from dp_service.noise import KeyedStream
from dp_service.noise.interval_arithmetic import interval_context
from dp_service.noise.uniforms import BLOCK, KeyedUniforms, enclose_uniform

from .scripts import ScriptedUniforms

STREAM = KeyedStream(bytes(32))


def test_leading_words_are_the_sub_stream_of_the_label_in_blocks() -> None:
    """Blocks change nothing about what the words are."""
    size = 2 * BLOCK + 3
    blocks = list(KeyedUniforms(STREAM, ("a", "b"), size).leading_blocks())
    assert [0, BLOCK, 2 * BLOCK] == [start for start, _ in blocks]
    words = np.concatenate([words for _, words in blocks])
    assert STREAM.substream("a", "b").words(size).tolist() == words.tolist()


@pytest.mark.parametrize(
    ("level", "labels"), [(0, ("a",)), (1, ("a", "word", "1")), (12, ("a", "word", "12"))]
)
def test_word_j_of_number_i_is_word_i_of_sub_stream_j(level: int, labels: tuple[str, ...]) -> None:
    """The further bits of a number depend on its index alone, not on who else was asked for any."""
    all_words = STREAM.substream(*labels).words(50)
    indices = np.array([49, 0, 7])
    assert all_words[indices].tolist() == KeyedUniforms(STREAM, ("a",), 50).words_at(level, indices).tolist()


@pytest.mark.parametrize("first", [1, 4, BLOCK + 1])
def test_numbers_from_a_later_one_on_are_the_same_numbers(first: int) -> None:
    """Every word of number `first` + i, the leading ones and those that follow."""
    size = BLOCK + 5
    whole, rest = KeyedUniforms(STREAM, ("a",), first + size), KeyedUniforms(STREAM, ("a",), size, first)
    leading = np.concatenate([words for _, words in rest.leading_blocks()])
    indices = np.array([0, 3, size - 1])
    assert whole.words_at(0, first + np.arange(size)).tolist() == leading.tolist()
    assert whole.words_at(2, first + indices).tolist() == rest.words_at(2, indices).tolist()


def test_words_are_read_most_significant_first() -> None:
    """Two words of 64 bits spell 128 bits of the number, and what follows is left open."""
    enclosed = enclose_uniform(ScriptedUniforms([1], {0: [3]}), 0, 2, interval_context(256))
    assert int(enclosed.a * 2**128) == 2**64 + 3
    assert int(enclosed.b * 2**128) == 2**64 + 4
