"""Uniform numbers that belong to elements: the same seed, round and element give the same number anywhere.

The number does not depend on the partition that an element is in, on which other elements there are, or on their order.
Each element is named by its key, the SHA-256 of its canonical text in UTF-8::

    sub-key     = KeyedStream(seed).sub_key("partitions", method, round)
    D1 | D2     = the element's key, two blocks of 16 bytes
    block(j)    = AES(AES(AES(D1) xor D2) xor j), AES-256 under the sub-key, j a 128-bit big-endian integer
    word 2j     = bytes 0 .. 7 of block(j) as a little-endian unsigned integer; word 2j + 1 = bytes 8 .. 15

A block is the CBC-MAC of the three blocks D1, D2, j. All messages have that one length, where CBC-MAC is a
pseudorandom function: it is distinguished from random with probability at most about (3 q)^2 / 2^128 over q blocks
(Bellare, Kilian and Rogaway 2000), below 2^-60 for 10^9 elements. A sub-key is used for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from dp_service.noise.stream import KeyedStream
from dp_service.noise.uniforms import BLOCK

KEY_BYTES = 32

Keys = NDArray[np.uint8]
_BLOCK_WORDS = 2


def round_key(seed: bytes, method: str, number: int) -> bytes:
    """Return the secret sub-key of one round.

    Raises:
        ValueError: `seed` is not 32 bytes.
    """
    return KeyedStream(seed).sub_key("partitions", method, str(number))


class ElementUniforms:
    """The uniform numbers of some elements in one round; see `dp_service.noise.uniforms.UniformBits`.

    `keys` has shape (n, 32).

    Raises:
        ValueError: It has another shape.
    """

    def __init__(self, sub_key: bytes, keys: Keys) -> None:
        if keys.ndim != 2 or keys.shape[1] != KEY_BYTES or keys.dtype != np.uint8:
            raise ValueError(f"keys must be an array of bytes of shape (n, {KEY_BYTES})")
        self._cipher = Cipher(algorithms.AES256(sub_key), modes.ECB())  # noqa: S305 - the MAC chains by itself
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def leading_blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """Yield the first word of every number in order, in blocks."""
        for start in range(0, len(self), BLOCK):
            yield start, self._words(0, self._keys[start : start + BLOCK])

    def words_at(self, level: int, indices: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return word `level` of the numbers `indices`."""
        return self._words(level, self._keys[indices])

    def _words(self, level: int, keys: Keys) -> NDArray[np.uint64]:
        encryptor = self._cipher.encryptor()
        halves = np.ascontiguousarray(keys).view(np.uint64).reshape(-1, 2, _BLOCK_WORDS)
        chained = _encrypted(encryptor, halves[:, 0]) ^ halves[:, 1]
        counter = np.frombuffer((level // _BLOCK_WORDS).to_bytes(16, "big"), dtype=np.uint64)
        blocks = _encrypted(encryptor, _encrypted(encryptor, chained) ^ counter)
        return blocks.view("<u8")[:, level % _BLOCK_WORDS].astype(np.uint64, copy=False)


def _encrypted(encryptor: CipherContext, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each block of 16 bytes encrypted by itself, shape (n, 2)."""
    encrypted = encryptor.update(np.ascontiguousarray(blocks).tobytes())
    return np.frombuffer(encrypted, dtype=np.uint64).reshape(-1, _BLOCK_WORDS)
