"""A case: what is known when an act is decided, what it changes, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from msgspec.structs import replace

from budget_service.ledger.block_sums import BlockPage
from budget_service.ledger.draft import Draft
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import (
    Answer,
    Exhausted,
    Held,
    LevelStatus,
    Outcome,
    Reason,
    Refused,
)
from budget_service.ledger.state import Change, Decision, Payment, Reservation, Snapshot, StoredOutcome
from budget_service.ledger.values import Account, Cost, Fingerprint, Hold, Limit
from budget_service.ledger.windows import DAY, SECOND, Microseconds, WindowRule

# How many blocks of a root may have something charged or held. A policy has at most 1,001 blocks at a time, and each
# that is charged takes a balance for good.
MAX_BLOCKS_OF_ROOT = 10_000
# Granted requests and payments are kept for this long after their window: longer than any dispute should last.
RETENTION: Microseconds = 35 * DAY
# What takes no budget, and a reservation after it has lapsed, is kept only for longer than any client retries: requests
# that are sent in a loop must not fill the store.
SHORT_RETENTION: Microseconds = 3600 * SECOND


class Case(Draft):
    """The draft of one decision, with what was paid for before.

    Attributes:
        snapshot: What was loaded.
        limits: The limits that the act is decided by.
        root: The root's record, whose currency and time are those of the draft.
        kept_until: How long the outcome is remembered; as long as clients retry, unless an act says otherwise.
        set_limits: The stored limits that are set or removed.
        closed: The accounts that are closed or opened.

    Args:
        snapshot: The state of the root.
        limits: The limits in force.
        now: The ledger's time.
        path: All levels that the act counts on; none for one about a root.

    Raises:
        HistoryNeededError: The snapshot needs the past days too.
    """

    def __init__(
        self, snapshot: Snapshot, limits: AppliedLimits, now: Microseconds, path: tuple[Account, ...]
    ) -> None:
        super().__init__(snapshot, limits.levels if path else (), now, path)
        self.snapshot = snapshot
        self.limits = limits
        self.root = snapshot.root
        self.kept_until = now + SHORT_RETENTION
        self.payments: list[Payment] = []
        self.unpaid: list[tuple[str, str]] = []
        self.set_limits: tuple[tuple[Account, Limit | None], ...] = ()
        self.closed: Mapping[Account, bool] = {}

    @property
    def reservation(self) -> Reservation | None:
        """The reservation that the act names, if it is open."""
        found = self.snapshot.reservation
        return found if found is not None and self.now < found.expires_at else None

    def recorded_release(self, question: str) -> str:
        """Return the release for which a question was paid in a span that counts; empty if there is none."""
        paid = self.snapshot.paid_questions.get(question)
        return paid.release_id if paid is not None and self.is_paid_in(paid.window_start) else ""

    def is_paid(self, release_id: str) -> bool:
        """Return whether a release was paid for in a span that counts."""
        paid_in = self.snapshot.paid_releases.get(release_id)
        return paid_in is not None and self.is_paid_in(paid_in)

    def is_paid_in(self, start: Microseconds) -> bool:
        """Return whether payments in the leaf's span that began at `start` count, in the present currency."""
        return start >= self.currency.since and self.leaf.counts(start)

    def payment_span(self, account: Account, holds: tuple[Hold, ...]) -> Microseconds | None:
        """Return the day of the leaf on which a charge with these holds is paid for; None if it does not count."""
        leaf = self.levels[-1].level
        for hold in holds:
            # A block's charge is made on a day of its level.
            if account.level(hold.depth) == leaf:
                return hold.window_start if self.leaf.counts(hold.window_start) else None
        return None

    def refusal(
        self, account: Account, blocks: tuple[str, ...], cost: Cost
    ) -> Exhausted | Held | Refused | None:
        """Return why `cost` may not be added to every level, or None if it may."""
        if self.limits.lease is None:
            return self._refusal(account, blocks, cost)
        # The home ledger may have more.
        return Refused(Reason.LEASE_SPENT) if self._refusal(account, blocks, cost) else None

    def _refusal(
        self, account: Account, blocks: tuple[str, ...], cost: Cost
    ) -> Exhausted | Held | Refused | None:
        if self._has_too_many(account.level(1), blocks):
            return Refused(Reason.TOO_MANY_BLOCKS)
        fits = self.can_count(cost)
        if not self.has_room(cost):
            statuses = self.statuses()
            stands_still = self.snapshot.root.stands_still_for(self.snapshot.clock)
            if refusal := shortage(statuses, cost, account, self.now, stands_still):
                return refusal
            # Only the sum of a level in mode track may exceed 64 bits here.
            fits = fits and all(cost.fits_above(status.spent, status.reserved) for status in statuses)
        return None if fits else Refused(Reason.SUM_OVERFLOW)

    def _has_too_many(self, root: Account, blocks: tuple[str, ...]) -> bool:
        added = sum(self.balances[root.of_block(block)].is_unused for block in blocks)
        if not added:
            return False
        known = self.blocks.count(root, self._rule_at(root), MAX_BLOCKS_OF_ROOT - added)
        return has_too_many_blocks(known, added)

    def read_blocks(self, page: BlockPage) -> None:
        """Add a page of the blocks of a level, which have been brought up to `now`, to what is known of all."""
        balances = [(block.block, self.balances[block]) for block in page.blocks]
        self.blocks.read(page, balances, self._rule_at(page.level))

    def _rule_at(self, level: Account) -> WindowRule | None:
        return next((each.limit.window for each in self.levels if each.level == level), None)

    def pay(self, release_id: str, query_id: str, span: Microseconds | None) -> None:
        """Note for how long a release counts as paid, so that it is not charged again."""
        if release_id and span is not None:
            lease = self.limits.lease
            end = self.leaf.last_end if lease is None else lease.window_end
            until = None if end is None else end + RETENTION
            self.payments.append(Payment(release_id, query_id, span, until))

    def keep(self) -> None:
        """Remember the outcome for as long as what was granted counts, and longer."""
        # A budget that is never refreshed has no end of a window: the time counts from now.
        end = self.leaf.last_end if self.levels else None
        self.kept_until = (end or self.now) + RETENTION

    def decided(self, fingerprint: Fingerprint, outcome: Outcome | None) -> Decision:
        """Return the answer, and what has to be written before it is given; see `Act.decide`."""
        match outcome:
            case None:
                return self.to_be_continued()
            case Exhausted() | Held() if self.snapshot.due_further:
                # What more has lapsed is still counted as held: this is no refusal to be given, or remembered.
                return self.to_be_continued()
            case Held() | Refused(reason=Reason.LEASE_SPENT | Reason.LEASE_NOT_YOURS):
                # The same request may be granted as soon as a reservation ends, by the home ledger, or to its own
                # region. Only what has lapsed is worth writing.
                change = self._change(None) if self.ended else None
            case Refused(reason=reason) if not self._path or reason is Reason.ACCOUNT_CLOSED:
                # The root stays as it was: neither a balance nor the journal would show why its time went on.
                change = Change(root=self.snapshot.root, remembered=self._remembered(fingerprint, outcome))
            case _:
                change = self._change(self._remembered(fingerprint, outcome))
        return Decision(Answer(outcome, replayed=False), change)

    def to_be_continued(self) -> Decision:
        """Return what has to be written before the act is decided again."""
        return Decision(None, self._change(None))

    def _remembered(self, fingerprint: Fingerprint, outcome: Outcome) -> StoredOutcome:
        return StoredOutcome(fingerprint, outcome, self.kept_until)

    def _change(self, remembered: StoredOutcome | None) -> Change:
        return Change(
            root=replace(self.root, currency=self.currency, last_time=self.now),
            remembered=remembered,
            balances=self.changed_balances,
            rows=self.blocks.changed,
            opened=self.opened,
            ended=tuple(self.ended),
            journal=tuple(self.journal),
            days=self.days,
            payments=tuple(self.payments),
            unpaid=tuple(self.unpaid),
            limits=self.set_limits,
            closed=self.closed,
        )


def has_too_many_blocks(known: int, added: int) -> bool:
    """Return whether a root that knows so many blocks may have no more of them than it has."""
    return added > 0 and known + added > MAX_BLOCKS_OF_ROOT


def shortage(
    statuses: tuple[LevelStatus, ...],
    cost: Cost,
    account: Account,
    now: Microseconds,
    stands_still: Microseconds,
) -> Exhausted | Held | None:
    """Return what is missing to pay `cost`: each unit of each level, from the widest; None if nothing is.

    What does not fit even if nothing were reserved is exhausted, and then only that is reported; else it is held.
    """
    depth = account.depth
    spent = [each.shortfalls(cost, left=each.unspent, depth=depth) for each in statuses]
    if any(spent):
        return Exhausted(now, tuple(chain.from_iterable(spent)), stands_still)
    held = [each.shortfalls(cost, left=each.remaining, depth=depth) for each in statuses]
    return Held(now, tuple(chain.from_iterable(held)), stands_still) if any(held) else None
