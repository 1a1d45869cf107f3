"""The journal of a root as an archive would have it, sent while the ledger is in use."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable

from gris_api.budget.v1 import admin_pb2 as pb

from budget_service.ledger.pseudonyms import NameRow
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.verification import Checkpoint, next_digest
from budget_service.server import audit
from budget_service.server.archives import entry_line
from budget_service.stores.interface import Store, StoreUnavailableError
from budget_service.stores.named_store import NamedStore
from budget_service.stores.renaming import levels_in, persons_in
from budget_service.tuning import DEFAULTS, Tuning

PART_CHARACTERS = 64 * 1024
"""About how long the lines of one message are."""
NAMES_AT_ONCE = 500
"""How many names one message has at most where those of a whole root are sent."""


async def parts_of(
    named: NamedStore, root: str, actor: str, tuning: Tuning = DEFAULTS
) -> AsyncIterator[pb.ExportJournalResponse]:
    """Give the lines of all entries of a root that are in the store now, the names in them, and what is known of them.

    Where entries are archived, all names that the root has are sent: also of accounts of which nothing else is here.

    Raises:
        StoreUnavailableError: Entries were archived meanwhile, so that some may be missing.
        StoreError: The store failed.
    """
    store, sent = named.ledger, set[str]()
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
    length, first, ids, is_archived = 0, "", set[str](), False
    # Entries that the checkpoint covers come first: if some of them are archived, it alone knows of how many there are.
    for after, last in (("", checkpoint.position), (checkpoint.position, until)):
        if not last:
            continue
        async for position, entry in audit.entries(store, root, after, last, tuning):
            first = first or position
            end.entries, end.digest = end.entries + 1, next_digest(end.digest, entry)
            lines.append(entry_line(entry))
            ids |= _ids_of(entry) - sent
            length += len(lines[-1])
            if length >= PART_CHARACTERS:
                yield pb.ExportJournalResponse(root=root, lines="".join(lines))
                if (names := await _names(named, root, ids)).names:
                    yield names
                sent |= ids
                lines, length, ids = [], 0, set()
        if last == checkpoint.position and end.entries != checkpoint.entries:
            end.entries, end.digest, is_archived = checkpoint.entries, checkpoint.digest, True
    if lines:
        yield pb.ExportJournalResponse(root=root, lines="".join(lines))
        if (names := await _names(named, root, ids)).names:
            yield names
    if is_archived:
        async for names in _all_names(named, root):
            yield names
    if await _was_archived(store, root, checkpoint, first):
        raise StoreUnavailableError("entries were archived while they were exported")
    yield pb.ExportJournalResponse(root=root, end=end)


def _ids_of(entry: JournalEntry) -> set[str]:
    return {*(segment for level in levels_in(entry) for segment in level.path[1:]), *persons_in(entry)}


async def _names(named: NamedStore, root: str, ids: set[str]) -> pb.ExportJournalResponse:
    return _message(root, await named.rows_for(root, ids))


async def _all_names(named: NamedStore, root: str) -> AsyncIterator[pb.ExportJournalResponse]:
    """Give all names of a root but those of accounts that are forgotten, also where their removal was interrupted."""
    states = (await named.ledger.all_limits(root)).states
    forgotten = (level.path[-1] for level, state in states.items() if state.is_forgotten)
    gone = tuple(f"{each.name}/" for each in await named.rows_for(root, forgotten))
    after = ""
    while page := await named.ledger.names_below(root, root, after, NAMES_AT_ONCE):
        after = page[-1]
        left = [each for each in page if not f"{each}/".startswith(gone)]
        # Redis has more on a page than it was asked for.
        for start in range(0, len(left), NAMES_AT_ONCE):
            yield _message(root, await named.ledger.named(root, left[start : start + NAMES_AT_ONCE]))


def _message(root: str, rows: Iterable[NameRow]) -> pb.ExportJournalResponse:
    lines = [
        json.dumps({"root": root, "name": each.name, "id": each.id, "key": each.key}) + "\n" for each in rows
    ]
    return pb.ExportJournalResponse(root=root, names="".join(lines))


async def _was_archived(store: Store, root: str, checkpoint: Checkpoint, first: str) -> bool:
    # Entries are dropped up to a checkpoint, the oldest first: where the first one is still there, so is every other.
    page = await store.journal(root, "", "", 1) if first else []
    is_other = (await store.checkpoint(root, ())).position != checkpoint.position
    return is_other or [first] * bool(first) != [position for position, _ in page]
