"""The state of the ledger as the rules see it: what they read for one request, and what they want written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from budget_service.ledger.balances import Balance
from budget_service.ledger.currency import UNUSED, Currency
from budget_service.ledger.outcomes import Answer, Outcome
from budget_service.ledger.values import Account, Cost, Fingerprint, Limit
from budget_service.ledger.windows import Microseconds

# One request ends at most this many lapsed reservations; the others count as held until the next one, which can only
# refuse too much.
MAX_EXPIRED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class RootRecord:
    """What is kept once for a root account.

    Its currency, the last time recorded, and how often its stored limits have changed.
    """

    currency: Currency = UNUSED
    last_time: Microseconds = 0
    limits_version: int = 0

    def now(self, clock: Microseconds) -> Microseconds:
        """Return the ledger's time: the store's clock, or the last time recorded if the clock went back."""
        return max(clock, self.last_time)


class Hold(NamedTuple):
    """A span of a level that a reservation or a charge counts in: its window or, of a sliding one, its day.

    `depth` is the level's number of segments.
    """

    depth: int
    window_start: Microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A worst case that is held; `paid_release_id` is not empty if the question was already paid for."""

    reservation_id: str
    account: Account
    request_id: str
    query_id: str
    held: Cost
    unit_id: str
    expires_at: Microseconds
    paid_release_id: str
    forfeits: bool
    holds: tuple[Hold, ...]


class EntryKind(Enum):
    """How a charge came about, or what else the journal tells.

    CURRENCY: another currency is planned for the root account, or none any more if the entry has no `unit_id`. It takes
    nothing, and its one hold begins with the new currency.
    """

    SETTLED = "settled"
    DIRECT = "direct"
    FORFEITED = "forfeited"
    LOST = "lost"
    CURRENCY = "currency"

    @property
    def is_charge(self) -> bool:
        """Tell whether the entry says what somebody was charged."""
        return self is not EntryKind.CURRENCY


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """A charge as it is written for good: adding up `cost` over the `holds` of all entries gives what was spent."""

    kind: EntryKind
    account: Account
    cost: Cost
    unit_id: str
    request_id: str
    release_id: str
    query_id: str
    time: Microseconds
    holds: tuple[Hold, ...]


@dataclass(frozen=True, slots=True)
class Remembered:
    """The outcome of an earlier request; it counts until `keep_until`."""

    fingerprint: Fingerprint
    outcome: Outcome
    keep_until: Microseconds


@dataclass(frozen=True, slots=True)
class PaidQuery:
    """The release that an account has paid for as the answer to a question, in the span that began then."""

    release_id: str
    window_start: Microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that the rules need to know for one request.

    `balances` has every level of the account that was used before, and every level that `due` or `reservation` holds;
    `due` are the root's reservations that have lapsed, the oldest MAX_EXPIRED_AT_ONCE of them; `reservation` is the one
    that the request names, if it is open and of this account; `query_paid` and `release_paid_in`, the start of the
    span in which the request's release was last paid for, are those of the request's payer (`requests.payer_of`);
    `stored_limits` is how many limits the root has stored, needed only to set some.
    """

    root: RootRecord = RootRecord()
    balances: Mapping[Account, Balance] = field(default_factory=dict)
    due: tuple[Reservation, ...] = ()
    reservation: Reservation | None = None
    remembered: Remembered | None = None
    query_paid: PaidQuery | None = None
    release_paid_in: Microseconds | None = None
    stored_limits: int = 0


@dataclass(frozen=True, slots=True)
class Payment:
    """A release that is now paid for; `query_id` may be empty. Kept for good if `keep_until` is None."""

    release_id: str
    query_id: str
    window_start: Microseconds
    keep_until: Microseconds | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a store has to write for one request, all of it or nothing."""

    root: RootRecord
    remembered: Remembered
    balances: Mapping[Account, Balance]
    opened: Reservation | None
    ended: tuple[str, ...]
    journal: tuple[JournalEntry, ...]
    payment: Payment | None
    limits: tuple[tuple[Account, Limit | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a request, and what has to be written before it is given; None: nothing."""

    answer: Answer
    change: Change | None
