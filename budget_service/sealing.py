"""Sealing a journal: verified, added up in a checkpoint and, if wanted, moved out of the store into a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import quote

from budget_service import audit
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.verification import Checkpoint
from budget_service.stores.interface import Store

DROPPED_AT_ONCE = 1000
# Characters of the digest.
NAMED_BY = 12


class LedgerDiffersError(Exception):
    """A balance is not what the journal says, so that the journal is not sealed."""


async def seal(store: Store, root: str) -> Checkpoint:
    """Verify a root and seal its journal as far as it has come. Raises LedgerDiffersError and StoreError."""
    found = audit.Verification()
    checkpoint = await audit.verify(store, root, found)
    if found.different:
        raise LedgerDiffersError
    await store.seal(root, checkpoint)
    return checkpoint


async def archive(store: Store, root: str, folder: Path) -> Path | None:
    """Write the sealed entries that are still in the store into a file of their own, then drop them from the store.

    The file is on the disk before the first entry is dropped; after a crash in between, a second file repeats some. Its
    name says which entries it holds and begins their digest: a ledger that was restored may have others of the same
    numbers. Returns None if there are none. Raises OSError and StoreError.
    """
    checkpoint = await store.checkpoint(root)
    if not checkpoint.position:
        return None
    entries = [entry async for _, entry in audit.entries(store, root, "", checkpoint.position)]
    if not entries:
        return None
    numbers = f"{checkpoint.entries - len(entries) + 1}-{checkpoint.entries}"
    path = folder / f"{quote(root, safe='')}.{numbers}.{checkpoint.digest[:NAMED_BY]}.jsonl"
    _write(path, checkpoint, entries)
    while await store.drop_sealed(root, DROPPED_AT_ONCE):
        pass
    return path


def _write(path: Path, checkpoint: Checkpoint, entries: list[JournalEntry]) -> None:
    # Another worker may be writing the same one.
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        file.writelines(_line(entry) for entry in entries)
        # The digest is that of every entry since the first one, this file's last one included.
        file.write(json.dumps({"entries": checkpoint.entries, "digest": checkpoint.digest}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _line(entry: JournalEntry) -> str:
    fields = {
        "kind": entry.kind.value,
        "account": list(entry.account.path),
        "information": entry.cost.information,
        "calls": entry.cost.calls,
        "unit_id": entry.unit_id,
        "request_id": entry.request_id,
        "release_id": entry.release_id,
        "query_id": entry.query_id,
        "time": entry.time,
        "holds": [[hold.depth, hold.window_start] for hold in entry.holds],
    }
    return json.dumps(fields) + "\n"
