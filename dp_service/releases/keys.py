"""The secret that noise, ids, plans and tickets come from, and its sub-keys.

Source: noise.md, "Keyed, reproducible randomness". Each use has a sub-key of its own, so that what one use shows
(an id, a ticket) reveals nothing about another (the noise).

Rotation: first every replica gets the new key in addition to the current one, then the new key becomes current
everywhere, then the old key is removed. A plan is released under the key that signed it and no other: its query_id was
made with that key, and under the same query_id another key would draw new noise that nobody pays for.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from dp_service.noise.encoding import length_prefixed

KEY_BYTES = 32
MAX_LIVE_KEYS = 4


class KeyUse(Enum):
    """What a sub-key is for; the value is its label."""

    SEED = "seed"
    QUERY_ID = "query-id"
    DATA_VERSION = "data-version"
    PLAN = "plan"
    TICKET = "ticket"
    POLICY_ID = "policy-id"


@dataclass(frozen=True)
class NoiseKey:
    """A deployment's secret of 32 bytes.

    Raises:
        ValueError: The secret has another length; the message never shows it.
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != KEY_BYTES:
            raise ValueError(f"secret: expected {KEY_BYTES} bytes, got {len(self.secret)}")

    @cached_property
    def key_id(self) -> str:
        """The public name of the key, 16 hexadecimal characters; 256 bits of secret are not guessed from it."""
        return hashlib.sha256(length_prefixed(b"gris/key-id/v1", self.secret)).hexdigest()[:16]

    def subkey(self, use: KeyUse) -> bytes:
        """Return the 32-byte sub-key of one use."""
        return self._subkeys[use]

    @cached_property
    def _subkeys(self) -> dict[KeyUse, bytes]:
        return {
            use: hmac.digest(self.secret, length_prefixed(b"gris/subkey/v1", use.value.encode()), "sha256")
            for use in KeyUse
        }

    def authenticate(self, use: KeyUse, *fields: bytes) -> bytes:
        """Return the HMAC-SHA256 of the length-prefixed fields under the sub-key of one use, 32 bytes."""
        return hmac.digest(self.subkey(use), length_prefixed(*fields), "sha256")


@dataclass(frozen=True)
class KeySet:
    """The live keys: plans are signed with `current`, and those signed with a `previous` key are still accepted.

    The operator alone decides which key is current, not the order of files or their age.

    Raises:
        ValueError: If a key is given twice, or if more than four are live.
    """

    current: NoiseKey
    previous: tuple[NoiseKey, ...] = ()

    def __post_init__(self) -> None:
        if len(self.live) > MAX_LIVE_KEYS:
            raise ValueError(f"previous: expected at most {MAX_LIVE_KEYS - 1} keys, got {len(self.previous)}")
        if len({key.key_id for key in self.live}) < len(self.live):
            raise ValueError("previous: expected every key once, and not the current one")

    @property
    def live(self) -> tuple[NoiseKey, ...]:
        """All keys, the current one first."""
        return (self.current, *self.previous)

    @property
    def set_id(self) -> str:
        """The public name of the set of live keys, 16 hexadecimal characters, whichever of them is current.

        Replicas with the same name accept one another's plans: then a new key may become current.
        """
        names = sorted(key.key_id.encode() for key in self.live)
        return hashlib.sha256(length_prefixed(b"gris/key-set/v1", *names)).hexdigest()[:16]

    def with_id(self, key_id: str) -> NoiseKey | None:
        """Return the live key of that name, or None."""
        return next((key for key in self.live if key.key_id == key_id), None)
