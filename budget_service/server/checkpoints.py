"""Checkpoints of a journal: verified, added up and, if wanted, moved out of the store into a file."""

from __future__ import annotations

import asyncio
import json
import os
import socket
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
    """A balance differs from the journal, so no checkpoint is made."""


async def make_checkpoint(store: Store, root: str, tuning: Tuning = DEFAULTS) -> Checkpoint:
    """Verify a root account and store a checkpoint of its journal.

    Raises:
        LedgerDiffersError: A balance differs from the journal.
        StoreError: The store failed.
    """
    found = audit.Verification()
    checkpoint = await audit.verify(store, root, found, tuning)
    if found.different:
        raise LedgerDiffersError
    await store.write_checkpoint(root, checkpoint)
    return checkpoint


async def archive(store: Store, root: str, folder: Path, tuning: Tuning = DEFAULTS) -> Path | None:
    """Move the entries up to the checkpoint into a file of their own.

    The file is on the disk before the first entry is dropped from the store. After a crash in between, the next file
    has some of the entries again. The name of the file holds the numbers of its entries and the beginning of their
    digest, because a restored ledger may have other entries with the same numbers.

    Returns:
        The path of the file; None if no entry is left to archive.

    Raises:
        OSError: The file cannot be written.
        StoreError: The store failed.
    """
    checkpoint = await store.checkpoint(root)
    if not checkpoint.entries:
        return None
    # Another worker or replica may be writing the same archive; in containers, replicas have the same process id.
    fresh = folder / f"{quote(root, safe='')}.{socket.gethostname()}.{os.getpid()}.new"
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
    """Write the entries up to the checkpoint page by page; return their number."""
    count = 0
    with os.fdopen(os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        async for _, entry in audit.entries(store, root, "", checkpoint.position, tuning):
            file.write(_line(entry))
            count += 1
        # The digest covers all entries from the first one ever to the last one of this file.
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
