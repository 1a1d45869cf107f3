"""Makes a verified checkpoint of a root, and moves what it covers into an archive if that is asked.

A checkpoint is no entry of the journal, which it covers, and neither is a backup: the log has who made one, and why.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from gris_api.budget.v1 import admin_pb2 as pb

from budget_service.server import checkpoints, rpc_errors
from budget_service.server.ledger import Ledger
from budget_service.tuning import Tuning

log = logging.getLogger(__name__)


def note_backup(made: pb.BackUpLedgerResponse, *, actor: str, reason: str) -> None:
    """Log a backup of the whole ledger, and who asked for it."""
    fields = {"file": made.file, "bytes": made.bytes, "actor": actor, "reason": reason}
    log.info("The ledger was backed up.", extra={"event": "ledger.backed_up", "fields": fields})


class Checkpointing:
    """Makes checkpoints of one journal after the other."""

    def __init__(self, ledger: Ledger, folder: Path | None, tuning: Tuning) -> None:
        """Journals are read from `ledger`; without a folder nothing can be archived."""
        self._ledger = ledger
        self._folder = folder
        self._tuning = tuning
        self._turn = asyncio.Lock()

    async def seal(
        self, root: str, *, archive: bool, days: int, actor: str, reason: str
    ) -> pb.SealJournalResponse:
        """Make a checkpoint of a root, and archive what it covers; empty archives older than `days`, unless that is 0.

        What was done is logged with who did it, the `actor`, also where the rest failed.

        Raises:
            RefusalError: There is no such root, the ledger differs from its journal, or what is asked for cannot be
                written.
            StoreError: The store failed.
        """
        if archive and self._folder is None:
            raise rpc_errors.RefusalError(rpc_errors.no_archive())
        # A checkpoint of nothing would make a root of any name.
        if root not in await self._ledger.roots():
            raise rpc_errors.RefusalError(rpc_errors.root_unknown(root))
        async with self._turn:
            try:
                with self._ledger.reading("journal", root):
                    checkpoint = await checkpoints.make_checkpoint(self._ledger, root, self._tuning)
            except checkpoints.LedgerDiffersError:
                raise rpc_errors.RefusalError(rpc_errors.ledger_differs()) from None
            made = pb.SealJournalResponse(entries=checkpoint.entries, digest=checkpoint.digest)
            try:
                if archive and self._folder is not None:
                    await self._archive(root, self._folder, days, made)
            finally:
                fields = {
                    "root": root,
                    "entries": made.entries,
                    "archive": made.archive,
                    "emptied": made.emptied,
                    "actor": actor,
                    "reason": reason,
                }
                log.info("A checkpoint was made.", extra={"event": "ledger.sealed", "fields": fields})
        return made

    async def _archive(self, root: str, folder: Path, days: int, made: pb.SealJournalResponse) -> None:
        """Archive what the checkpoint covers, and write into the answer what was done."""
        try:
            path = await checkpoints.archive(self._ledger, root, folder, self._tuning)
            made.archive = "" if path is None else path.name
            if days:
                made.emptied = await checkpoints.empty_old(self._ledger, root, folder, days)
        except checkpoints.JournalChangedError as error:
            raise rpc_errors.RefusalError(rpc_errors.journal_changed(error.first, error.last)) from None
        except checkpoints.ArchiveMissingError as error:
            raise rpc_errors.RefusalError(rpc_errors.archive_missing(error.last)) from None
        except OSError as error:
            problem = error.strerror or type(error).__name__
            raise rpc_errors.RefusalError(rpc_errors.archive_unwritable(problem)) from None
