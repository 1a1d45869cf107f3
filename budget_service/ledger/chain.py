"""The chain of digests over a journal: the root keeps that of its last entry, and with it every entry is fixed."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from budget_service.ledger.digests import digest
from budget_service.ledger.state import JournalEntry, RootRecord
from budget_service.ledger.values import Hold


def chained(record: RootRecord, last: RootRecord, entries: Iterable[JournalEntry]) -> RootRecord:
    """Return the record of a root whose journal had the `last` record and gets these entries."""
    number, found = last.entries, last.digest
    for entry in entries:
        number, found = number + 1, next_digest(found, entry)
    return replace(record, entries=number, digest=found)


def next_digest(before: str, entry: JournalEntry) -> str:
    """Return the digest of all entries up to one, from that of those before it."""
    return digest((before.encode(), *entry_parts(entry)))


def entry_parts(entry: JournalEntry) -> list[bytes]:
    """Return the fields of an entry as its digest takes them.

    Fields that few entries have are there only where the entry has them, behind their names, which cannot be confused
    with numbers.
    """
    amounts = (str(entry.cost.information), str(entry.cost.calls), entry.unit_id)
    ids = (entry.request_id, entry.release_id, entry.query_id, str(entry.time))
    holds = (part for hold in entry.holds for part in _hold_parts(hold))
    stated = ("policy_statement", entry.policy_statement) if entry.policy_statement else ()
    fields = (entry.kind.value, entry.account.text, *amounts, *ids, *holds, *stated, *_rarer_fields(entry))
    return [field.encode() for field in fields]


def _hold_parts(hold: Hold) -> tuple[str, ...]:
    counted = (str(hold.depth), str(hold.window_start))
    return (*counted, "block", hold.block) if hold.block else counted


def _rarer_fields(entry: JournalEntry) -> tuple[str, ...]:
    shared = entry.shared_cost
    counted = () if shared is None else ("shared_cost", str(shared.information), str(shared.calls))
    acts = (("reason", entry.reason), ("actor", entry.actor), ("change", entry.change))
    return (*counted, *(part for act in acts if act[1] for part in act))
