"""What the ledger engine needs of a store: keys, rows, transactions and the store's own time, and no rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.block_sums import BlockPage, BlocksRow
from budget_service.ledger.state import (
    DayChange,
    JournalEntry,
    PaidQuery,
    Payment,
    Reservation,
    RootRecord,
    StoredOutcome,
)
from budget_service.ledger.values import Account, Limit
from budget_service.ledger.windows import Microseconds

# A root, and the id of a request or of a reservation of it.
RootKey: TypeAlias = tuple[str, str]
# A payer, `release` or `query`, and the id of what was paid for.
PaymentKey: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a batch of requests names. Each list may name a key twice.

    `reservations` have the payers whose payment for the question of the reservation is wanted too. `counted` are roots
    whose stored limits and closed accounts are to be counted, and `limits` levels whose stored limit is wanted; of
    `closed` accounts it is wanted whether they are. With the `history` the past days of the levels and all reservations
    of the roots are wanted too, which a batch seldom needs. Of levels whose `blocks` are wanted all blocks are, with
    balances and past days as if each were named; of a `page` the next blocks of its level, behind one of them.
    """

    roots: frozenset[str]
    levels: Sequence[Account] = ()
    outcomes: Sequence[RootKey] = ()
    payments: Sequence[PaymentKey] = ()
    reservations: Sequence[tuple[RootKey, str]] = ()
    counted: frozenset[str] = frozenset()
    limits: Sequence[Account] = ()
    closed: Sequence[Account] = ()
    history: bool = False
    blocks: Sequence[Account] = ()
    page: tuple[Account, str] | None = None


@dataclass(slots=True)
class Loaded:
    """What a store has of that, at one time; what it does not have is missing.

    `clock` is the store's time, and the time of each root follows from it by `RootRecord.now`. `due` are the oldest
    reservations of each root that have lapsed by then, and `due_further` the roots that may have more of them. Balances
    are those of the wanted levels and of all that a due or wanted reservation holds. `payments` has every key that was
    wanted, with None if nothing was paid. `past` are the past days of the wanted levels by their starts, and `open` the
    reservations of each root that have not been ended; both only with the history, and `past` is None without it.
    `blocks` are those of the levels where they are wanted, and `rows` those of the blocks of the wanted levels and of
    all that are held, None where there is none.
    The engine adds to these mappings what it decides.
    """

    clock: Microseconds
    roots: dict[str, RootRecord]
    balances: dict[Account, Balance]
    outcomes: dict[RootKey, StoredOutcome] = field(default_factory=dict)
    payments: dict[PaymentKey, PaidQuery | None] = field(default_factory=dict)
    reservations: dict[RootKey, Reservation | None] = field(default_factory=dict)
    due: dict[str, tuple[Reservation, ...]] = field(default_factory=dict)
    due_further: set[str] = field(default_factory=set)
    stored_limits: dict[str, int] = field(default_factory=dict)
    limits: dict[Account, Limit] = field(default_factory=dict)
    closed: set[Account] = field(default_factory=set)
    past: dict[Account, dict[Microseconds, PastDay]] | None = None
    open: dict[str, tuple[Reservation, ...]] = field(default_factory=dict)
    blocks: dict[Account, frozenset[Account]] = field(default_factory=dict)
    rows: dict[Account, BlocksRow | None] = field(default_factory=dict)
    page: BlockPage | None = None


@dataclass(slots=True)
class Changes:
    """What a batch changes: rows to be written in place of those with the same key, or removed where there is None.

    `days` are not rows but what is added to the sums of past days, by level and start. `payers` are all whom the batch
    was about: what they paid for long ago may be removed meanwhile. `closed` says of accounts whether they are.
    """

    roots: dict[str, RootRecord] = field(default_factory=dict)
    balances: dict[Account, Balance | None] = field(default_factory=dict)
    rows: dict[Account, BlocksRow] = field(default_factory=dict)
    days: dict[tuple[Account, Microseconds], DayChange] = field(default_factory=dict)
    outcomes: dict[RootKey, StoredOutcome] = field(default_factory=dict)
    payments: dict[PaymentKey, Payment | None] = field(default_factory=dict)
    reservations: dict[RootKey, Reservation | None] = field(default_factory=dict)
    limits: dict[Account, Limit | None] = field(default_factory=dict)
    closed: dict[Account, bool] = field(default_factory=dict)
    journal: list[JournalEntry] = field(default_factory=list)
    payers: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        """Every change writes the record of its root."""
        return bool(self.roots)


class Transaction(Protocol):
    """A transaction that has begun."""

    loaded: Loaded

    async def commit(self, changes: Changes, committed: Callable[[], None]) -> bool:
        """Write all changes or none, and return True; False if what was loaded has changed since: begin again.

        `committed` is called as soon as that is known, so that no caller waits for a turn of the event loop. The commit
        of an empty change makes sure that what was loaded is as durable as if it had just been written.

        Raises:
            StoreUnavailableError: Nothing was written.
            OutcomeUnknownError: It may have been written.
        """


class Transactions(Protocol):
    """A store's transactions, and its reads without one."""

    def transaction(self, wanted: Wanted) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction and load what is wanted, in one round trip; without a commit it ends without effect.

        Any other exception than these, in the block or by the store, says that a request of the batch is at fault.

        Raises:
            StoreUnavailableError: Nothing was begun.
        """

    async def load(self, wanted: Wanted) -> Loaded:
        """Return what is wanted as it is now. Raises StoreUnavailableError."""
