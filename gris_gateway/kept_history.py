"""The history as a view of the release store: what each account was shown, with the elements of what is kept."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from gris_api.app.v1 import app_pb2

from gris_gateway.history import VERSION, HistoryError, Page, deduplication_key
from pinot_connector.release_store import Receipt, ReleaseStore
from pinot_connector.release_store.receipts import without_elements

MAX_NOTED = 10_000
DAY_SECONDS = 86_400


class KeptHistory:
    """The history of all accounts, in a release store.

    Args:
        store: Keeps releases and receipts; it is not closed with the history.
    """

    def __init__(self, store: ReleaseStore) -> None:
        self._store = store
        # Repeats that are listed already, in the order in which they were noted.
        self._noted: OrderedDict[tuple[tuple[str, ...], str, int], None] = OrderedDict()

    async def add(self, account: Sequence[str], release: app_pb2.PastRelease) -> None:
        """Note a result. If its release is kept, only what was shown of it is noted.

        A repeat without a request id adds nothing to the list: it is noted once a day, and need not wait for a disk.
        """
        noted = (tuple(account), deduplication_key(release), release.released_at.seconds // DAY_SECONDS)
        if release.request_id == "" and noted in self._noted:
            return
        await self._note(account, release)
        if release.request_id == "":
            self._noted[noted] = None
            while len(self._noted) > MAX_NOTED:
                self._noted.popitem(last=False)

    async def _note(self, account: Sequence[str], release: app_pb2.PastRelease) -> None:
        shown = release.result.shown
        found = await self._store.find(shown.query_id, tuple(account))
        is_kept = found is not None and found.kept.release_id == shown.release_id
        receipt = (
            Receipt(without_elements(release), deduplication_key(release), shown.query_id)
            if is_kept
            else Receipt(release, deduplication_key(release), "")
        )
        await self._store.add_receipt(tuple(account), receipt)

    async def find(self, account: Sequence[str], request_id: str) -> app_pb2.PastRelease | None:
        """Return the result of an account's request with this id, None if there is none."""
        return await self._store.receipt(tuple(account), request_id)

    async def page(self, account: Sequence[str], most: int, before: int | None) -> Page:
        """Return at most `most` results of an account, older than the one at `before`."""
        page = await self._store.receipts(tuple(account), most, before)
        return Page(page.releases, page.after)

    async def close(self) -> None:
        """Do nothing: the store is closed by its owner."""


async def move_history(file: Path, store: ReleaseStore) -> None:
    """Move the results of an old history file into a release store, and remove the file.

    A move that was interrupted is made again from the start; nothing is listed twice.

    Args:
        file: A file that `history.History` wrote; nothing happens if there is none.
        store: Where the results are listed from now on.

    Raises:
        HistoryError: The file is not a history of this version, or cannot be read.
        ReleaseStoreFailed: The store cannot be written; the file is still there.
    """
    try:
        for account, entry in await asyncio.to_thread(_entries, file):
            past = app_pb2.PastRelease.FromString(entry)
            await store.add_receipt(account, Receipt(past, deduplication_key(past), ""))
        await asyncio.to_thread(_remove, file)
    except (OSError, sqlite3.Error) as error:
        raise HistoryError(f"{file}: {getattr(error, 'strerror', None) or error}") from None


def _remove(file: Path) -> None:
    for each in (file, *(file.with_name(file.name + suffix) for suffix in ("-wal", "-shm"))):
        each.unlink(missing_ok=True)


def _entries(file: Path) -> list[tuple[tuple[str, ...], bytes]]:
    """Return accounts and results, the oldest first."""
    if not file.exists():
        return []
    with closing(sqlite3.connect(file)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            raise HistoryError(
                f"{file}: a history of version {version}; this program knows version {VERSION}"
            )
        rows = connection.execute("SELECT account, entry FROM releases ORDER BY id").fetchall()
    return [(tuple(json.loads(account)), entry) for account, entry in rows]
