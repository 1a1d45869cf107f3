"""The encoding that the ledger hashes: length-prefixed parts, so that different lists have different encodings."""

import hashlib
from collections.abc import Iterable

# Nearly all parts are as short as this, and a request has a dozen.
_SHORT = 256
_LENGTHS = [length.to_bytes(8, "big") for length in range(_SHORT)]


def length_prefixed(parts: Iterable[bytes]) -> bytes:
    """Join parts, each behind its length as eight big-endian bytes."""
    return b"".join(
        [
            (_LENGTHS[size] if (size := len(part)) < _SHORT else size.to_bytes(8, "big")) + part
            for part in parts
        ]
    )


def digest(parts: Iterable[bytes]) -> str:
    """Return the SHA-256 of length-prefixed parts in hexadecimal."""
    return hashlib.sha256(length_prefixed(parts)).hexdigest()
