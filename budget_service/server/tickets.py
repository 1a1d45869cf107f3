"""Charge tickets: dp_service's HMAC over what a release costs, which an application cannot change.

A ticket is `key_id || tag`, 40 bytes, where LP joins its parts, each behind its length as eight big-endian bytes:

    key_id = first 8 bytes of SHA-256(LP("gris/ticket-key/v1", ticket_key))
    tag    = HMAC-SHA256(ticket_key, LP("gris/ticket/v1", release_id, query_id, information, calls, unit_id,
                                        policy_statement, blocks))

The ids, the statement and the blocks, which commas join, are UTF-8, and each may be empty; the amounts are eight
big-endian bytes, and the ticket key is 32 bytes that both services hold.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from budget_service.ledger.digests import length_prefixed
from budget_service.ledger.values import Cost
from gris_serving.key_files import read_key

KEY_ID_BYTES = 8


@dataclass(frozen=True, slots=True)
class Release:
    """What a ticket authenticates."""

    release_id: str
    query_id: str
    cost: Cost
    unit_id: str
    policy_statement: str = ""
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TicketVerifier:
    """Verifies tickets made with `ticket_key`, or with the `others` that are valid during a rotation."""

    ticket_key: bytes = field(repr=False)
    others: tuple[TicketVerifier, ...] = ()

    @staticmethod
    def from_files(path: Path, others: Iterable[Path]) -> TicketVerifier:
        """Read the current key and those of a rotation; see `from_file`."""
        verifiers = tuple(TicketVerifier.from_file(each) for each in others)
        return replace(TicketVerifier.from_file(path), others=verifiers)

    @staticmethod
    def from_file(path: Path) -> TicketVerifier:
        """Read a ticket key.

        Raises:
            KeyFileError: As `read_key`.
        """
        return TicketVerifier(read_key(path))

    def is_authentic(self, ticket: bytes, release: Release) -> bool:
        """Return whether a ticket is authentic. The comparison takes constant time, so its duration reveals nothing."""
        is_own = hmac.compare_digest(ticket, self.ticket(release))
        return is_own or any(each.is_authentic(ticket, release) for each in self.others)

    def ticket(self, release: Release) -> bytes:
        """Return the only ticket that is authentic for a release."""
        amounts = (release.cost.information, release.cost.calls)
        parts = (
            b"gris/ticket/v1",
            release.release_id.encode(),
            release.query_id.encode(),
            *(amount.to_bytes(8, "big") for amount in amounts),
            release.unit_id.encode(),
            release.policy_statement.encode(),
            ",".join(release.blocks).encode(),
        )
        return self._key_id() + hmac.digest(self.ticket_key, length_prefixed(parts), "sha256")

    def _key_id(self) -> bytes:
        return hashlib.sha256(length_prefixed((b"gris/ticket-key/v1", self.ticket_key))).digest()[
            :KEY_ID_BYTES
        ]
