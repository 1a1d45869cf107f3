"""Seals the journal of a root: a verified checkpoint, and what it covers moved into an archive if that is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gris_api.budget.v1 import admin_pb2 as pb

from budget_service.server import checkpoints, rpc_errors
from budget_service.server.damage import reading_ledger
from budget_service.stores.interface import Store
from budget_service.tuning import Tuning


class Sealing:
    """Seals one journal after the other."""

    def __init__(self, ledger: Store, folder: Path | None, tuning: Tuning) -> None:
        """Journals are read from `ledger`, which knows ids alone; without a folder nothing can be archived."""
        self._ledger = ledger
        self._folder = folder
        self._tuning = tuning
        self._turn = asyncio.Lock()

    async def seal(self, root: str, *, archive: bool, days: int) -> pb.SealJournalResponse:
        """Make a checkpoint of a root, and archive what it covers; empty archives older than `days`, unless that is 0.

        Raises:
            RefusalError: The ledger differs from its journal, or what is asked for cannot be written.
            StoreError: The store failed.
        """
        if archive and self._folder is None:
            raise rpc_errors.RefusalError(rpc_errors.no_archive())
        async with self._turn:
            try:
                with reading_ledger("journal", root):
                    checkpoint = await checkpoints.make_checkpoint(self._ledger, root, self._tuning)
            except checkpoints.LedgerDiffersError:
                raise rpc_errors.RefusalError(rpc_errors.ledger_differs()) from None
            path, emptied = None, 0
            if archive and self._folder is not None:
                path, emptied = await self._archived(root, self._folder, days)
        return pb.SealJournalResponse(
            entries=checkpoint.entries,
            digest=checkpoint.digest,
            archive="" if path is None else path.name,
            emptied=emptied,
        )

    async def _archived(self, root: str, folder: Path, days: int) -> tuple[Path | None, int]:
        try:
            path = await checkpoints.archive(self._ledger, root, folder, self._tuning)
            return path, await checkpoints.empty_old(self._ledger, root, folder, days) if days else 0
        except checkpoints.JournalChangedError as error:
            raise rpc_errors.RefusalError(rpc_errors.journal_changed(error.first, error.last)) from None
        except checkpoints.ArchiveMissingError as error:
            raise rpc_errors.RefusalError(rpc_errors.archive_missing(error.last)) from None
        except OSError as error:
            problem = error.strerror or type(error).__name__
            raise rpc_errors.RefusalError(rpc_errors.archive_unwritable(problem)) from None
