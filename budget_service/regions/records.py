"""What a region must not forget: its leases, how far it has reported, and what it has of each budget.

Each change is on the disk before anything depends on it. What is written together is written in one transaction.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec
from msgspec import Struct

from budget_service.ledger.values import Account
from budget_service.ledger.windows import Microseconds
from budget_service.regions.lease import Lease, LeaseState, RegionTotal
from budget_service.stores.interface import StoreUnavailableError, StoreUnusableError
from budget_service.stores.sqlite.file import secure

# A kind of record, and its name.
Key: TypeAlias = tuple[str, str]
Rows: TypeAlias = Mapping[Key, bytes | None]

LEASE, ROOT, OWN, PAID, REGION = "lease", "root", "own", "paid", "region"
_FORM = "2"
# So many earlier starts are named to the home at most: the last one that it has answered, and those since.
MAX_BEFORE = 32


class RecordStorage(Protocol):
    """Keeps rows."""

    async def read(self) -> dict[Key, bytes]:
        """Return all rows."""

    async def write(self, rows: Rows) -> None:
        """Write rows, or remove those with None, all or nothing. Raises StoreUnavailableError."""

    async def close(self) -> None:
        """Close the file."""


class PaidAtHome(Struct, frozen=True):
    """A question or release that this region's callers paid for at the home, in a window that ends then."""

    window_start: int
    window_end: int | None


class RegionRecords:
    """The records of a region, in memory and in their storage.

    `instance` names this start of the ledger; `before` are the starts before it that the home may have heard of last.
    """

    def __init__(self, storage: RecordStorage) -> None:
        self._storage = storage
        self._lock = asyncio.Lock()
        self.instance = ""
        self.before: tuple[str, ...] = ()
        self._is_acknowledged = False
        self.leases: dict[str, Lease] = {}
        self.positions: dict[str, str] = {}
        self.own: dict[Account, RegionTotal] = {}
        self.paid: dict[str, PaidAtHome] = {}

    @staticmethod
    async def opened(
        storage: RecordStorage, region: str, draw: Callable[[], str] = lambda: secrets.token_hex(16)
    ) -> RegionRecords:
        """Read a region's records, and name this start. Raises StoreUnusableError if it is another region's."""
        records = RegionRecords(storage)
        rows = await storage.read()
        earlier = rows.pop((REGION, "starts"), b"").decode().split()
        records.before = (*earlier[:1], *earlier[1:][1 - MAX_BEFORE :])
        records.instance = draw()
        owner = rows.pop((REGION, "name"), region.encode()).decode()
        form = rows.pop((REGION, "form"), _FORM.encode()).decode()
        if owner != region:
            raise StoreUnusableError(
                f"the leases in the region's lease file are those of {owner!r}, not of {region!r}"
            )
        if form != _FORM:
            raise StoreUnusableError("the region's lease file was written by another version")
        head = {"name": region, "form": _FORM, "starts": " ".join((*records.before, records.instance))}
        await storage.write({(REGION, name): value.encode() for name, value in head.items()})
        for (kind, name), value in rows.items():
            records._take(kind, name, value)
        return records

    async def acknowledge(self) -> None:
        """Note that the home has heard of this start: the next one follows it, and none before. Raises StoreError."""
        if not self._is_acknowledged:
            await self._storage.write({(REGION, "starts"): self.instance.encode()})
            self._is_acknowledged = True

    def _take(self, kind: str, name: str, value: bytes) -> None:
        if kind == LEASE:
            self.leases[name] = msgspec.json.decode(value, type=Lease)
        elif kind == ROOT:
            self.positions[name] = value.decode()
        elif kind == OWN:
            self.own[Account.of_text(name)] = msgspec.json.decode(value, type=RegionTotal)
        elif kind == PAID:
            self.paid[name] = msgspec.json.decode(value, type=PaidAtHome)

    async def note(
        self,
        *leases: Lease,
        gone: tuple[str, ...] = (),
        own: Mapping[Account, Callable[[RegionTotal], RegionTotal]] | None = None,
        positions: Mapping[str, str] | None = None,
        paid: Mapping[str, PaidAtHome] | None = None,
    ) -> None:
        """Write what has changed, then take it into memory; without an error it is on the disk.

        What is had of budgets is given as changes, since others may change it meanwhile.
        """
        async with self._lock:
            had = {each: change(self.own.get(each, RegionTotal())) for each, change in (own or {}).items()}
            rows: dict[Key, bytes | None] = {
                (LEASE, each.lease_id): msgspec.json.encode(self._never_granted_again(each))
                for each in leases
            }
            rows |= {(LEASE, each): None for each in gone}
            rows |= {(OWN, each.text): msgspec.json.encode(value) for each, value in had.items()}
            rows |= {(ROOT, root): position.encode() for root, position in (positions or {}).items()}
            rows |= {(PAID, name): msgspec.json.encode(value) for name, value in (paid or {}).items()}
            await self._storage.write(rows)
            self.leases |= {each.lease_id: self._never_granted_again(each) for each in leases}
            for each in gone:
                self.leases.pop(each, None)
            self.own |= had
            self.positions |= positions or {}
            self.paid |= paid or {}

    async def forget(self, before: Microseconds, most: int = 1000) -> None:
        """Remove some of what counts no more: what was paid for, and had, in windows that ended before a time."""
        async with self._lock:
            lent = {each.account for each in self.leases.values()}
            paid = [name for name, each in self.paid.items() if _has_ended(each.window_end, before)][:most]
            over = [
                account
                for account, each in self.own.items()
                if _has_ended(each.window_end, before) and account not in lent
            ][:most]
            if not paid and not over:
                return
            rows: dict[Key, bytes | None] = {(PAID, each): None for each in paid}
            await self._storage.write(rows | {(OWN, each.text): None for each in over})
            for name in paid:
                del self.paid[name]
            for account in over:
                del self.own[account]

    def _never_granted_again(self, lease: Lease) -> Lease:
        """Return a lease that is to be written: one that was retired meanwhile stays so."""
        known = self.leases.get(lease.lease_id)
        is_retired = known is not None and known.state is LeaseState.RETIRING
        return lease.retired() if is_retired else lease

    async def close(self) -> None:
        """Close the file."""
        await self._storage.close()


