"""The charge ticket: proof of what a release costs, for a ledger that does not trust the application.

A ticket is `id of the ticket key (8 bytes) | HMAC-SHA256 (32 bytes)` over the length-prefixed fields below.
"""

from __future__ import annotations

import hashlib
import hmac

from dp_service.mechanisms.parameters import Cost
from dp_service.noise.encoding import length_prefixed
from dp_service.releases.keys import KeyUse, NoiseKey


def ticket_key(key: NoiseKey) -> bytes:
    """Return the 32-byte key that a ledger verifies tickets with; it reveals nothing about the noise key."""
    return key.subkey(KeyUse.TICKET)


def charge_ticket(
    key: NoiseKey,
    *,
    release_id: str,
    query_id: str,
    cost: Cost,
    unit_id: str,
    policy_statement: str = "",
    blocks: tuple[str, ...] = (),
) -> bytes:
    """Return the ticket of one release, 40 bytes."""
    secret = ticket_key(key)
    message = length_prefixed(
        b"gris/ticket/v1",
        release_id.encode(),
        query_id.encode(),
        cost.information.to_bytes(8, "big"),
        cost.calls.to_bytes(8, "big"),
        unit_id.encode(),
        policy_statement.encode(),
        ",".join(blocks).encode(),
    )
    key_id = hashlib.sha256(length_prefixed(b"gris/ticket-key/v1", secret)).digest()[:8]
    return key_id + hmac.digest(secret, message, "sha256")
