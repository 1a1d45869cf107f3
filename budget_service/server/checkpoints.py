"""Sealing a journal: verified, added up in a checkpoint and, if wanted, moved out of the store into a file."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from budget_service.ledger.state import JournalEntry
from budget_service.ledger.verification import Checkpoint
from budget_service.server import audit
from budget_service.stores.interface import Store
from budget_service.tuning import DEFAULTS, Tuning

# Characters of the digest.
NAMED_BY = 12


class LedgerDiffersError(Exception):
    """A balance is not what the journal says, so that the journal is not sealed."""


async def make_checkpoint(store: Store, root: str, tuning: Tuning = DEFAULTS) -> Checkpoint:
    """Verify a root and seal its journal as far as it has come. Raises LedgerDiffersError and StoreError."""
    found = audit.Verification()
    checkpoint = await audit.verify(store, root, found, tuning)
    if found.different:
        raise LedgerDiffersError
    await store.write_checkpoint(root, checkpoint)
    return checkpoint


async def archive(store: Store, root: str, folder: Path, tuning: Tuning = DEFAULTS) -> Path | None:
    """Write the sealed entries that are still in the store into a file of their own, then drop them from the store.

    The file is on the disk before the first entry is dropped; after a crash in between, a second file repeats some. Its
    name says which entries it holds and begins their digest: a ledger that was restored may have others of the same
    numbers. Returns None if there are none. Raises OSError and StoreError.
    """
    checkpoint = await store.checkpoint(root)
    if not checkpoint.entries:
        return None
    # Another worker may be writing the same one.
    fresh = folder / f"{quote(root, safe='')}.{os.getpid()}.new"
    try:
        count = await _write(fresh, store, root, checkpoint, tuning)
        if not count:
            return None
        numbers = f"{checkpoint.entries - count + 1}-{checkpoint.entries}"
        path = folder / f"{quote(root, safe='')}.{numbers}.{checkpoint.digest[:NAMED_BY]}.jsonl"
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    while await store.drop_checkpointed(root, tuning.dropped_at_once):
        pass
    return path


async def _write(fresh: Path, store: Store, root: str, checkpoint: Checkpoint, tuning: Tuning) -> int:
    """Write the sealed entries, page by page, and return how many they are."""
    count = 0
    with os.fdopen(os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        async for _, entry in audit.entries(store, root, "", checkpoint.position, tuning):
            file.write(_line(entry))
            count += 1
        # The digest is that of every entry since the first one, this file's last one included.
        file.write(json.dumps({"entries": checkpoint.entries, "digest": checkpoint.digest}) + "\n")
        file.flush()
        await asyncio.to_thread(os.fsync, file.fileno())
    return count


def _line(entry: JournalEntry) -> str:
    fields: dict[str, Any] = {
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
    if entry.policy_statement:
        fields["policy_statement"] = entry.policy_statement
    if entry.shared_cost is not None:
        fields["shared_cost"] = [entry.shared_cost.information, entry.shared_cost.calls]
    if entry.reason:
        fields["reason"] = entry.reason
    return json.dumps(fields) + "\n"
