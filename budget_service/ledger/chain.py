"""The chain of digests over a journal: the root keeps that of its last entry, and with it every entry is fixed."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from msgspec.json import Encoder
from msgspec.structs import replace

from budget_service.ledger.state import JournalEntry, RootRecord

_ENCODER = Encoder()


def chained(record: RootRecord, last: RootRecord, entries: Iterable[JournalEntry]) -> RootRecord:
    """Return the record of a root whose journal had the `last` record and gets these entries."""
    number, found = last.entries, last.digest
    for entry in entries:
        number, found = number + 1, next_digest(found, entry)
    return replace(record, entries=number, digest=found)


def next_digest(before: str, entry: JournalEntry) -> str:
    """Return the digest of all entries up to one, from that of those before it: of that and of the entry as JSON."""
    return sha256(before.encode() + _ENCODER.encode(entry)).hexdigest()
