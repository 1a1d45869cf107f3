"""The ledger as a batch of requests sees it: what was loaded, and over it what has been decided and is not written yet.

A batch is decided on the view, one request after the other, and then written at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.counting import counting_levels, named_blocks, needs_all_blocks
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.requests import (
    AccountRequest,
    BudgetRequest,
    ChangeCurrency,
    Charge,
    Refund,
    ReportCharge,
    Request,
    Reserve,
    ResumeClock,
    SetLimits,
)
from budget_service.ledger.state import (
    Change,
    DayChange,
    PaidQuery,
    Reservation,
    RootRecord,
    Snapshot,
    StoredOutcome,
)
from budget_service.ledger.values import Account
from budget_service.ledger.windows import Microseconds
from budget_service.stores.transactions import Changes, Loaded, RootKey
from budget_service.stores.wanted import (
    NAMING,
    RELEASED,
    LeaseRequest,
    grant_of,
    held_levels,
    is_loan,
    report_after,
    report_before,
    return_of,
)

_UNUSED = RootRecord()


class NotLoadedError(Exception):
    """What came before in the batch makes a request need more than was loaded: it begins the next batch."""


class View:
    """What was loaded for a batch, and its `changes` so far."""

    def __init__(self, loaded: Loaded) -> None:
        self.changes = Changes()
        self._loaded = loaded

    def root(self, root: str) -> RootRecord:
        """Return what is kept once for a root account."""
        return self._loaded.roots.get(root, _UNUSED)

    def snapshot(self, request: Request, limits: AppliedLimits, now: Microseconds) -> Snapshot:
        """Return all that the rules need to decide a request. Raises NotLoadedError."""
        root = request.account.root
        record = self.root(root)
        remembered = self._loaded.outcomes.get((root, request.request_id))
        if remembered is not None and now < remembered.keep_until:
            return Snapshot(root=record, remembered=remembered)
        if isinstance(request, SetLimits | AccountRequest):
            return self._administered(root, record)
        if isinstance(request, ResumeClock):
            return Snapshot(root=record, clock=self._loaded.clock)
        due = self._due(root)
        due_further = bool(due) and root in self._loaded.due_further
        if isinstance(request, ChangeCurrency):
            balances = self._balances(held_levels(due))
            return Snapshot(root=record, due=due, due_further=due_further, balances=balances)
        reservation = self._named(request)
        named = due if reservation is None else (*due, reservation)
        path = counting_levels(request)
        blocks = self._blocks(request, path)
        others = self._others(request, path, blocks)
        levels = [*path, *chain.from_iterable((*blocks.values(), *(others or {}).values()))]
        if named:
            levels += held_levels(named)
        return Snapshot(
            root=record,
            balances=self._balances(levels),
            blocks=blocks,
            others=others,
            block_count=self._loaded.block_counts.get(root, 0),
            due=due,
            due_further=due_further,
            past=self._past(),
            reservations=self._reservations(root),
            reservation=reservation,
            lease_granted=self._of_lease(request, grant_of),
            lease_returned=self._of_lease(request, return_of),
            lease_before=self._of_lease(request, report_before),
            lease_after=self._of_lease(request, report_after),
            query_paid=self._query_paid(request, limits, reservation),
            release_paid_in=self._release_paid(request, limits),
        )

    def _administered(self, root: str, record: RootRecord) -> Snapshot:
        loaded = self._loaded
        return Snapshot(
            root=record, stored_limits=self._stored_limits(root), limits=loaded.limits, closed=loaded.closed
        )

    def reading(self, account: Account) -> Snapshot:
        """Return all that the rules need to state the balances of an account."""
        due = self._loaded.due.get(account.root, ())
        blocks = {level: self._loaded.blocks[level] for level in account.levels}
        names = [*account.levels, *chain.from_iterable(blocks.values()), *held_levels(due)]
        return Snapshot(
            root=self.root(account.root),
            due=due,
            due_further=account.root in self._loaded.due_further,
            balances=self._balances(names),
            blocks=blocks,
            others={},
            past=self._past(),
            reservations=self._reservations(account.root),
        )

    def note(self, request: Request, limits: AppliedLimits, change: Change) -> None:
        """Take a change into the view."""
        loaded, changes, root = self._loaded, self.changes, request.account.root
        changes.roots[root] = loaded.roots[root] = change.root
        for level in change.balances:
            if level.block and level not in loaded.balances:
                self._note_block(level)
        loaded.balances.update(change.balances)
        changes.balances.update(change.balances)
        key = (root, request.request_id)
        if change.remembered is not None:
            changes.outcomes[key] = loaded.outcomes[key] = change.remembered
        for day in change.days:
            self._note_day(day)
        changes.journal.extend(change.journal)
        for ended in change.ended:
            self._note_reservation((root, ended), None)
        if change.opened is not None:
            self._open((root, change.opened.reservation_id), change.opened)
        if limits.levels:
            self._note_payments(limits.payer(request.account), change)
        changes.limits.update(change.limits)
        changes.closed.update(change.closed)

    def _note_block(self, block: Account) -> None:
        """Add a block that gets its first balance at a level."""
        loaded, level = self._loaded, block.of_block("")
        if level in loaded.blocks:
            loaded.blocks[level] |= {block}
        if level.depth == 1 and level.root in loaded.block_counts:
            loaded.block_counts[level.root] += 1

    def _blocks(
        self, request: BudgetRequest, path: Iterable[Account]
    ) -> Mapping[Account, Collection[Account]]:
        if needs_all_blocks(request):
            return {level: blocks for level in path if (blocks := self._loaded.blocks[level])}
        named = named_blocks(request)
        return {level: [level.of_block(block) for block in named] for level in path} if named else {}

    def _others(
        self, request: BudgetRequest, path: Iterable[Account], blocks: Mapping[Account, Collection[Account]]
    ) -> Mapping[Account, Collection[Account]] | None:
        """Return the blocks of the levels that are not among these; None: they are not known."""
        if needs_all_blocks(request):
            return {}
        if self._loaded.past is None:
            return None
        return {level: self._loaded.blocks[level].difference(blocks.get(level, ())) for level in path}

    def _named(self, request: BudgetRequest) -> Reservation | None:
        """Return the reservation that a request names, if it is of this account; it may have lapsed."""
        if not (isinstance(request, NAMING) and request.reservation_id):
            return None
        found = self._loaded.reservations.get((request.account.root, request.reservation_id))
        # What a region reports may be recorded for another account than the lease's.
        is_own = found is not None and (isinstance(request, ReportCharge) or found.account == request.account)
        return found if is_own else None

    def _of_lease(
        self, request: BudgetRequest, named: Callable[[LeaseRequest], RootKey]
    ) -> StoredOutcome | None:
        return self._loaded.outcomes.get(named(request)) if isinstance(request, LeaseRequest) else None

    def _due(self, root: str) -> tuple[Reservation, ...]:
        due = self._loaded.due.get(root, ())
        if not due or (root, due[0].reservation_id) not in self.changes.reservations:
            return due
        # One request before has ended them all.
        if root in self._loaded.due_further:
            raise NotLoadedError
        return ()

    def _stored_limits(self, root: str) -> int:
        if any(level.root == root for level in (*self.changes.limits, *self.changes.closed)):
            raise NotLoadedError
        return self._loaded.stored_limits[root]

    def _balances(self, levels: Iterable[Account]) -> dict[Account, Balance]:
        known = self._loaded.balances
        # Of a thousand blocks, each is looked up once.
        found = ((level, known.get(level)) for level in levels)
        return {level: balance for level, balance in found if balance is not None}

    def _query_paid(
        self, request: BudgetRequest, limits: AppliedLimits, reservation: Reservation | None
    ) -> PaidQuery | None:
        if isinstance(request, ReportCharge):
            return None
        if isinstance(request, Reserve | Charge | Refund) and not is_loan(request):
            query_id = request.query_id if reservation is None else reservation.query_id
            return self._payment(limits.payer(request.account), "query", query_id) if query_id else None
        return None

    def _release_paid(self, request: BudgetRequest, limits: AppliedLimits) -> Microseconds | None:
        if isinstance(request, RELEASED) and request.release_id:
            paid = self._payment(limits.payer(request.account), "release", request.release_id)
            return paid.window_start if paid else None
        return None

    def _payment(self, *key: str) -> PaidQuery | None:
        try:
            return self._loaded.payments[key]  # type: ignore[index]
        except KeyError:
            raise NotLoadedError from None

    def _past(self) -> dict[Account, Iterable[PastDay]] | None:
        past = self._loaded.past
        return None if past is None else {level: days.values() for level, days in past.items()}

    def _reservations(self, root: str) -> tuple[Reservation, ...]:
        """Return all that are open, after what the batch has changed; none without the history."""
        if self._loaded.past is None:
            return ()
        changed = self.changes.reservations
        kept = [each for each in self._loaded.open[root] if (root, each.reservation_id) not in changed]
        opened = [each for (name, _), each in changed.items() if each is not None and name == root]
        return (*kept, *opened)

    def _note_day(self, each: DayChange) -> None:
        key = (each.level, each.start)
        last = self.changes.days.get(key)
        self.changes.days[key] = each if last is None else last.followed_by(each)
        if self._loaded.past is not None:
            days = self._loaded.past.setdefault(each.level, {})
            days[each.start] = each.applied(days.get(each.start))

    def _note_reservation(self, key: RootKey, reservation: Reservation | None) -> None:
        self.changes.reservations[key] = self._loaded.reservations[key] = reservation

    def _open(self, key: RootKey, opened: Reservation) -> None:
        # A store finds the same of what is in it, by its key.
        if self._loaded.reservations.get(key) is not None:
            raise ValueError("the id of a new reservation is taken")
        self._note_reservation(key, opened)

    def _note_payments(self, payer: str, change: Change) -> None:
        self.changes.payers.add(payer)
        if change.payment is not None:
            paid = change.payment
            found = PaidQuery(paid.release_id, paid.window_start)
            for kind, id_ in (("release", paid.release_id), ("query", paid.query_id)):
                if id_:
                    self.changes.payments[payer, kind, id_] = paid
                    self._loaded.payments[payer, kind, id_] = found
        for kind, id_ in change.unpaid:
            self.changes.payments[payer, kind, id_] = self._loaded.payments[payer, kind, id_] = None
