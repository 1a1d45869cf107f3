"""Fingerprints of requests: one that is sent again with the same id has to have the same."""

from __future__ import annotations

from collections.abc import Iterable

from budget_service.ledger.digests import digest
from budget_service.ledger.values import Account, Cost, Fingerprint


def cost_fields(cost: Cost, unit_id: str) -> tuple[str, str, str]:
    """Return the fields of a cost."""
    return str(cost.information), str(cost.calls), unit_id


def payer_fields(blocks: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields of a request about blocks."""
    return ("blocks", *blocks) if blocks else ()


def reason_fields(reason: str) -> tuple[str, ...]:
    """Return the fields of why."""
    # Where it may be empty. No level has this name.
    return ("//reason", reason) if reason else ()


def act_fields(actor: str, reason: str = "") -> tuple[str, ...]:
    """Return the fields of who acts, and why."""
    # No level has one of these names.
    return (*reason_fields(reason), "//actor", actor)


def fingerprint_of(account: Account, fields: Iterable[str], asked_by: str = "") -> Fingerprint:
    """Return the digest of an account, or of who asks instead, and fields."""
    # The account comes first, as one field: its slashes separate its segments.
    return digest([part.encode() for part in (asked_by or account.text, *fields)])
