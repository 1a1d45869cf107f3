"""The state of the ledger as the rules see it: what they read for one request, and what they write."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum

from msgspec import Struct, field

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.block_sums import BlockPage, BlocksRow
from budget_service.ledger.currency import UNUSED, Currency
from budget_service.ledger.outcomes import Answer, Outcome
from budget_service.ledger.values import NOTHING, Account, Cost, Fingerprint, Hold, Limit, capped_sum
from budget_service.ledger.windows import SECOND, Microseconds

# How far apart two correct clocks may be, and how far ahead of its store a ledger's time may be without harm.
CLOCK_TOLERANCE: Microseconds = 60 * SECOND
# One step ends at most this many lapsed reservations. While there may be more, no budget is called exhausted.
MAX_EXPIRED_AT_ONCE = 1000


class HistoryNeededError(Exception):
    """To decide, the rules need the past days of the request's levels and the root's open reservations."""


class RootRecord(Struct, frozen=True, gc=False):
    """What is kept once for a root account.

    Its currency, the last time recorded, the version of its stored limits, and how far its time is ahead of the store's
    clock since an administrator resumed it; how many entries its journal ever had, and the digest of all of them.
    """

    currency: Currency = UNUSED
    last_time: Microseconds = 0
    limits_version: int = 0
    ahead: Microseconds = 0
    entries: int = 0
    digest: str = ""

    def now(self, clock: Microseconds) -> Microseconds:
        """Return the ledger's time by the store's clock, or the last time recorded if the clock went back."""
        return max(clock + self.ahead, self.last_time)

    def stands_still_for(self, clock: Microseconds) -> Microseconds:
        """Return how long its time stands still, after a clock that was ahead; 0 below CLOCK_TOLERANCE."""
        behind = self.last_time - self.ahead - clock
        return behind if behind >= CLOCK_TOLERANCE else 0

    def next_limits_version(self, now: Microseconds) -> int:
        """Return the version of limits that are changed now.

        It is not the next number: a ledger that was set back would give that again, to other limits than those that a
        service has cached under it.
        """
        return max(self.limits_version + 1, now)


class Reservation(Struct, frozen=True, gc=False, kw_only=True):
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
    """The kind of a charge, or of another change in the journal.

    CURRENCY: another currency is planned for the root account, or none any more if the entry has no `unit_id`. It takes
    nothing, and its one hold begins with the new currency. CLOCK: the root's time goes on, ahead of the store's clock
    by the beginning of its one hold. REFUNDED: what was charged for the release was given back; its cost is taken off
    its holds. LIMIT: the stored limit of the account was changed; `change` has the old and the new one. CLOSE and
    REOPEN: the account was closed, or opened again.
    """

    SETTLED = "settled"
    DIRECT = "direct"
    FORFEITED = "forfeited"
    LOST = "lost"
    CURRENCY = "currency"
    CLOCK = "clock"
    REFUNDED = "refunded"
    LIMIT = "limit"
    CLOSE = "close"
    REOPEN = "reopen"

    @property
    def is_charge(self) -> bool:
        """Return whether the entry is a charge."""
        return self.counts_everywhere or self is EntryKind.LOST

    @property
    def counts_everywhere(self) -> bool:
        """Return whether the entry is a charge that counts on every level of its account."""
        return self in (EntryKind.SETTLED, EntryKind.DIRECT, EntryKind.FORFEITED)


class JournalEntry(Struct, frozen=True, gc=False, kw_only=True):
    """A permanent entry: the sum of `cost_at` over the `holds` of all entries, less refunds, is what was spent.

    Each hold names the day of a level that admitted the charge, and the block if only some pay. `policy_statement` is
    that of the charge; empty if it had none, or is not a charge by a client. `shared_cost` is what the levels above the
    account count instead of `cost`; None: they count the same. An administrator's act has the `actor` who did it and
    the `reason` that was given, which may be empty; `change` is what it did to a limit or a file.
    """

    kind: EntryKind
    account: Account
    cost: Cost
    unit_id: str
    request_id: str
    release_id: str
    query_id: str
    time: Microseconds
    holds: tuple[Hold, ...]
    policy_statement: str = ""
    shared_cost: Cost | None = None
    reason: str = ""
    actor: str = ""
    change: str = ""

    def cost_at(self, depth: int) -> Cost:
        """Return what counts at the level of the account with `depth` segments."""
        if self.shared_cost is None or depth >= self.account.depth:
            return self.cost
        return self.shared_cost

    @property
    def is_administrative(self) -> bool:
        """Whether an administrator did it. What a region gives back of a share is a refund without a release."""
        is_returned = self.kind is EntryKind.REFUNDED and not self.release_id
        return not (self.kind.counts_everywhere or is_returned)

    @property
    def takes_nothing(self) -> bool:
        """Whether nothing counts on any level."""
        # Nearly every charge costs something, and so needs no look at its levels.
        return self.cost == NOTHING and all(self.cost_at(hold.depth) == NOTHING for hold in self.holds)


def held_since(since: Microseconds, level: Account, reservations: Iterable[Reservation]) -> Cost:
    """Return what reservations hold at a level, or at a block of one, on days from some time on."""
    return capped_sum(
        each.held
        for each in reservations
        if each.account.path[: level.depth] == level.path
        for hold in each.holds
        if hold.depth == level.depth and hold.block == level.block and hold.window_start >= since
    )


def forfeit_of(reservation: Reservation) -> JournalEntry:
    """Return the charge of a reservation that has lapsed and is forfeited."""
    return JournalEntry(
        kind=EntryKind.FORFEITED,
        account=reservation.account,
        cost=reservation.held,
        unit_id=reservation.unit_id,
        request_id=reservation.request_id,
        release_id="",
        query_id=reservation.query_id,
        time=reservation.expires_at,
        holds=reservation.holds,
    )


class StoredOutcome(Struct, frozen=True, gc=False):
    """The outcome of an earlier request; it counts until `keep_until`."""

    fingerprint: Fingerprint
    outcome: Outcome
    keep_until: Microseconds


class PaidQuery(Struct, frozen=True, gc=False):
    """The release that an account has paid for as the answer to a question, in the span that began then."""

    release_id: str
    window_start: Microseconds


class Snapshot(Struct, frozen=True, gc=False, kw_only=True):
    """All that the rules need to know for one request.

    `balances` has every level of the account that was used before, and every level that `due` or `reservation`
    holds; `blocks` are those of each level whose balances count beside its own, the ones that the request names, of a
    `page` its own, or to read all; with `every_block` everybody pays; `rows` are those of the blocks of all these
    levels, None of a level that never had any, and None at all where `blocks` are all there are; `due` are the root's
    reservations that have lapsed, the oldest MAX_EXPIRED_AT_ONCE of them, and `due_further` says that there may be
    more; `past` are the past days of the levels of the account, and `reservations` all that the root has not ended,
    both only after a HistoryNeededError (`past` is None without them); `reservation` is the one that the request
    names, if it is open and of this account; `paid_questions` and `paid_releases`, the start of the span in which
    each was last paid for, are what its payer (`AppliedLimits.payer`) has paid for of what the request names;
    `stored_limits` is how many limits and closed accounts the root has stored, and `limits` those of the levels
    whose limits may change, needed only to change some; `closed` has the account that is to be closed or opened if
    it is closed; `clock` is the store's, needed only to let the time of the root go on. `outcomes` are remembered
    ones of other requests, by their ids.
    """

    root: RootRecord = RootRecord()
    balances: Mapping[Account, Balance] = field(default_factory=dict)
    blocks: Mapping[Account, Collection[Account]] = field(default_factory=dict)
    every_block: bool = False
    page: BlockPage | None = None
    rows: Mapping[Account, BlocksRow | None] | None = field(default_factory=dict)
    due: tuple[Reservation, ...] = ()
    due_further: bool = False
    past: Mapping[Account, Iterable[PastDay]] | None = None
    reservations: tuple[Reservation, ...] = ()
    reservation: Reservation | None = None
    remembered: StoredOutcome | None = None
    paid_questions: Mapping[str, PaidQuery] = field(default_factory=dict)
    paid_releases: Mapping[str, Microseconds] = field(default_factory=dict)
    stored_limits: int = 0
    limits: Mapping[Account, Limit] = field(default_factory=dict)
    closed: Collection[Account] = ()
    clock: Microseconds = 0
    outcomes: Mapping[str, StoredOutcome] = field(default_factory=dict)


class Payment(Struct, frozen=True, gc=False):
    """A release that is now paid for; `query_id` may be empty. Kept for good if `keep_until` is None."""

    release_id: str
    query_id: str
    window_start: Microseconds
    keep_until: Microseconds | None


class DayChange(Struct, frozen=True, gc=False):
    """An amount, negative for refunds, to be added to what was charged at a level on a past day.

    A day without a sum is made, and ends at `end`.
    """

    level: Account
    start: Microseconds
    end: Microseconds
    information: int
    calls: int

    def followed_by(self, other: DayChange) -> DayChange:
        """Return this change and a later one of the same day as one."""
        information, calls = self.information + other.information, self.calls + other.calls
        return DayChange(self.level, self.start, self.end, information, calls)

    def applied(self, last: PastDay | None) -> PastDay:
        """Return the day after the change."""
        day = last or PastDay(self.start, self.end, NOTHING)
        spent = Cost(day.spent.information + self.information, day.spent.calls + self.calls)
        return PastDay(self.start, day.end, spent)


class Change(Struct, frozen=True, gc=False, kw_only=True):
    """What a store has to write for one request, all of it or nothing.

    `remembered` is None only if the request has to be decided again. Of `balances` those that are None go, and `rows`
    are those of the blocks of levels. `days` names a day of a level at most once.
    `unpaid` are payments of the request's payer that are no more, by kind (release or query) and id. `closed` says of
    accounts whether they are.
    """

    root: RootRecord
    remembered: StoredOutcome | None
    balances: Mapping[Account, Balance | None] = field(default_factory=dict)
    rows: Mapping[Account, BlocksRow] = field(default_factory=dict)
    opened: Reservation | None = None
    ended: tuple[str, ...] = ()
    journal: tuple[JournalEntry, ...] = ()
    payments: tuple[Payment, ...] = ()
    days: tuple[DayChange, ...] = ()
    limits: tuple[tuple[Account, Limit | None], ...] = ()
    unpaid: tuple[tuple[str, str], ...] = ()
    closed: Mapping[Account, bool] = field(default_factory=dict)


class Decision(Struct, frozen=True, gc=False):
    """The answer to a request, and what has to be written before it is given; None: nothing.

    Without an answer the change has to be written, and the request decided again: more reservations had lapsed than one
    step ends.
    """

    answer: Answer | None
    change: Change | None
