"""The journal of a root as an archive would have it, sent while the ledger is in use."""

from __future__ import annotations

from collections.abc import AsyncIterator

from gris_api.budget.v1 import admin_pb2 as pb

from budget_service.ledger.verification import Checkpoint, next_digest
from budget_service.server import audit
from budget_service.server.archives import entry_line
from budget_service.stores.interface import Store, StoreUnavailableError
from budget_service.tuning import DEFAULTS, Tuning

PART_CHARACTERS = 64 * 1024
"""About how long the lines of one message are."""


async def parts_of(
    store: Store, root: str, actor: str, tuning: Tuning = DEFAULTS
) -> AsyncIterator[pb.ExportJournalResponse]:
    """Give the lines of all entries of a root that are in the store now, and what is known of them.

    Raises:
        StoreUnavailableError: Entries were archived meanwhile, so that some may be missing.
        StoreError: The store failed.
    """
    checkpoint = await store.checkpoint(root, ())
    newest = await store.latest(root, "", 1)
    until = newest[0][0] if newest else ""
    end = pb.JournalEnd(
        checkpoint_entries=checkpoint.entries,
        checkpoint_digest=checkpoint.digest,
        actor=actor,
        position=until,
    )
    lines: list[str] = []
    length, first = 0, ""
    # Entries that the checkpoint covers come first: if some of them are archived, it alone knows of how many there are.
    for after, last in (("", checkpoint.position), (checkpoint.position, until)):
        if not last:
            continue
        async for position, entry in audit.entries(store, root, after, last, tuning):
            first = first or position
            end.entries, end.digest = end.entries + 1, next_digest(end.digest, entry)
            lines.append(entry_line(entry))
            length += len(lines[-1])
            if length >= PART_CHARACTERS:
                yield pb.ExportJournalResponse(root=root, lines="".join(lines))
                lines, length = [], 0
        if last == checkpoint.position and end.entries != checkpoint.entries:
            end.entries, end.digest = checkpoint.entries, checkpoint.digest
    if lines:
        yield pb.ExportJournalResponse(root=root, lines="".join(lines))
    if await _was_archived(store, root, checkpoint, first):
        raise StoreUnavailableError("entries were archived while they were exported")
    yield pb.ExportJournalResponse(root=root, end=end)


async def _was_archived(store: Store, root: str, checkpoint: Checkpoint, first: str) -> bool:
    # Entries are dropped up to a checkpoint, the oldest first: where the first one is still there, so is every other.
    page = await store.journal(root, "", "", 1) if first else []
    is_other = (await store.checkpoint(root, ())).position != checkpoint.position
    return is_other or [first] * bool(first) != [position for position, _ in page]
