"""The secret that noise, ids, plans and tickets come from, and its sub-keys.

Source: noise.md, "Keyed, reproducible randomness". Each use has a sub-key of its own, so that what one use shows
(an id, a ticket) tells nothing about another (the noise).
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from enum import Enum

from dp_service.noise.encoding import length_prefixed

KEY_BYTES = 32


class KeyUse(Enum):
    """What a sub-key is for; the value is its label."""

    SEED = "seed"
    QUERY_ID = "query-id"
    DATA_VERSION = "data-version"
    PLAN = "plan"
    TICKET = "ticket"


@dataclass(frozen=True)
class NoiseKey:
    """A deployment's secret of 32 bytes.

    Raises ValueError, without showing the secret, if it has another length.
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != KEY_BYTES:
            raise ValueError(f"secret: expected {KEY_BYTES} bytes, got {len(self.secret)}")

    @property
    def key_id(self) -> str:
        """The public name of the key, 16 hexadecimal characters; 256 bits of secret are not guessed from it."""
        return hashlib.sha256(length_prefixed(b"gris/key-id/v1", self.secret)).hexdigest()[:16]

    def subkey(self, use: KeyUse) -> bytes:
        """Return the 32-byte sub-key of one use."""
        return hmac.digest(self.secret, length_prefixed(b"gris/subkey/v1", use.value.encode()), "sha256")

    def authenticate(self, use: KeyUse, *parts: bytes) -> bytes:
        """Return the HMAC-SHA256 of the length-prefixed parts under the sub-key of one use, 32 bytes."""
        return hmac.digest(self.subkey(use), length_prefixed(*parts), "sha256")
