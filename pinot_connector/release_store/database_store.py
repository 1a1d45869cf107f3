"""A release store in a database, encrypted."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector import telemetry
from pinot_connector.errors import ReleaseStoreFailed
from pinot_connector.release_store import statements
from pinot_connector.release_store.database import Database, Execute
from pinot_connector.release_store.encryption import StoreKeys
from pinot_connector.release_store.interface import (
    KEPT_AFTER_WINDOW,
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
from pinot_connector.release_store.memory import wall_clock
from pinot_connector.release_store.opening import opened
from pinot_connector.release_store.receipts import MAX_PAGE_BYTES, ReceiptLimits, with_elements
from pinot_connector.release_store.retention import UNPAID_KEPT

# PostgreSQL writes so much in seconds, less than its time-out, and cannot return twice as much.
MAX_RELEASE_BYTES = 2**28
# What is kept never changes, so the last ones that were read need not be read again.
MAX_CACHED = 512
MAX_CACHED_BYTES = 2**20
# The share of the receipts that is removed at a time, because that scans all of them.
FREED_SHARE = 1 / 64

_NO_BEFORE = 2**63 - 1
_Answer = TypeVar("_Answer")


class DatabaseReleaseStore(ReleaseStore):
    """Keeps everything in a database, encrypted. It belongs to no event loop.

    Args:
        database: where; it is closed with the store.
        keys: the keys of the store.
        receipts: how many receipts are kept, for a program that adds some. None: the defaults, and opening the store
            removes none, which another program keeps.
        clock: returns microseconds since 1970 (UTC); decides only which receipts are kept.

    Raises:
        ReleaseStoreFailed: the database cannot be opened, holds something else, or was written with keys that are not
            given.
    """

    def __init__(
        self,
        database: Database,
        keys: StoreKeys,
        receipts: ReceiptLimits | None = None,
        clock: Callable[[], Microseconds] = wall_clock,
    ) -> None:
        self._database = database
        self._limits = receipts or ReceiptLimits()
        self._clock = clock
        self._threads = ThreadPoolExecutor(database.threads, "gris-release-store")
        self._lock = threading.Lock()
        self._cached: OrderedDict[str, KeptRelease] = OrderedDict()
        self._payments: OrderedDict[tuple[str, Account], Payment] = OrderedDict()
        self._closed = False
        try:
            self._cipher = self._threads.submit(opened, database, keys).result()
            if receipts is not None:
                self._threads.submit(database.run, self._remove_old_receipts).result()
            self._threads.submit(database.run, _remove_old).result()
        except BaseException:
            self._threads.submit(database.close).result()
            self._threads.shutdown()
            raise

    async def find(self, query_id: str, account: Account) -> Found | None:
        """Returns the release that is kept for a question, and what an account paid for it."""
        self._database.check()
        with self._lock:
            kept, payment = self._cached.get(query_id), self._payments.get((query_id, account))
        if kept is not None and payment is not None:
            return Found(kept, payment)
        found: Found | None = await self._run("find", lambda execute: self._find(execute, query_id, account))
        if found is not None:
            self._remember(query_id, account, found)
        return found

    async def keep(self, query_id: str, kept: KeptRelease) -> KeptRelease:
        """Keeps a release, unless one is kept for the question already.

        Raises:
            ReleaseStoreFailed: the database cannot be used, or the release has more than 256 MiB.
        """
        if kept.content.ByteSize() > MAX_RELEASE_BYTES:
            raise ReleaseStoreFailed(
                f"a release of more than {MAX_RELEASE_BYTES} bytes is not kept in a database"
            )
        return await self._run("keep", lambda execute: self._keep(execute, query_id, kept))

    async def mark_paid(self, query_id: str, account: Account, payment: Payment) -> None:
        """Notes that an account paid."""
        await self._run("mark paid", lambda execute: self._mark_paid(execute, query_id, account, payment))
        with self._lock:
            self._payments.pop((query_id, account), None)

    async def add_receipt(self, account: Account, receipt: Receipt) -> None:
        """Notes what an account was shown."""
        await self._run("add receipt", lambda execute: self._add_receipt(execute, account, receipt))

    async def receipt(self, account: Account, request_id: str) -> app_pb2.PastRelease | None:
        """Returns what an account was shown for a request."""
        return await self._run("receipt", lambda execute: self._receipt(execute, account, request_id))

    async def receipts(self, account: Account, most: int, before: int | None) -> ReceiptPage:
        """Returns what an account was shown, newest first."""
        return await self._run("receipts", lambda execute: self._receipts(execute, account, most, before))

    async def remove_old_receipts(self) -> None:
        """Removes every receipt whose days are over."""
        await self._run("remove old receipts", self._remove_old_receipts)

    async def statistics(self) -> StoreStatistics:
        """Returns how much is kept."""
        ((releases, unpaid),) = await self._run("statistics", lambda execute: execute(statements.COUNTS, {}))
        return StoreStatistics(releases, unpaid, await self._in_thread(self._database.size_bytes))

    async def close(self) -> None:
        """Closes the database once everything has been written."""
        if not self._closed:
            self._closed = True
            await self._in_thread(self._database.close)
            self._threads.shutdown()

    def close_now(self) -> None:
        """Closes the database once everything has been written, and blocks until then."""
        if not self._closed:
            self._closed = True
            try:
                closing = self._threads.submit(self._database.close)
            except RuntimeError:
                # The interpreter ends: it has waited for everything to be written, and the database ends with it.
                return
            closing.result()
            self._threads.shutdown()

    async def _run(self, step: str, work: Callable[[Execute], _Answer]) -> _Answer:
        with telemetry.release_store_call(step):
            answer: _Answer = await self._in_thread(lambda: self._database.run(work))
        return answer

    async def _in_thread(self, work: Callable[[], _Answer]) -> _Answer:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _find(self, execute: Execute, query_id: str, account: Account) -> Found | None:
        query, payer = self._query(query_id), self._account(account)
        rows = execute(statements.FIND, {"query": query, "account": payer})
        if not rows:
            return None
        ((key_id, is_fixed, content, payment_key_id, payment),) = rows
        kept = self._release(key_id, is_fixed, content, query)
        if payment is None:
            return Found(kept, None)
        window = self._cipher.decrypt(payment_key_id, bytes(payment), b"payment", query, payer)
        return Found(kept, Payment(*json.loads(window)))

    def _keep(self, execute: Execute, query_id: str, kept: KeptRelease) -> KeptRelease:
        query = self._query(query_id)
        values = {
            "query": query,
            "key_id": self._cipher.key_id,
            "noise_key_id": kept.key_id,
            "is_fixed": int(kept.version_is_fixed),
            "content": self._cipher.encrypt(kept.content.SerializeToString(), b"release", query),
        }
        execute(statements.KEEP, values)
        execute(statements.NOTE_NOISE_KEY, {"noise_key_id": kept.key_id})
        ((key_id, is_fixed, content, *_),) = execute(statements.FIND, {"query": query, "account": b""})
        return self._release(key_id, is_fixed, content, query)

    def _mark_paid(self, execute: Execute, query_id: str, account: Account, payment: Payment) -> None:
        query, payer = self._query(query_id), self._account(account)
        window = json.dumps([payment.window_start, payment.window_end]).encode()
        values = {
            "query": query,
            "account": payer,
            "key_id": self._cipher.key_id,
            "window_end": payment.window_end,
            "content": self._cipher.encrypt(window, b"payment", query, payer),
        }
        execute(statements.MARK_PAID, values)
        _advance(execute, payment.window_start)

    def _add_receipt(self, execute: Execute, account: Account, receipt: Receipt) -> None:
        owner, request_id = self._account(account), receipt.shown.request_id
        query = self._query(receipt.query_id) if receipt.query_id else None
        request = self._cipher.name("request", request_id) if request_id else None
        same = self._cipher.name("same", receipt.same)
        self._remove_old_receipts(execute)
        execute(statements.REMOVE_REPLACED, {"account": owner, "same": same, "request": request})
        values = {
            "account": owner,
            "query": query,
            "same": same,
            "request": request,
            "released_at": receipt.shown.released_at.ToMicroseconds(),
            "key_id": self._cipher.key_id,
            "content": self._cipher.encrypt(
                receipt.shown.SerializeToString(), b"receipt", owner, query or b""
            ),
        }
        execute(statements.ADD_RECEIPT, values)
        execute(statements.REMOVE_SURPLUS, {"account": owner, "most": self._limits.per_account})
        self._make_room(execute)

    def _remove_old_receipts(self, execute: Execute) -> None:
        execute(statements.REMOVE_OLD_RECEIPTS, {"oldest": self._oldest()})

    def _make_room(self, execute: Execute) -> None:
        ((kept,),) = execute(statements.RECEIPT_BYTES, {})
        room = self._limits.megabytes * 2**20
        if kept > room:
            execute(statements.MAKE_ROOM, {"missing": int(kept - room + FREED_SHARE * room)})

    def _receipt(self, execute: Execute, account: Account, request_id: str) -> app_pb2.PastRelease | None:
        if not request_id:
            return None
        owner, request = self._account(account), self._cipher.name("request", request_id)
        values = {"account": owner, "request": request, "oldest": self._oldest()}
        rows = execute(statements.RECEIPT, values)
        return self._result(owner, rows[0]) if rows else None

    def _receipts(self, execute: Execute, account: Account, most: int, before: int | None) -> ReceiptPage:
        owner = self._account(account)
        values = {
            "account": owner,
            "before": _NO_BEFORE if before is None else before,
            "oldest": self._oldest(),
            "most": most + 1,
        }
        found: list[app_pb2.PastRelease] = []
        last, size = 0, 0
        for row in execute(statements.RECEIPTS, values):
            result = self._result(owner, row)
            size += result.ByteSize()
            if len(found) == most or (found and size > MAX_PAGE_BYTES):
                return ReceiptPage(tuple(found), last)
            found.append(result)
            last = row[0]
        return ReceiptPage(tuple(found), None)

    def _result(self, owner: bytes, row: tuple[Any, ...]) -> app_pb2.PastRelease:
        _, key_id, content, query, release_key_id, is_fixed, release = row
        bound = b"" if query is None else bytes(query)
        shown = app_pb2.PastRelease.FromString(
            self._cipher.decrypt(key_id, bytes(content), b"receipt", owner, bound)
        )
        if query is None:
            return shown
        return with_elements(shown, self._release(release_key_id, is_fixed, release, bound))

    def _release(self, key_id: str, is_fixed: int, content: bytes, query: bytes) -> KeptRelease:
        decrypted = self._cipher.decrypt(key_id, bytes(content), b"release", query)
        return KeptRelease(dp_pb2.Kept.FromString(decrypted), bool(is_fixed))

    def _query(self, query_id: str) -> bytes:
        return self._cipher.name("query", query_id)

    def _account(self, account: Account) -> bytes:
        return self._cipher.name("account", json.dumps(list(account)))

    def _oldest(self) -> Microseconds:
        return self._limits.oldest(self._clock())

    def _remember(self, query_id: str, account: Account, found: Found) -> None:
        if found.payment is None or found.kept.content.ByteSize() > MAX_CACHED_BYTES:
            return
        with self._lock:
            self._cached[query_id] = found.kept
            self._payments[query_id, account] = found.payment
            for each in (self._cached, self._payments):
                while len(each) > MAX_CACHED:
                    each.popitem(last=False)


def _advance(execute: Execute, time: Microseconds) -> None:
    """Notes a time that the ledger has reported; if it is a later one, removes what no longer has to be kept."""
    if _ledger_time(execute) < time:
        execute(statements.ADVANCE, {"time": time})
        _remove_old(execute)


def _ledger_time(execute: Execute) -> Microseconds:
    ((time,),) = execute(statements.LEDGER_TIME, {})
    return int(time)


def _remove_old(execute: Execute) -> None:
    execute(statements.DATE_UNDATED, {})
    values = {"kept_after_window": KEPT_AFTER_WINDOW, "unpaid_kept": UNPAID_KEPT}
    execute(statements.REMOVE_RELEASES, values)
    execute(statements.REMOVE_PAYMENTS, {})
