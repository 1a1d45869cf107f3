"""The etcd store: it keeps the ledger's rows in a cluster of three or five members; the service decides.

A charge that was answered is on the disks of the majority of members, and outlives the loss of any minority. etcd has
no time to offer, so that it is this machine's, compared with the members'.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aetcd.rpc import rpc_pb2
from msgspec import json

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.limits import AppliedLimits, StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.requests import Request
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, LevelLimit
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import Microseconds
from budget_service.stores.etcd import audit
from budget_service.stores.etcd import encoding as text
from budget_service.stores.etcd.address import parse_address
from budget_service.stores.etcd.clocks import ClockGuard
from budget_service.stores.etcd.layout import Layout, end_of
from budget_service.stores.etcd.loading import Loader, Snapshot
from budget_service.stores.etcd.members import NO_SPACE, Members, put, range_between, range_of, unchanged
from budget_service.stores.etcd.pending import RootAccess
from budget_service.stores.etcd.purge import Purge
from budget_service.stores.etcd.transaction import EtcdTransaction
from budget_service.stores.interface import (
    BalancePage,
    Clock,
    Committed,
    GroupedEntries,
    MatchingEntries,
    OutcomeUnknownError,
    StoreError,
    StoreUnavailableError,
    StoreUnusableError,
    count,
    system_clock,
    uncounted,
    ungrouped_entries,
    unmatched_entries,
)
from budget_service.stores.ledger_engine import LedgerEngine
from budget_service.stores.mark_file import Position
from budget_service.stores.remote_rollback_guard import Count, RollbackGuard
from budget_service.stores.transactions import Changes, Loaded, RootKey, Wanted
from budget_service.tuning import DEFAULTS, Tuning

SCHEMA = 1
# A charge changes six keys, mostly, and no request more than twelve: mostly all of a batch fits into a transaction.
MAX_TOGETHER = 16
# What lapses is ended a little at a time, since all of it is written in one request to etcd.
MOST_EXPIRED_AT_ONCE = 100
# Of so many roots and reservations it is remembered what saves a round trip.
KEPT = 20_000
MAX_ATTEMPTS = 16
ROOTS_TOGETHER = 100

log = logging.getLogger(__name__)


class EtcdStore:
    """A Store in etcd. Nothing that may have had an effect is tried twice behind the caller's back.

    `clock` replaces this machine's time, for tests; then it is compared with no other unless `compares_clock`.
    """

    def __init__(
        self, address: str, *, clock: Clock | None, compares_clock: bool, committed: Committed, tuning: Tuning
    ) -> None:
        parsed = parse_address(address)
        self._clock = clock or system_clock
        self._clocks = ClockGuard(parsed, self._clock) if compares_clock else None
        self._layout = Layout(parsed.prefix)
        self._members = Members(parsed, tuning)
        most_due = min(tuning.expired_at_once, MOST_EXPIRED_AT_ONCE)
        self._loader = Loader(self._members, self._layout, most_due)
        self._purge = Purge(self._members, self._layout, _steady())
        self._committed = committed
        self._engine = LedgerEngine(self, by_root=True, most=MAX_TOGETHER, committed=self._count_commit)
        self._guard: RollbackGuard | None = None
        self._tending: asyncio.Task[None] | None = None
        # How far the time of a root was ahead of the clock, and the questions of reservations, as last seen.
        self._ahead: dict[str, Microseconds] = {}
        self._questions: dict[RootKey, str] = {}

    @staticmethod
    def require_readable(address: str) -> None:
        """Return if an address can be read. Raises StoreUnusableError, which shows no part of it."""
        parse_address(address)

    @staticmethod
    async def open(
        address: str,
        *,
        allow_volatile: bool = False,
        clock: Clock | None = None,
        compares_clock: bool | None = None,
        mark: Path | None = None,
        committed: Committed = uncounted,
        tuning: Tuning = DEFAULTS,
    ) -> EtcdStore:
        """Connect, check clock and alarms, and make the ledger if it is missing.

        The ledger must not be behind its high-water mark in the file `mark`. etcd has no setting that would lose
        charges, so that there is nothing to allow.

        Raises StoreUnavailableError or StoreUnusableError.
        """
        compares = clock is None if compares_clock is None else compares_clock
        store = EtcdStore(address, clock=clock, compares_clock=compares, committed=committed, tuning=tuning)
        try:
            await store._members.require_version()
            if store._clocks is not None:
                await store._clocks.begin()
            await store._install()
            await store._require_no_alarm()
            if mark is not None:
                guard = RollbackGuard(mark, store._count)
                await guard.begin()
                store._guard = guard
            store._tending = asyncio.create_task(store._tend())
        except BaseException:
            await store.close()
            raise
        return store

    async def apply(self, request: Request, limits: AppliedLimits) -> Answer:
        """Decide a request and write the change in one transaction; see `Store`."""
        if self._guard is not None:
            self._guard.charged()
        return await self._engine.apply(request, limits)

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> AccountStatement:
        """Return the state of an account now; see `Store`."""
        return await self._engine.read(account, levels)

    async def load(self, wanted: Wanted) -> Loaded:
        """Return what is wanted as it is now; see `Transactions`."""
        return (await self._snapshot(wanted)).loaded

    @asynccontextmanager
    async def transaction(self, wanted: Wanted) -> AsyncIterator[EtcdTransaction]:
        """Load, and remember the revision of what was loaded; see `Transactions`."""
        (root,) = wanted.roots
        snapshot = await self._snapshot(wanted)
        yield EtcdTransaction(self._at(root), snapshot, self._note)

    async def limits(self, account: Account) -> StoredLimits:
        """Return the stored limits of the levels of an account; see `Store`."""
        return await audit.load_limits(self._at(account.root), account.levels)

    async def all_limits(self, root: str) -> StoredLimits:
        """Return all stored limits of a root; see `Store`."""
        return await audit.load_limits(self._at(root), None)

    async def roots(self) -> list[str]:
        """Return every root that was ever used; see `Store`."""
        return await audit.load_roots(self._members, self._layout)

    async def journal(self, root: str, after: str, until: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return entries of a root; see `Store`."""
        return await audit.load_journal(self._at(root), after, until, most)

    async def matching(self, levels: Sequence[Account], after: str, most: int) -> MatchingEntries:
        """Return entries of the root of some levels; see `Store`."""
        return unmatched_entries(await self.journal(levels[0].root, after, "", most), most)

    async def latest(self, root: str, before: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return the newest entries of a root; see `Store`."""
        return await audit.load_latest(self._at(root), before, most)

    async def grouped_entries(
        self, account: Account, before: str, checkpointed: str, most: int
    ) -> GroupedEntries:
        """Return the newest entries of a root one by one; see `Store`."""
        return ungrouped_entries(await self.latest(account.root, before, most), checkpointed, most)

    async def balances(self, root: str, after: str, most: int) -> BalancePage:
        """Return balances of a root; see `Store`."""
        return await audit.load_balances(self._at(root), after, most)

    async def checkpoint(self, root: str, _levels: Sequence[Account] | None = None) -> Checkpoint:
        """Return the checkpoint of a root's journal; see `Store`."""
        return await audit.load_checkpoint(self._at(root))

    async def write_checkpoint(self, root: str, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint; see `Store`."""
        await audit.write_checkpoint(self._at(root), checkpoint)

    async def drop_checkpointed(self, root: str, most: int) -> int:
        """Remove the oldest entries that the checkpoint covers; see `Store`."""
        return await audit.drop_checkpointed(self._at(root), most)

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the query_id of an open reservation; see `Store`."""
        at = self._at(account.root)
        (rows,) = (await at.read([range_of(at.keys.reservation(reservation_id))])).found.ranges
        for each in rows:
            reservation = text.read_reservation(each.key, each.value)
            if reservation.account == account:
                return reservation.query_id
        return None

    async def open_reservations(self, roots: Sequence[str]) -> int:
        """Return how many reservations are open; see `Store`."""
        total = 0
        for start in range(0, len(roots), ROOTS_TOGETHER):
            asked = []
            for root in roots[start : start + ROOTS_TOGETHER]:
                keys = self._layout.of(root)
                lapsed = keys.due(self._guess(root, self._now()) + 1)
                asked.append(range_between(lapsed, end_of(keys.dues), count_only=True))
            total += sum((await self._members.read(asked)).counts)
        return total

    async def check(self) -> None:
        """Return if etcd answers for the majority, has room, and the clocks agree."""
        if self._clocks is not None:
            self._clocks.require_agreement()
        await self._record()
        await self._require_no_alarm()
        if self._guard is not None:
            await self._guard.check()
        await self.ping()

    async def confirm(self, mark: Path) -> None:
        """Write a new high-water mark for a restored ledger. Raises StoreError."""
        await RollbackGuard(mark, self._count).confirm()

    async def renew_mark(self, mark: Path, stated: Position) -> None:
        """Write a lost high-water mark anew, if the ledger stands exactly there. Raises StoreError."""
        await RollbackGuard(mark, self._count).renew(stated)

    async def ping(self) -> None:
        """Return as soon as any member answers for the majority; see `Store`."""
        await self._members.ping(self._layout.ledger)

    async def close(self) -> None:
        """Finish what was begun and close every connection."""
        await self._engine.finish()
        if self._guard is not None:
            self._guard.end()
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.gather(self._tending, return_exceptions=True)
        if self._clocks is not None:
            await self._clocks.close()
        await self._members.close()

    async def _snapshot(self, wanted: Wanted) -> Snapshot:
        (root,) = wanted.roots
        clock = self._now()
        found = await self._loader.load(wanted, clock, self._guess(root, clock), self._questions)
        ahead = found.root.record.now(clock) - clock
        if ahead:
            if len(self._ahead) >= KEPT:
                self._ahead.clear()
            self._ahead[root] = ahead
        else:
            self._ahead.pop(root, None)
        return found

    def _at(self, root: str) -> RootAccess:
        return RootAccess(self._members, self._layout, root)

    def _guess(self, root: str, clock: Microseconds) -> Microseconds:
        """Return what the root's time is, unless that has changed since it was seen."""
        return clock + self._ahead.get(root, 0)

    def _note(self, changes: Changes) -> None:
        """Remember the questions of new reservations, which are mostly settled here."""
        for key, reservation in changes.reservations.items():
            if reservation is None:
                self._questions.pop(key, None)
                continue
            if len(self._questions) >= KEPT:
                self._questions.clear()
            self._questions[key] = reservation.query_id

    def _now(self) -> Microseconds:
        return self._clock() if self._clocks is None else self._clocks.now()

    def _count_commit(self, requests: int, seconds: float) -> None:
        self._purge.note(requests)
        count(self._committed, requests, seconds)

    async def _install(self) -> None:
        record = {"schema": SCHEMA, "ledger_id": secrets.token_hex(16), "count": 0}
        at = self._layout.ledger
        try:
            await self._members.ping(at)
            await self._members.write(
                rpc_pb2.TxnRequest(compare=[unchanged(at, 0)], success=[put(at, json.encode(record))])
            )
        except OutcomeUnknownError as error:
            raise StoreUnavailableError(str(error)) from None
        await self._record()

    async def _record(self) -> tuple[dict[str, Any], int]:
        """Return the record of the ledger and its revision. Raises StoreError."""
        (rows,) = (await self._members.read([range_of(self._layout.ledger)])).ranges
        if not rows:
            raise StoreUnusableError("the ledger in this etcd is gone: somebody has removed its keys")
        record = _read_record(rows[0].value)
        if record["schema"] > SCHEMA:
            raise StoreUnusableError(
                f"this etcd has schema {record['schema']}, newer than this program's {SCHEMA}"
            )
        return record, rows[0].mod_revision

    async def _count(self, step: int) -> Count:
        """Add to the count of the ledger and return it."""
        for _ in range(MAX_ATTEMPTS):
            record, revision = await self._record()
            record["count"] += step
            if not step:
                return Count(record["ledger_id"], record["count"])
            at = self._layout.ledger
            try:
                answer = await self._members.write(
                    rpc_pb2.TxnRequest(
                        compare=[unchanged(at, revision)], success=[put(at, json.encode(record))]
                    )
                )
            except OutcomeUnknownError as error:
                raise StoreUnavailableError(str(error)) from None
            if answer.succeeded:
                return Count(record["ledger_id"], record["count"])
        raise StoreUnavailableError("others were quicker each time")

    async def _require_no_alarm(self) -> None:
        alarms = await self._members.alarms()
        if rpc_pb2.AlarmType.Value("NOSPACE") in alarms:
            raise StoreUnavailableError(NO_SPACE)
        if alarms:
            raise StoreUnusableError("etcd has raised the alarm CORRUPT: a member differs from the others")

    async def _tend(self) -> None:
        """Keep the database small, until cancelled."""
        while True:
            await asyncio.sleep(1)
            try:
                await self._purge.go_on(_steady())
            except StoreError as error:
                fields = {"problem": str(error)}
                log.info("Nothing could be purged.", extra={"event": "store.not_purged", "fields": fields})


def _read_record(value: bytes) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.decode(value)
        return {
            "schema": int(record["schema"]),
            "ledger_id": str(record["ledger_id"]),
            "count": int(record["count"]),
        }
    except (ValueError, TypeError, LookupError):
        raise StoreUnusableError("the record of the ledger in this etcd cannot be read") from None


def _steady() -> float:
    return time.monotonic()
