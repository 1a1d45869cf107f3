"""Keyed streams of random words: one seed, many independent labelled sub-streams.

The construction is fixed by committed test vectors, so that a release can be reproduced by another version
or in another language::

    sub-key    = HMAC-SHA256(seed, length_prefixed("gris/stream/v1", label, ...))
    sub-stream = AES-256 in counter mode under the sub-key, 128-bit big-endian counter from zero, over zeros
    word i     = bytes 8i .. 8i+7 of the sub-stream as a little-endian unsigned integer

A zero initial counter is safe because a sub-key is used for one stream and nothing else.
"""

import hashlib
import hmac
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dp_service.noise.encoding import length_prefixed

SEED_BYTES = 32
WORD_BITS = 64

_DOMAIN = b"gris/stream/v1"
_ZERO_COUNTER = bytes(16)


class RandomWords(Protocol):
    """A source of independent uniform 64-bit words; each word is handed out once."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words."""
        ...


class SubStream:
    """The random words of one label; every read continues where the last one ended."""

    def __init__(self, sub_key: bytes) -> None:
        self._keystream = Cipher(algorithms.AES256(sub_key), modes.CTR(_ZERO_COUNTER)).encryptor()

    def bytes(self, count: int) -> bytes:
        """Return the next `count` bytes; raises ValueError if `count` is negative."""
        if count < 0:
            raise ValueError(f"count must not be negative, got {count}")
        return self._keystream.update(bytes(count))

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words, shape (count,), little-endian; raises ValueError if negative."""
        return np.frombuffer(self.bytes(8 * count), dtype="<u8").astype(np.uint64, copy=False)


class KeyedStream:
    """All sub-streams of one 32-byte seed.

    Sub-streams with different labels are independent (HMAC-SHA256 as a pseudorandom function); asking for a
    label again begins the same sub-stream anew. Whoever needs each label used once guards that itself, as
    `KeyedNoise` does.
    """

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"seed must be {SEED_BYTES} bytes, got {len(seed)}")
        self._seed = seed

    def substream(self, *labels: str) -> SubStream:
        """Return the sub-stream named by a sequence of labels, from its beginning."""
        message = length_prefixed(_DOMAIN, *(label.encode() for label in labels))
        return SubStream(hmac.digest(self._seed, message, hashlib.sha256))