def _has_ended(end: Microseconds | None, before: Microseconds) -> bool:
    return end is not None and end < before


class SqliteRecordStorage:
    """Rows in a SQLite file of their own, beside the region's ledger."""

    def __init__(self, path: Path) -> None:
        secure(path)
        try:
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS kept "
                "(kind TEXT, name TEXT, value BLOB, PRIMARY KEY (kind, name)) WITHOUT ROWID"
            )
        except sqlite3.Error as error:
            raise StoreUnusableError(f"the region's lease file {path} cannot be used: {error}") from None

    async def read(self) -> dict[Key, bytes]:
        """Return all rows."""
        try:
            found = self._connection.execute("SELECT kind, name, value FROM kept").fetchall()
        except sqlite3.Error as error:
            raise StoreUnavailableError(f"the region's lease file cannot be read: {error}") from None
        return {(kind, name): value for kind, name, value in found}

    async def write(self, rows: Rows) -> None:
        """Write rows in a thread: a commit waits for the disk."""
        task = asyncio.ensure_future(asyncio.to_thread(self._write, rows))
        # A caller that leaves must not leave half a change in memory.
        await asyncio.shield(task)

    async def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _write(self, rows: Rows) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for key, value in rows.items():
                if value is None:
                    self._connection.execute("DELETE FROM kept WHERE kind = ? AND name = ?", key)
                else:
                    self._connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", (*key, value))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise StoreUnavailableError(f"the region's lease file cannot be written: {error}") from None
