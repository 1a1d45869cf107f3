"""A release store in the memory of a process: what it keeps is lost when the process ends."""

from __future__ import annotations

import heapq
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gris_api.app.v1 import app_pb2

from pinot_connector.release_store.interface import (
    Account,
    Found,
    KeptRelease,
    Microseconds,
    Payment,
    Receipt,
    ReceiptPage,
    ReleaseStore,
    StoreStatistics,
)
from pinot_connector.release_store.receipts import MAX_PAGE_BYTES, ReceiptLimits, with_elements
from pinot_connector.release_store.retention import is_removable, later

# As many receipts as this are forgotten at once.
_FORGOTTEN = 100


def wall_clock() -> Microseconds:
    """Returns the time."""
    return time.time_ns() // 1000


@dataclass
class _Entry:
    kept: KeptRelease
    written_at: Microseconds
    payments: dict[Account, Payment] = field(default_factory=dict)


class _Receipts:
    """The receipts of one account by position, the oldest first; none is looked at when another is added or removed."""

    def __init__(self) -> None:
        self.held: OrderedDict[int, Receipt] = OrderedDict()
        self.size = 0
        self._positions: dict[tuple[str, str], int] = {}
        # Also of receipts that are no longer held, of which there are never many.
        self._times: list[tuple[Microseconds, int]] = []

    def add(self, position: int, receipt: Receipt) -> None:
        """Adds a receipt, in place of that of the same call, and of the same result without a request."""
        request_id = receipt.shown.request_id
        for key in {_key(request_id, receipt.same), ("", receipt.same)}:
            if key in self._positions:
                self.drop(self._positions[key])
        self.held[position] = receipt
        self.size += _size(receipt)
        self._positions[_key(request_id, receipt.same)] = position
        heapq.heappush(self._times, (_time(receipt), position))
        if len(self._times) > 2 * len(self.held) + _FORGOTTEN:
            self._times = sorted((_time(each), at) for at, each in self.held.items())

    def drop(self, position: int) -> None:
        """Removes a receipt."""
        receipt = self.held.pop(position)
        self.size -= _size(receipt)
        del self._positions[_key(receipt.shown.request_id, receipt.same)]

    def drop_oldest(self) -> None:
        """Removes the receipt that was added first."""
        self.drop(next(iter(self.held)))

    def drop_before(self, oldest: Microseconds) -> None:
        """Removes what was shown before a time."""
        while self._times and (self._times[0][0] < oldest or self._times[0][1] not in self.held):
            position = heapq.heappop(self._times)[1]
            if position in self.held:
                self.drop(position)

    def of_request(self, request_id: str) -> Receipt | None:
        """Returns what was shown for a request."""
        position = self._positions.get(_key(request_id, "")) if request_id else None
        return None if position is None else self.held[position]

    def newest_first(self, before: int | None) -> Iterator[tuple[int, Receipt]]:
        """Yields receipts with their positions, from before one of them."""
        yield from ((at, each) for at, each in reversed(self.held.items()) if before is None or at < before)


