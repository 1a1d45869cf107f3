"""Keeps the database small: removes answers and payments that are out of date, and the history of keys.

They are out of date by the time recorded for their own root: that never goes back, so nobody who decides by it needs
them. A removal compares the row's own revision, so that a new one under the same key stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aetcd.rpc import rpc_pb2

from budget_service.ledger.windows import Microseconds
from budget_service.stores.etcd import encoding as text
from budget_service.stores.etcd.layout import Keys, Layout, end_of
from budget_service.stores.etcd.members import Members, delete, range_between, range_of, unchanged

# Faster than they come.
PURGED_PER_REQUEST = 4
PAGE = 100
MOST_PAGES = 20
# Between two passes over the ledger.
REST_SECONDS = 3600.0
# So much later than it was seen, a revision is forgotten: readings of several pages are long over by then.
COMPACT_SECONDS = 60.0


@dataclass(slots=True)
class _Place:
    """Where the next page begins: a root, one of its two tables, and the key after which to go on."""

    root: str = ""
    last_time: Microseconds = 0
    tables: tuple[bytes, ...] = ()
    after: bytes = b""


class Purge:
    """Goes through the ledger, as far at a time as requests have come in between; rests, and begins again."""

    def __init__(self, members: Members, layout: Layout, now: float) -> None:
        self._members = members
        self._layout = layout
        self._requests = 0
        self._place: _Place | None = _Place()
        self._rests_until = now
        self._compacts_at = now + COMPACT_SECONDS
        self._revision = 0

    def note(self, requests: int) -> None:
        """Count requests that were decided."""
        self._requests += requests

    async def go_on(self, now: float) -> None:
        """Remove some, and forget history that is old enough. Raises StoreError."""
        pages = min(-(-self._requests * PURGED_PER_REQUEST // PAGE), MOST_PAGES)
        self._requests = 0
        if self._place is None and now >= self._rests_until:
            self._place = _Place()
        for _ in range(pages):
            if self._place is None:
                break
            await self._take_page(self._place, now)
        if now >= self._compacts_at:
            await self._compact()
            self._compacts_at = now + COMPACT_SECONDS

    async def _take_page(self, place: _Place, now: float) -> None:
        if not place.tables and not await self._next_root(place):
            self._place = None
            self._rests_until = now + REST_SECONDS
            return
        table = place.tables[0]
        first = place.after or table
        found = await self._members.read([range_between(first, end_of(table), limit=PAGE)])
        (rows,) = found.ranges
        over = [each for each in rows if self._is_over(each, place.last_time)]
        if over:
            # A row that was written anew meanwhile is left to the next pass, with those beside it.
            await self._members.write(
                rpc_pb2.TxnRequest(
                    compare=[unchanged(each.key, each.mod_revision) for each in over],
                    success=[delete(each.key) for each in over],
                )
            )
        place.after = rows[-1].key + b"\0" if rows else b""
        if len(rows) < PAGE:
            place.tables, place.after = place.tables[1:], b""

    @staticmethod
    def _is_over(row: Any, last_time: Microseconds) -> bool:
        until = text.kept_until(row.key, row.value)
        return until is not None and until <= last_time

    async def _next_root(self, place: _Place) -> bool:
        roots = self._layout.roots
        first = self._layout.root(place.root) + b"\0" if place.root else roots
        (records,) = (await self._members.read([range_between(first, end_of(roots), limit=1)])).ranges
        if not records:
            return False
        (record,) = records
        place.root = record.key[len(roots) :].decode()
        place.last_time = text.read_root(record.key, record.value).record.last_time
        keys: Keys = self._layout.of(place.root)
        place.tables = (keys.outcomes, keys.payments)
        return True

    async def _compact(self) -> None:
        seen = self._revision
        self._revision = (await self._members.read([range_of(self._layout.ledger)])).revision
        if seen:
            await self._members.compact(seen)
