"""The interface of a store, on one screen."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from budget_service.internal_errors import log_internal_error
from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.act import Act
from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.base import Base
from budget_service.ledger.block_sums import BlocksRow
from budget_service.ledger.limits import AppliedLimits, StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.state import JournalEntry, Reservation, RootRecord
from budget_service.ledger.values import Account, LevelLimit
from budget_service.ledger.windows import Microseconds

Clock: TypeAlias = Callable[[], Microseconds]
# Called after every commit, with its number of requests, its duration in seconds, and for how long the time of each
# root that it was about stands still.
Committed: TypeAlias = Callable[[int, float, Mapping[str, Microseconds]], None]


class StoreError(Exception):
    """The store failed.

    StoreError
    ├── StoreUnavailableError     nothing was changed
    │   └── StoreDamagedError     what the store holds cannot be read
    ├── OutcomeUnknownError       something may have been changed: retry with the same request id
    ├── BackupFailedError         a copy of the ledger could not be written
    └── StoreUnusableError        the store must not be used as it is; only raised when it is opened or checked
    """


class StoreUnavailableError(StoreError):
    """The store did not take the request; it had no effect."""


class StoreDamagedError(StoreUnavailableError):
    """A row that the store holds cannot be read, so the request had no effect.

    The text names the table alone: the key of a row is the name of an account, and concerns administrators only.

    Attributes:
        table: The table, or whatever the store has in its place; empty if it is not known.
        key: The key of the row; empty if the damage is that of the whole file.
    """

    def __init__(self, table: str, key: str, problem: str = "") -> None:
        super().__init__(f"the ledger is damaged{table and f', in {table}'}{problem and f': {problem}'}")
        self.table = table
        self.key = key

    @property
    def is_everywhere(self) -> bool:
        """Whether the damage may concern every account."""
        return not self.key


class OutcomeUnknownError(StoreError):
    """The store took the request and gave no answer. A retry with the same request id gets the answer."""


class BackupFailedError(StoreError):
    """A backup could not be written; the ledger is as it was."""


class StoreUnusableError(StoreError):
    """The store would break the ledger's promises: another owner, another schema, no persistence."""


def require_schema(ledger: str, found: int, own: int) -> None:
    """Return if a ledger, as an error names it, has this program's schema. Raises StoreUnusableError."""
    if found != own:
        raise StoreUnusableError(f"{ledger} has schema {found}, and this program knows schema {own} only")


@dataclass(frozen=True, slots=True)
class BalancePage:
    """Some balances of a root, its record, its open reservations and its journal's last position, all at one time.

    After the first page, reservations that hold on none of these balances may be missing. `past` are the past days of
    these balances, and `rows` those of the blocks of their levels. `after` leads to the next page, and is empty after
    the last one. A page may contain balances of an earlier one. `clock` is the store's, no earlier than the rest.
    """

    position: str
    root: RootRecord
    clock: Microseconds
    balances: tuple[tuple[Account, Balance], ...]
    past: Mapping[Account, Sequence[PastDay]]
    rows: Mapping[Account, BlocksRow | None]
    reservations: tuple[Reservation, ...]
    after: str

    @property
    def unexplained_time(self) -> Microseconds:
        """The last time of the root if the store's clock has not reached it, else 0."""
        return self.root.last_time if self.root.last_time > self.clock + self.root.ahead else 0


class Store(Protocol):
    """Keeps a ledger and applies the rules, each request atomically and at the store's own time.

    Every method but `close` raises StoreUnavailableError if the store fails.
    """

    async def apply(self, act: Act, limits: AppliedLimits) -> Answer:
        """Decide a request by `ledger.rules.decide` and write the change before answering.

        Cancelling the call must not leave half a change.

        Raises:
            LimitsChangedError: The limits are not those of the ledger any more; no effect.
            StoreUnavailableError: No effect.
            OutcomeUnknownError: There may have been an effect.
        """

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> AccountStatement:
        """Return the state of an account now."""

    async def limits(self, account: Account) -> StoredLimits:
        """Return the stored limits of the levels of an account, and which of them are closed."""

    async def all_limits(self, root: str) -> StoredLimits:
        """Return all stored limits and closed accounts of a root."""

    async def roots(self) -> list[str]:
        """Return the root names of all accounts that were ever used."""

    async def journal(self, root: str, after: str, until: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return the oldest entries of a root after one position, up to and with another, with their positions.

        An empty position is the beginning, or the end. Fewer than `most` entries means that there are no more.
        """

    async def latest(self, root: str, before: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return the newest entries of a root before a position, newest first, with their positions.

        An empty position is the end. Fewer than `most` entries means that there are no more.
        """

    async def balances(self, root: str, after: str, most: int) -> BalancePage:
        """Return about `most` balances of a root, all at one time."""

    async def base(self, root: str) -> Base:
        """Return what stands for the dropped entries of a root, an empty one if there are none."""

    async def write_base(self, root: str, base: Base) -> None:
        """Replace the base, unless the new one has no more entries.

        This and `drop_trimmed` may be repeated. Their StoreUnavailableError does not say that nothing was done.
        """

    async def drop_trimmed(self, root: str, most: int) -> int:
        """Remove the oldest entries that the base stands for, and return their number."""

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the query_id of an open reservation of this account, None if there is none."""

    async def open_reservations(self, roots: Sequence[str]) -> int:
        """Return how many reservations of these roots are open."""

    async def back_up(self, folder: Path) -> Path:
        """Copy the ledger, with every charge that was answered before, into a new file of a folder; return its path.

        A store with a server of its own leaves that to the server's tools. Cancelled, it leaves nothing behind.

        Raises:
            BackupFailedError: The file cannot be written.
            StoreUnusableError: The ledger was exchanged while it was used.
        """

    async def check(self) -> None:
        """Return if requests can be served now, else raise a StoreError with the reason."""

    async def ping(self) -> None:
        """Return as soon as the store answers a heartbeat, however busy it is."""

    async def close(self) -> None:
        """Finish running work and close the store."""


def system_clock() -> Microseconds:
    """Return the time of this machine."""
    return time.time_ns() // 1000


NOT_BEGUN = "a fault of the service; nothing was begun"
"""The error of requests that waited behind others when an internal error occurred."""

OUTCOME_NOT_KNOWN = "a fault of the service; what was begun may have been done"
"""The error of requests that were being decided then."""


def uncounted(_requests: int, _seconds: float, _stands_still: Mapping[str, Microseconds]) -> None:
    """Count nothing."""


def count(
    committed: Committed, requests: int, seconds: float, stands_still: Mapping[str, Microseconds]
) -> None:
    """Call `committed` after a commit. An error there must not fail the requests."""
    try:
        committed(requests, seconds, stands_still)
    except Exception as error:
        log_internal_error(error)
