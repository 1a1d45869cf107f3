"""Keyed streams of random words: one seed, many independent labelled sub-streams.

The construction is fixed by committed test vectors, so that a release can be reproduced by another version
or in another language::

    sub-key    = HMAC-SHA256(seed, length_prefixed("gris/stream/v1", label, ...))
    sub-stream = AES-256 in counter mode under the sub-key, 128-bit big-endian counter from zero, over zeros
    word i     = bytes 8i .. 8i+7 of the sub-stream as a little-endian unsigned integer

A zero initial counter is safe because a sub-key is used for one stream and nothing else. Counter mode can be
entered anywhere, so any word can be had without those before it. docs/noise.md writes all of this down byte
by byte.
"""

import hashlib
import hmac
from functools import cached_property

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from dp_service.noise.encoding import length_prefixed

SEED_BYTES = 32
WORD_BITS = 64

_WORD_BYTES = WORD_BITS // 8
_DOMAIN = b"gris/stream/v1"
_ZERO_COUNTER = bytes(16)


class SubStream:
    """The random words of one label; every read continues where the last one ended."""

    def __init__(self, sub_key: bytes) -> None:
        self._cipher = algorithms.AES256(sub_key)

    def bytes(self, count: int) -> bytes:
        """Return the next `count` bytes.

        Raises:
            ValueError: If `count` is negative.
        """
        if count < 0:
            raise ValueError(f"count must not be negative, got {count}")
        return self._keystream.update(bytes(count))

    def seek(self, position: int) -> None:
        """Let the next read begin with word `position`, which must not be negative."""
        # A block of the cipher is two words.
        counter = (position // 2).to_bytes(len(_ZERO_COUNTER), "big")
        self._keystream = Cipher(self._cipher, modes.CTR(counter)).encryptor()
        self.words(position % 2)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words, shape (count,), little-endian.

        Raises:
            ValueError: If `count` is negative.
        """
        return np.frombuffer(self.bytes(_WORD_BYTES * count), dtype="<u8").astype(np.uint64, copy=False)

    def words_at(self, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the words at these positions of the sub-stream, wherever the last read ended; shape (n,).

        The positions must not be negative.
        """
        counters = np.zeros((positions.size, 2), dtype=">u8")
        counters[:, 1] = positions // 2
        # The cipher over a counter is one block of the counter-mode stream over zeros.
        pairs = np.frombuffer(self._blocks.update(counters.tobytes()), dtype="<u8").reshape(-1, 2)
        return pairs[np.arange(positions.size), positions % 2].astype(np.uint64, copy=False)

    @cached_property
    def _keystream(self) -> CipherContext:
        return Cipher(self._cipher, modes.CTR(_ZERO_COUNTER)).encryptor()

    @cached_property
    def _blocks(self) -> CipherContext:
        return Cipher(self._cipher, modes.ECB()).encryptor()  # noqa: S305 - of distinct counters


class KeyedStream:
    """All sub-streams of one 32-byte seed.

    Sub-streams with different labels are independent (HMAC-SHA256 as a pseudorandom function); asking for a
    label again begins the same sub-stream anew. A caller that must use each label once has to check that
    itself, as `KeyedNoise` does.
    """

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"seed must be {SEED_BYTES} bytes, got {len(seed)}")
        self._seed = seed

    def substream(self, *labels: str) -> SubStream:
        """Return the sub-stream named by a sequence of labels, from its beginning."""
        return SubStream(self.sub_key(*labels))

    def sub_key(self, *labels: str) -> bytes:
        """Return the key of the sub-stream named by a sequence of labels."""
        message = length_prefixed(_DOMAIN, *(label.encode() for label in labels))
        return hmac.digest(self._seed, message, hashlib.sha256)
