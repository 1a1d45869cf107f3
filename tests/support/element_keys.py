"""The keys of many elements, as an engine's own SHA-256 makes them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from dp_service.partitions.element_noise import KEY_BYTES, Keys


def element_keys(texts: Iterable[str]) -> Keys:
    """Return the keys of elements, shape (n, 32)."""
    keys = b"".join(hashlib.sha256(text.encode()).digest() for text in texts)
    return np.frombuffer(keys, dtype=np.uint8).reshape(-1, KEY_BYTES)
