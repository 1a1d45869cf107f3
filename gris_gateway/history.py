"""The history as a view of the release store: what each account was shown, with the elements of what is kept."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

from gris_api.app.v1 import app_pb2

from pinot_connector.release_store import Receipt, ReceiptPage, ReleaseStore
from pinot_connector.release_store.receipts import without_elements

# What is listed of a result whose release is not kept has no more elements than this.
MAX_ELEMENT_BYTES = 3 * 2**20
MAX_NOTED = 10_000
DAY_SECONDS = 86_400


class History:
    """The history of all accounts, in a release store.

    Args:
        store: Keeps releases and receipts.
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

    async def page(self, account: Sequence[str], most: int, before: int | None) -> ReceiptPage:
        """Return at most `most` results of an account, older than the one at `before`."""
        return await self._store.receipts(tuple(account), most, before)


def deduplication_key(release: app_pb2.PastRelease) -> str:
    """Return a key that two results share if the second adds nothing to the first."""
    question, shown = release.question.SerializeToString(deterministic=True), release.result.shown
    return f"{shown.release_id}:{shown.confidence}:{hashlib.sha256(question).hexdigest()}"
