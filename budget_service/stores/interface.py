"""What a store has to do: one screen, so that another one can be written."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from budget_service.internal_errors import log_internal_error
from budget_service.ledger.balances import Balance
from budget_service.ledger.currency import Currency
from budget_service.ledger.limits import AppliedLimits, StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.reading import Statement
from budget_service.ledger.requests import Request
from budget_service.ledger.state import JournalEntry, Reservation
from budget_service.ledger.values import Account, LevelLimit
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import Microseconds

Clock: TypeAlias = Callable[[], Microseconds]
# Told of every commit: how many requests it had, and how many seconds it took.
Committed: TypeAlias = Callable[[int, float], None]


class StoreError(Exception):
    """The store could not do what was asked.

    StoreError
    ├── StoreUnavailableError     nothing was changed
    ├── OutcomeUnknownError       something may have been changed: repeat the request with its id
    └── StoreUnusableError        the store must not be used as it is; only raised when it is opened or checked
    """


class StoreUnavailableError(StoreError):
    """The store did not take the request; it had no effect."""


class OutcomeUnknownError(StoreError):
    """The store took the request and gave no answer; a repeat with the same request id tells what became of it."""


class StoreUnusableError(StoreError):
    """The store would break the ledger's promises: another owner, a newer schema, no persistence."""


@dataclass(frozen=True, slots=True)
class BalancePage:
    """Some balances of a root, its currency, all its open reservations and its last position in the journal, all of one
    moment.

    `after` leads to the next page, and is empty after the last one. A page may repeat what an earlier one had.
    """

    position: str
    currency: Currency
    balances: tuple[tuple[Account, Balance], ...]
    reservations: tuple[Reservation, ...]
    after: str


@dataclass(frozen=True, slots=True)
class Alike:
    """Some of the newest entries of a root, those that say the same of an account's levels taken together.

    Entries are alike that have one kind, spans and statement, are below the same of those levels and as deep, and count
    alike above; `entries` has the oldest of them. `checkpointed` is how many single ones stand at or before a position
    that was asked for; `before` leads to the next page, and is empty after the last one.
    """

    entries: tuple[JournalEntry, ...]
    checkpointed: int
    before: str


class Store(Protocol):
    """Keeps a ledger and applies the rules to it, each request atomically and at the store's own time."""

    async def apply(self, request: Request, limits: AppliedLimits) -> Answer:
        """Decide a request by `ledger.rules.decide` and write the change before answering.

        Raises LimitsChangedError or StoreUnavailableError (no effect) or OutcomeUnknownError. Cancelling it must not
        leave half a change.
        """

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> Statement:
        """Return the state of an account now. Raises StoreUnavailableError."""

    async def limits(self, account: Account) -> StoredLimits:
        """Return the limits that are set on the levels of an account. Raises StoreUnavailableError."""

    async def all_limits(self, root: str) -> StoredLimits:
        """Return every limit that is set in a root. Raises StoreUnavailableError."""

    async def roots(self) -> list[str]:
        """Return the first segments of all accounts that were ever used. Raises StoreUnavailableError."""

    async def journal(self, root: str, after: str, until: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return the oldest entries of a root after one position, up to and with another, with their positions.

        An empty position is the beginning, or the end; fewer than `most` means that there are no more.
        Raises StoreUnavailableError.
        """

    async def latest(self, root: str, before: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Return the newest entries of a root before a position, newest first, with their positions.

        An empty position is the end; fewer than `most` means that there are no more. Raises StoreUnavailableError.
        """

    async def alike(self, account: Account, before: str, checkpointed: str, most: int) -> Alike:
        """Return the newest `most` entries of an account's root before a position, like ones together; see `latest`.

        How many of them are sealed is counted up to and with the position `checkpointed`. Raises StoreUnavailableError.
        """

    async def balances(self, root: str, after: str, most: int) -> BalancePage:
        """Return about `most` balances of a root, all of one moment. Raises StoreUnavailableError."""

    async def checkpoint(self, root: str) -> Checkpoint:
        """Return how far a root's journal is sealed, an empty one if it is not. Raises StoreUnavailableError."""

    async def write_checkpoint(self, root: str, checkpoint: Checkpoint) -> None:
        """Put a checkpoint in the place of the last one, if it has no fewer entries. Raises StoreUnavailableError."""

    async def drop_checkpointed(self, root: str, most: int) -> int:
        """Remove the oldest sealed entries of a journal and return how many. Raises StoreUnavailableError."""

    async def question_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the query_id of an open reservation of this account, None if there is none.

        Raises StoreUnavailableError.
        """

    async def open_reservations(self, roots: Sequence[str]) -> int:
        """Return how many reservations of these roots are open. Raises StoreUnavailableError."""

    async def check(self) -> None:
        """Return if requests can be served now, else raise a StoreError that says why not."""

    async def ping(self) -> None:
        """Return as soon as the store answers anything, however busy it is. Raises StoreError."""

    async def close(self) -> None:
        """Finish what was begun and let go of the store."""


def all_alike(page: list[tuple[str, JournalEntry]], checkpointed: str, most: int) -> Alike:
    """Return a page of `latest` where a store takes nothing together."""
    last = position_numbers(checkpointed or "0")
    return Alike(
        entries=tuple(entry for _, entry in page),
        checkpointed=sum(position_numbers(position) <= last for position, _ in page),
        before=page[-1][0] if len(page) == most else "",
    )


def position_numbers(position: str) -> tuple[int, ...]:
    """Return what positions are in order by: a number, or the two of Redis."""
    return tuple(map(int, position.split("-")))


def system_clock() -> Microseconds:
    """Return the time of this machine."""
    return time.time_ns() // 1000


NOT_BEGUN = "a fault of the service; nothing was begun"
"""What those are told who wait for others when something happens that nobody foresaw."""

UNTOLD = "a fault of the service; what was begun may have been done"
"""What those are told then whose turn it was."""


def uncounted(_requests: int, _seconds: float) -> None:
    """Count nothing."""


def count(committed: Committed, requests: int, seconds: float) -> None:
    """Tell `committed` of a commit. That it cannot be counted is nothing to those who were served."""
    try:
        committed(requests, seconds)
    except Exception as error:
        log_internal_error(error)
