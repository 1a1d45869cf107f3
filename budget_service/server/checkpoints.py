"""Checkpoints of a journal: verified, added up and, if wanted, moved out of the store into a file."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import DAY
from budget_service.server import audit
from budget_service.server.archives import (
    NAMED_BY,
    SUFFIX,
    Chain,
    archives_of,
    empty_before,
    entry_line,
    last_line,
    name_of,
)
from budget_service.stores.interface import Store
from budget_service.stores.mark_file import fresh_path, remove_leftovers
from budget_service.tuning import DEFAULTS, Tuning


class LedgerDiffersError(Exception):
    """A balance differs from the journal, so no checkpoint is made."""


class JournalChangedError(Exception):
    """Entries before the checkpoint, at the positions `first` to `last`, are not those that it was made of."""

    def __init__(self, first: str, last: str) -> None:
        super().__init__(first, last)
        self.first, self.last = first, last


class ArchiveMissingError(Exception):
    """The file that ends with entry number `last` is not in the folder, and the digest continues from there."""

    def __init__(self, last: int) -> None:
        super().__init__(last)
        self.last = last


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
        ArchiveMissingError: The file before it is needed, and is not in the folder.
        JournalChangedError: The entries are not those that the checkpoint was made of; they stay in the store.
        OSError: The file cannot be written.
        StoreError: The store failed.
    """
    checkpoint = await store.checkpoint(root, ())
    if not checkpoint.entries:
        return None
    # Another worker or replica may be writing the same archive; in containers, replicas have the same process id.
    fresh = fresh_path(folder / name_of(root))
    remove_leftovers(folder / name_of(root))
    try:
        positions = await _write(fresh, store, root, checkpoint, tuning)
        if not positions.count:
            return None
        first = checkpoint.entries - positions.count + 1
        # Before the file has its name, which is that of a sound archive.
        chain = await asyncio.to_thread(Chain, [fresh, *archives_of(folder, root)])
        if not await asyncio.to_thread(chain.digests, root, first - 1):
            raise ArchiveMissingError(first - 1)
        if await asyncio.to_thread(chain.problem, fresh):
            raise JournalChangedError(positions.first, positions.last)
        numbers = f"{first}-{checkpoint.entries}"
        path = folder / f"{name_of(root)}.{numbers}.{checkpoint.digest[:NAMED_BY]}{SUFFIX}"
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    while await store.drop_checkpointed(root, tuning.dropped_at_once):
        pass
    return path


async def empty_old(store: Store, root: str, folder: Path, days: int) -> int:
    """Empty the archives of which no entry is of the last days of the ledger; return how many.

    Raises:
        OSError: A file cannot be written.
        StoreError: The store failed.
    """
    now = (await store.balances(root, "", 1)).clock
    return await asyncio.to_thread(empty_before, now - days * DAY, folder, root)


@dataclass
class _Positions:
    """How many entries were written, and the positions of the first and the last in the journal."""

    count: int = 0
    first: str = ""
    last: str = ""


async def _write(fresh: Path, store: Store, root: str, checkpoint: Checkpoint, tuning: Tuning) -> _Positions:
    """Write the entries up to the checkpoint page by page."""
    found = _Positions()
    with os.fdopen(os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        async for position, entry in audit.entries(store, root, "", checkpoint.position, tuning):
            file.write(entry_line(entry))
            found = _Positions(found.count + 1, found.first or position, position)
        # The digest covers all entries from the first one ever to the last one of this file.
        file.write(last_line(checkpoint.entries, checkpoint.digest))
        file.flush()
        await asyncio.to_thread(os.fsync, file.fileno())
    return found
