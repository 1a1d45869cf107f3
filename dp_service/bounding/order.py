"""The order in which a member's elements are kept: by the salted SHA-256 of member and element."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from dp_service.noise.encoding import length_prefixed


def order_hash(salt: bytes, member: str, element: str) -> bytes:
    """Return the 32 bytes by which one element of one member is ordered.

    `salt` is public. Member and element are their canonical texts, in UTF-8.

    >>> order_hash(b"salt", "ada", "x").hex()[:16]
    '8b0957f8c14c4d0c'
    """
    return hashlib.sha256(length_prefixed(salt, member.encode(), element.encode())).digest()


def kept(salt: bytes, member: str, elements: Iterable[str], delta_0: int) -> list[str]:
    """Return the at most `delta_0` distinct elements that count, in the order in which they are kept.

    This is the reference for the engines: ascending by `order_hash`, ties by element in code-point order.
    """
    return sorted(set(elements), key=lambda element: (order_hash(salt, member, element), element))[:delta_0]
