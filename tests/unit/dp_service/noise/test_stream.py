"""The keyed stream, pinned by test vectors."""

import hashlib
import hmac

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dp_service.noise.stream import KeyedStream

SEED = bytes(range(32))

# Fixed for ever: a change here means that no earlier release can be reproduced.
FIRST_WORDS = {
    "threshold index": ["183e66ceb8e6cce2", "eed14de0fcd8b444", "075ca3d8d4840fd4"],
    "selection": ["b7a4ed94c9bc7681", "5a4073f9ba85bfc7", "ff081c14013a5bdc"],
    "counts": ["af14846fddb11219", "7ba694eadef99ddb", "9ed98108b4fc5bd0"],
}


@pytest.mark.parametrize("label", FIRST_WORDS)
def test_the_stream_matches_its_test_vectors(label: str) -> None:
    """The first words of each sub-stream are those that were published."""
    assert FIRST_WORDS[label] == [
        f"{word:016x}" for word in KeyedStream(SEED).substream(label).words(3).tolist()
    ]


def test_the_stream_is_built_as_documented() -> None:
    """An independent construction, block by block from the raw cipher, gives the same words."""
    message = (14).to_bytes(8, "big") + b"gris/stream/v1" + (6).to_bytes(8, "big") + b"counts"
    sub_key = hmac.new(SEED, message, hashlib.sha256).digest()
    cipher = Cipher(algorithms.AES256(sub_key), modes.ECB()).encryptor()  # noqa: S305
    blocks = b"".join(cipher.update(counter.to_bytes(16, "big")) for counter in range(4))
    expected = [int.from_bytes(blocks[8 * i : 8 * i + 8], "little") for i in range(8)]
    assert expected == KeyedStream(SEED).substream("counts").words(8).tolist()


def test_reading_in_pieces_gives_the_same_words_as_reading_at_once() -> None:
    """A sub-stream has a position and nothing else."""
    pieces = KeyedStream(SEED).substream("x")
    at_once = KeyedStream(SEED).substream("x").words(10).tolist()
    assert at_once == [*pieces.words(3).tolist(), *pieces.words(0).tolist(), *pieces.words(7).tolist()]


@pytest.mark.parametrize("position", [0, 1, 2, 7, 500])
def test_reading_can_begin_anywhere(position: int) -> None:
    """A word is the same whether it is read after those before it or at once, at the edge of a cipher block or not."""
    in_order = KeyedStream(SEED).substream("x").words(510)[position : position + 9]
    stream = KeyedStream(SEED).substream("x")
    stream.words(3)
    stream.seek(position)
    assert in_order.tolist() == [*stream.words(4).tolist(), *stream.words(5).tolist()]


def test_a_word_can_be_had_without_those_before_it() -> None:
    """Random access gives the words that reading in order gives, in the order asked for, and moves nothing."""
    stream = KeyedStream(SEED).substream("x")
    in_order = KeyedStream(SEED).substream("x").words(1000)
    positions = np.array([999, 0, 1, 500, 501, 1])
    assert in_order[positions].tolist() == stream.words_at(positions).tolist()
    assert in_order[:2].tolist() == stream.words(2).tolist()
    assert stream.words_at(np.zeros(0, dtype=np.int64)).shape == (0,)


def test_labels_and_seeds_separate_streams() -> None:
    """No two of these streams share a word, whichever way labels are cut."""
    other_seed = KeyedStream(bytes(32))
    streams = [
        KeyedStream(SEED).substream("a", "b"),
        KeyedStream(SEED).substream("ab"),
        KeyedStream(SEED).substream("a"),
        KeyedStream(SEED).substream(),
        other_seed.substream("a"),
    ]
    words = [word for stream in streams for word in stream.words(100).tolist()]
    assert len(set(words)) == 500


def test_words_are_unsigned_and_native() -> None:
    """Samplers compute with them, so they are plain uint64."""
    assert np.dtype(np.uint64) == KeyedStream(SEED).substream("x").words(2).dtype


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_seed_of_another_length_is_refused(length: int) -> None:
    """A short seed would be a weak key."""
    with pytest.raises(ValueError, match="seed must be 32 bytes"):
        KeyedStream(bytes(length))


def test_a_negative_count_is_refused() -> None:
    """The error names the argument."""
    with pytest.raises(ValueError, match="count must not be negative"):
        KeyedStream(SEED).substream("x").words(-1)
