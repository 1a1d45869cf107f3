"""Charge tickets: dp_service's HMAC over what a release costs, which an application cannot change.

A ticket is `key_id || tag`, 40 bytes, where LP joins its parts, each behind its length as eight big-endian bytes:

    key_id = first 8 bytes of SHA-256(LP("gris/ticket-key/v1", ticket_key))
    tag    = HMAC-SHA256(ticket_key, LP("gris/ticket/v1", release_id, query_id, information, calls, unit_id))

A charge with a policy_statement has the label `gris/ticket/v2` and the statement behind the unit_id. One that some
blocks alone pay for has the label `gris/ticket/v3`, the statement, which may be empty, and the blocks joined by commas.
One with a purpose has the label `gris/ticket/v4`, the statement, the blocks, which may be empty too, and the purpose.

The ids, the statement, the blocks and the purpose are UTF-8, the amounts eight big-endian bytes, the ticket key 32
bytes that both services hold.
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
    purpose: str = ""


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
        version, more = _version_of(release)
        parts = (
            version,
            release.release_id.encode(),
            release.query_id.encode(),
            *(amount.to_bytes(8, "big") for amount in amounts),
            release.unit_id.encode(),
            *(each.encode() for each in more),
        )
        return self._key_id() + hmac.digest(self.ticket_key, length_prefixed(parts), "sha256")

    def _key_id(self) -> bytes:
        return hashlib.sha256(length_prefixed((b"gris/ticket-key/v1", self.ticket_key))).digest()[
            :KEY_ID_BYTES
        ]


def _version_of(release: Release) -> tuple[bytes, tuple[str, ...]]:
    """Return the label of a ticket, and what stands behind the unit_id."""
    statement, blocks = release.policy_statement, ",".join(release.blocks)
    if release.purpose:
        return b"gris/ticket/v4", (statement, blocks, release.purpose)
    if blocks:
        return b"gris/ticket/v3", (statement, blocks)
    return (b"gris/ticket/v2", (statement,)) if statement else (b"gris/ticket/v1", ())
