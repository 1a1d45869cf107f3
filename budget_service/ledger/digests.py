"""The one encoding that the ledger hashes: every part behind its length, so that no two lists of parts look alike."""

import hashlib
from collections.abc import Iterable


def length_prefixed(parts: Iterable[bytes]) -> bytes:
    """Join parts, each behind its length as eight big-endian bytes."""
    return b"".join([len(part).to_bytes(8, "big") + part for part in parts])


def digest(parts: Iterable[bytes]) -> str:
    """Return the SHA-256 of length-prefixed parts in hexadecimal."""
    return hashlib.sha256(length_prefixed(parts)).hexdigest()