class MemoryReleaseStore(ReleaseStore):
    """Keeps everything in memory. Clients in any threads and event loops may share it.

    Args:
        receipts: How many receipts are kept.
        clock: Returns microseconds since 1970 (UTC); decides only which receipts are kept.
    """

    def __init__(
        self, receipts: ReceiptLimits | None = None, clock: Callable[[], Microseconds] = wall_clock
    ) -> None:
        self._limits = receipts or ReceiptLimits()
        self._clock = clock
        # Nothing waits while it is held.
        self._lock = threading.RLock()
        self._releases: dict[str, _Entry] = {}
        self._receipts: dict[Account, _Receipts] = {}
        self._release_bytes = 0
        self._receipt_bytes = 0
        self._positions = 0
        # The start of the latest window that the ledger has reported: it alone decides which releases are removed.
        self._ledger_time: Microseconds = 0
        self._last_key_id = ""

    async def find(self, query_id: str, account: Account) -> Found | None:
        """Returns the release that is kept for a question, and what an account paid for it."""
        with self._lock:
            entry = self._releases.get(query_id)
            return None if entry is None else Found(entry.kept, entry.payments.get(account))

    async def keep(self, query_id: str, kept: KeptRelease) -> KeptRelease:
        """Keeps a release, unless one is kept for the question already."""
        with self._lock:
            entry = self._releases.get(query_id)
            if entry is None:
                entry = self._releases[query_id] = _Entry(kept, self._ledger_time)
                self._release_bytes += kept.content.ByteSize()
                self._last_key_id = kept.key_id
            return entry.kept

    async def mark_paid(self, query_id: str, account: Account, payment: Payment) -> None:
        """Notes that an account paid."""
        with self._lock:
            entry = self._releases.get(query_id)
            if entry is not None:
                entry.payments[account] = later(entry.payments.get(account), payment)
            if payment.window_start > self._ledger_time:
                self._ledger_time = payment.window_start
                self._remove_old()

    async def add_receipt(self, account: Account, receipt: Receipt) -> None:
        """Notes what an account was shown."""
        with self._lock:
            receipts = self._receipts.setdefault(account, _Receipts())
            before = receipts.size
            receipts.drop_before(self._limits.oldest(self._clock()))
            self._positions += 1
            receipts.add(self._positions, receipt)
            while len(receipts.held) > self._limits.per_account:
                receipts.drop_oldest()
            self._receipt_bytes += receipts.size - before
            while self._receipt_bytes > self._limits.megabytes * 2**20:
                most = max(self._receipts.values(), key=lambda each: each.size)
                self._receipt_bytes -= most.size
                most.drop_oldest()
                self._receipt_bytes += most.size

    async def receipt(self, account: Account, request_id: str) -> app_pb2.PastRelease | None:
        """Returns what an account was shown for a request."""
        with self._lock:
            found = self._receipts.get(account, _Receipts()).of_request(request_id)
            is_listed = found is not None and _time(found) >= self._limits.oldest(self._clock())
            return self._result(found) if found is not None and is_listed else None

    async def receipts(self, account: Account, most: int, before: int | None) -> ReceiptPage:
        """Returns what an account was shown, newest first."""
        with self._lock:
            found: list[app_pb2.PastRelease] = []
            last, size, oldest = 0, 0, self._limits.oldest(self._clock())
            for position, each in self._receipts.get(account, _Receipts()).newest_first(before):
                if _time(each) < oldest:
                    continue
                result = self._result(each)
                size += result.ByteSize()
                if len(found) == most or (found and size > MAX_PAGE_BYTES):
                    return ReceiptPage(tuple(found), last)
                found.append(result)
                last = position
            return ReceiptPage(tuple(found), None)

    async def remove_old_receipts(self) -> None:
        """Removes every receipt whose days are over."""
        with self._lock:
            oldest = self._limits.oldest(self._clock())
            for account, receipts in list(self._receipts.items()):
                self._receipt_bytes -= receipts.size
                receipts.drop_before(oldest)
                self._receipt_bytes += receipts.size
                if not receipts.held:
                    del self._receipts[account]

    async def statistics(self) -> StoreStatistics:
        """Returns how much is kept."""
        with self._lock:
            unpaid = sum(not entry.payments for entry in self._releases.values())
            return StoreStatistics(len(self._releases), unpaid, self._release_bytes + self._receipt_bytes)

    async def close(self) -> None:
        """Does nothing: what was kept stays until the process ends."""

    def close_now(self) -> None:
        """Does nothing, as `close`."""

    def _result(self, receipt: Receipt) -> app_pb2.PastRelease:
        if not receipt.query_id:
            return receipt.shown
        entry = self._releases.get(receipt.query_id)
        return with_elements(receipt.shown, None if entry is None else entry.kept)

    def _remove_old(self) -> None:
        listed = {each.query_id for account in self._receipts.values() for each in account.held.values()}
        for query_id, entry in list(self._releases.items()):
            entry.written_at = entry.written_at or self._ledger_time
            in_use = entry.kept.version_is_fixed and entry.kept.key_id == self._last_key_id
            if query_id not in listed and is_removable(
                self._ledger_time, entry.written_at, entry.payments.values(), can_be_asked_about=in_use
            ):
                self._release_bytes -= self._releases.pop(query_id).kept.content.ByteSize()


def _key(request_id: str, same: str) -> tuple[str, str]:
    """Returns what only one receipt of an account has: its request, or without one its result."""
    return (request_id, "" if request_id else same)


def _time(receipt: Receipt) -> Microseconds:
    return receipt.shown.released_at.ToMicroseconds()


def _size(receipt: Receipt) -> int:
    return receipt.shown.ByteSize()
